#include "cli/model_server.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <exception>
#include <iostream>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/beast/http.hpp>

#include "cli/completion_request.hpp"
#include "cli/http_server.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/stop.hpp"
#include "models/generation.hpp"
#include "report/text.hpp"

namespace nas {

namespace {

namespace http = boost::beast::http;
using Json = nlohmann::ordered_json;
using Ids = std::vector<std::int64_t>;

constexpr std::uint64_t kLongestBody = 1 << 20;

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::int64_t characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

std::string utc_now() {
  const auto now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const auto size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

/// Tokens of requests, for `usage` and the log.
struct Usage {
  std::int64_t prompt = 0, completion = 0, unknown = 0;

  [[nodiscard]] Json json() const {
    return {{"prompt_tokens", prompt},
            {"completion_tokens", completion},
            {"total_tokens", prompt + completion}};
  }
};

/// A token as `logprobs` names it: its text, or its bytes where it is a part of a character.
std::string token_name(const TextForm& form, std::int64_t id) {
  const auto text = form.text({id});
  if (is_utf8(text)) return text;
  std::string name = "bytes:";
  for (const char byte : text) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto value = static_cast<unsigned char>(byte);
    name += {'\\', 'x', kDigits[value >> 4U], kDigits[value & 0xFU]};
  }
  return name;
}

/// Chosen tokens with their log probabilities, as `logprobs` of a choice.
class Logprobs {
 public:
  explicit Logprobs(std::int64_t beside) : beside_(beside) {}

  void add(const TextForm& text, const ChosenToken& chosen, std::int64_t offset) {
    const auto logs = at::log_softmax(chosen.logits.to(at::kDouble), 0);
    json_["tokens"].push_back(token_name(text, chosen.id));
    json_["token_logprobs"].push_back(logs[chosen.id].item<double>());
    json_["text_offset"].push_back(offset);
    if (beside_ == 0) {
      json_["top_logprobs"] = nullptr;
      return;
    }
    const auto [values, ids] = logs.topk(std::min(beside_, logs.numel()));
    auto top = Json::object();
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      const auto id = ids[i].item<std::int64_t>();
      auto name = token_name(text, id);
      if (top.contains(name)) name = "token_id:" + std::to_string(id);  // tokens of equal text
      top[name] = values[i].item<double>();
    }
    json_["top_logprobs"].push_back(std::move(top));
  }
  /// Those since the last call that begin before the end of the text.
  Json take(std::int64_t end) {
    auto taken = std::exchange(json_, empty());
    while (!taken["tokens"].empty() && taken["text_offset"].back().get<std::int64_t>() >= end) {
      for (const auto* list : {"tokens", "token_logprobs", "text_offset"}) {
        taken[list].erase(taken[list].size() - 1);
      }
      if (beside_ > 0) taken["top_logprobs"].erase(taken["top_logprobs"].size() - 1);
    }
    return taken;
  }

 private:
  static Json empty() {
    return {{"tokens", Json::array()},
            {"token_logprobs", Json::array()},
            {"top_logprobs", Json::array()},
            {"text_offset", Json::array()}};
  }
  std::int64_t beside_;
  Json json_ = empty();
};

class ModelServer {
 public:
  ModelServer(ModelFolder folder, std::string id)
      : folder_(std::move(folder)), id_(std::move(id)), created_(std::time(nullptr)) {}

  HttpAnswer answer(const HttpRequest& request) {
    const auto begun = std::chrono::steady_clock::now();
    usage_ = {};
    HttpAnswer answered;
    answered.response.set(http::field::content_type, "application/json");
    answered.response.set(http::field::cache_control, "no-store");
    try {
      route(request, answered);
    } catch (const RefusedRequest& refused) {
      answered.response.result(static_cast<unsigned>(refused.status));
      answered.response.body() = dumped(error_json(refused));
    } catch (const std::exception& error) {
      answered.response.result(http::status::internal_server_error);
      answered.response.body() = dumped(error_json({500, error.what()}));
    }
    if (!answered.parts) {
      log(request, answered.response, begun);
      return answered;
    }
    answered.parts = [this, request, begun, response = answered.response,
                      parts = std::move(answered.parts)](const SendPart& send) {
      try {
        parts(send);
      } catch (const std::exception& error) {  // the weights are damaged, say
        send("data: " + dumped(error_json({500, error.what()})) + "\n\n");
      }
      log(request, response, begun);
    };
    return answered;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void log(const HttpRequest& request, const HttpResponse& response,
           Clock::time_point begun) const {
    std::string line = utc_now() + " " + std::string(request.method_string()) + " " +
                       std::string(request.target().substr(0, 80)) + " " +
                       std::to_string(response.result_int());
    if (usage_.prompt > 0) {
      line += ", " + std::to_string(usage_.prompt) + " + " + std::to_string(usage_.completion) +
              " tokens";
    }
    if (usage_.unknown > 0) line += " (unknown: " + std::to_string(usage_.unknown) + ")";
    const std::chrono::duration<double> took = Clock::now() - begun;
    // What a request says may hold what a terminal would obey.
    std::cout << printable(line + ", " + fixed_text(took.count(), 3) + " s") << '\n' << std::flush;
  }

  void route(const HttpRequest& request, HttpAnswer& answered) {
    require_local(request);
    const std::string target(request.target());
    const bool one = target == "/v1/models/" + id_;
    if (target != "/v1/completions" && target != "/v1/models" && !one) {
      throw RefusedRequest(404, "no such path; there are POST /v1/completions and GET /v1/models");
    }
    const auto method = target == "/v1/completions" ? http::verb::post : http::verb::get;
    if (request.method() != method) {
      answered.response.set(http::field::allow, http::to_string(method));
      throw RefusedRequest(405, "only " + std::string(http::to_string(method)) + " here");
    }
    if (method == http::verb::post) return complete(request, answered);
    answered.response.body() =
        dumped(one ? model() : Json{{"object", "list"}, {"data", Json::array({model()})}});
  }

  /// Browsers send what other sites ask them to, under those sites' names or as other types.
  static void require_local(const HttpRequest& request) {
    auto host = std::string(request[http::field::host]);
    host = host.substr(0, host.rfind(':'));
    if (host != "127.0.0.1" && !boost::beast::iequals(host, "localhost")) {
      throw RefusedRequest(403, "the host must be 127.0.0.1 or localhost");
    }
    const auto type = request[http::field::content_type];
    const boost::beast::string_view json = "application/json";
    if (request.method() == http::verb::post &&
        !boost::beast::iequals(type.substr(0, json.size()), json)) {
      throw RefusedRequest(415, "content-type must be application/json");
    }
  }

  [[nodiscard]] Json model() const {
    return {{"id", id_}, {"object", "model"}, {"created", created_}, {"owned_by", "attnas"}};
  }

  [[nodiscard]] Ids prompt_ids(const std::string& prompt) {
    auto ids = folder_.text->prompt(prompt);
    if (ids.empty()) {
      throw RefusedRequest(400, "prompt needs a word: the model begins inside a line", "prompt");
    }
    usage_.unknown += std::count(ids.begin(), ids.end(), folder_.text->special().unknown);
    usage_.prompt += std::ssize(ids);
    return ids;
  }

  void complete(const HttpRequest& request, HttpAnswer& answered) {
    const auto asked = parse_completion_request(request.body());
    if (asked.model != id_) {
      throw RefusedRequest(404, "model = " + asked.model + ", must be " + id_, "model",
                           "model_not_found");
    }
    if (asked.stream && request.version() < 11) {
      throw RefusedRequest(400, "stream needs HTTP/1.1", "stream");
    }
    std::vector<Ids> prompts;
    for (const auto& prompt : asked.prompts) prompts.push_back(prompt_ids(prompt));
    const auto frame =
        Json{{"id", "cmpl-" + std::to_string(created_) + "-" + std::to_string(++number_)},
             {"object", "text_completion"},
             {"created", std::time(nullptr)},
             {"model", id_}};
    if (asked.stream) {
      answered.response.set(http::field::content_type, "text/event-stream");
      answered.parts = [this, asked, prompts, frame](const SendPart& send) {
        stream(asked, prompts, frame, send);
      };
      return;
    }
    auto json = frame;
    json["choices"] = Json::array();
    for_each_choice(asked, prompts, [&](std::size_t prompt, std::int64_t index, Choice choice) {
      std::string text = asked.echo ? asked.prompts[prompt] : std::string();
      const auto whole = [&](const std::string&, const Json&) { return true; };
      auto last = complete_one(asked, prompts[prompt], std::move(choice), whole);
      last["text"] = text + last["text"].get<std::string>();
      last["index"] = index;
      json["choices"].push_back(std::move(last));
      return true;
    });
    json["usage"] = usage_.json();
    answered.response.body() = dumped(json);
  }

  /// @param visit  of the prompt's number, the choice's, and how it draws. @return whether to go on.
  template <class Visit>
  void for_each_choice(const CompletionRequest& asked, const std::vector<Ids>& prompts,
                       const Visit& visit) {
    Choice choice{.temperature = asked.temperature, .top_k = asked.top_k, .top_p = asked.top_p};
    const auto special = folder_.text->special();
    for (const auto id : {special.pad, special.unknown}) {
      if (id >= 0) choice.never.push_back(id);
    }
    std::int64_t index = 0;
    for (std::size_t prompt = 0; prompt < prompts.size(); ++prompt) {
      for (std::int64_t i = 0; i < asked.n; ++i) {
        choice.seed = asked.seed + static_cast<std::uint64_t>(i);
        if (!visit(prompt, index++, choice)) return;
      }
    }
  }

  void stream(const CompletionRequest& asked, const std::vector<Ids>& prompts, const Json& frame,
              const SendPart& send) {
    const auto event = [&](const Json& choices, const Json& usage) {
      auto json = frame;
      json["choices"] = choices;
      if (asked.stream_usage) json["usage"] = usage;
      return send("data: " + dumped(json) + "\n\n");
    };
    for_each_choice(asked, prompts, [&](std::size_t prompt, std::int64_t index, Choice choice) {
      const auto part = [&](const std::string& text, const Json& logprobs) {
        return event(Json::array({{{"text", text},
                                   {"index", index},
                                   {"logprobs", logprobs},
                                   {"finish_reason", nullptr}}}),
                     nullptr);
      };
      auto last = complete_one(asked, prompts[prompt], std::move(choice), part, /*parts=*/true);
      last["index"] = index;
      return event(Json::array({std::move(last)}), nullptr);
    });
    if (asked.stream_usage) event(Json::array(), usage_.json());
    send("data: [DONE]\n\n");
  }

  /// One completion. @param send  receives what may be sent so far; false ends it.
  /// @return the choice: with all of its text, or, by parts, with what was not sent yet.
  template <class Send>
  Json complete_one(const CompletionRequest& asked, const Ids& prompt, Choice choice,
                    const Send& send, bool parts = false) {
    const auto& form = *folder_.text;
    const auto before = form.text(prompt);
    const auto offset = characters(before);
    CompletionText text(asked.stop);
    Logprobs logprobs(asked.logprobs.value_or(0));
    const auto taken = [&]() -> Json {
      if (!asked.logprobs) return {};
      return logprobs.take(text.stopped() ? offset + characters(text.text())
                                          : std::numeric_limits<std::int64_t>::max());
    };
    auto ids = prompt;
    (void)generate(folder_.model, prompt, asked.max_tokens, choice, [&](const ChosenToken& token) {
      ++usage_.completion;
      if (asked.logprobs) logprobs.add(form, token, offset + characters(text.text()));
      ids.push_back(token.id);
      const auto all = form.text(ids);
      const auto now = text.grow(all.starts_with(before)
                                     ? all.substr(before.size())
                                     : form.text({ids.begin() + std::ssize(prompt), ids.end()}));
      const bool heard = !parts || now.empty() || send(now, taken());
      return heard && !text.stopped() && !stop_requested();
    });
    const auto rest = text.rest();
    Json last{{"text", parts ? rest : text.text()}};
    last["index"] = 0;
    last["logprobs"] = taken();
    last["finish_reason"] = text.stopped() ? "stop" : "length";
    return last;
  }

  ModelFolder folder_;
  std::string id_;
  std::int64_t created_;
  std::int64_t number_ = 0;  ///< of the completion
  Usage usage_;              ///< of the request
};

}  // namespace

void serve_model(ModelFolder folder, const std::string& id, std::uint16_t port) {
  if (!folder.text) {
    throw InputError(id + ": the tokens of this model are no text, which nobody could ask for");
  }
  ModelServer model(std::move(folder), id);
  HttpServer server("127.0.0.1", port, kLongestBody);
  server.end_when([] { return stop_requested(); });
  std::cout << "serving " << printable(id) << " at " << server.address() << "/v1\nCtrl-C ends it\n"
            << std::flush;
  server.refuse_by([](HttpResponse& response, const std::string& message) {
    response.set(http::field::content_type, "application/json");
    const auto status = static_cast<int>(response.result_int());
    response.body() = dumped(error_json({status, message}));
  });
  server.serve([&](const HttpRequest& request) { return model.answer(request); });
}

}  // namespace nas
