#include "cli/completion_request.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/format.hpp"

namespace nas {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostTokens = 4096;
constexpr std::int64_t kMostCompletions = 16;
constexpr std::int64_t kMostLogprobs = 5;
constexpr std::size_t kMostStops = 4;
constexpr std::size_t kMostPrompts = 16;
constexpr int kDeepest = 16;  // arrays within each other; texts of JSON are made recursively

[[noreturn]] void refuse(const std::string& field, const Json& given, const std::string& allowed) {
  auto text = given.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  throw RefusedRequest(400, field + " = " + text + ", must be " + allowed, field);
}

/// Reads the fields of a request, each of which may be null or left out.
class Fields {
 public:
  explicit Fields(const Json& body) : body_(body) {}

  /// nullptr: not given.
  const Json* find(const char* field) {
    known_.insert(field);
    const auto found = body_.find(field);
    return found == body_.end() || found->is_null() ? nullptr : &*found;
  }
  void read(const char* field, std::int64_t low, std::int64_t high, std::int64_t& value) {
    const auto* given = find(field);
    if (given == nullptr) return;
    const auto allowed =
        "an integer in [" + std::to_string(low) + ", " + std::to_string(high) + "]";
    if (!given->is_number_integer()) refuse(field, *given, allowed);
    const bool beyond = given->is_number_unsigned() &&
                        given->get<std::uint64_t>() > static_cast<std::uint64_t>(high);
    if (beyond || given->get<std::int64_t>() < low || given->get<std::int64_t>() > high) {
      refuse(field, *given, allowed);
    }
    value = given->get<std::int64_t>();
  }
  void read(const char* field, double low, double high, double& value) {
    const auto* given = find(field);
    if (given == nullptr) return;
    const auto number = given->is_number() ? given->get<double>() : NAN;
    if (!(number >= low && number <= high)) {
      refuse(field, *given, "a number in [" + shortest(low) + ", " + shortest(high) + "]");
    }
    value = number;
  }
  void read(const char* field, bool& value) {
    const auto* given = find(field);
    if (given == nullptr) return;
    if (!given->is_boolean()) refuse(field, *given, "true or false");
    value = given->get<bool>();
  }
  /// What would change the answer in a way that is not offered.
  void only(const char* field, const Json& neutral) {
    const auto* given = find(field);
    if (given != nullptr && *given != neutral) {
      refuse(field, *given, neutral.dump() + " or left out: this server does not offer it");
    }
  }
  void require_known() const {
    for (const auto& [field, value] : body_.items()) {
      if (known_.contains(field)) continue;
      throw RefusedRequest(400,
                           "unknown field '" + field + "', known: " +
                               join(std::vector<std::string>(known_.begin(), known_.end())),
                           field);
    }
  }

 private:
  const Json& body_;
  std::set<std::string> known_;
};

/// A text, or a list of `least` to `most` of them.
std::vector<std::string> texts(const char* field, const Json& given, std::size_t least,
                               std::size_t most) {
  if (given.is_string()) return {given.get<std::string>()};
  const bool listed =
      given.is_array() && given.size() >= least && given.size() <= most &&
      std::all_of(given.begin(), given.end(), [](const Json& one) { return one.is_string(); });
  if (!listed) {
    refuse(field, given, "a text, or a list of at most " + std::to_string(most) + " texts");
  }
  return given.get<std::vector<std::string>>();
}

void read_texts(Fields& fields, CompletionRequest& request) {
  const auto* model = fields.find("model");
  if (model == nullptr) throw RefusedRequest(400, "model is missing, must be given", "model");
  if (!model->is_string()) refuse("model", *model, "a text");
  request.model = model->get<std::string>();
  const auto* prompt = fields.find("prompt");
  if (prompt == nullptr) throw RefusedRequest(400, "prompt is missing, must be given", "prompt");
  request.prompts = texts("prompt", *prompt, 1, kMostPrompts);
  const auto* stop = fields.find("stop");
  if (stop == nullptr) return;
  request.stop = texts("stop", *stop, 0, kMostStops);
  for (const auto& text : request.stop) {
    if (text.empty()) refuse("stop", *stop, "no empty text");
  }
}

void read_stream(Fields& fields, CompletionRequest& request) {
  fields.read("stream", request.stream);
  const auto* options = fields.find("stream_options");
  if (options == nullptr) return;
  if (!request.stream) refuse("stream_options", *options, "left out without stream");
  if (!options->is_object()) refuse("stream_options", *options, "an object");
  Fields own(*options);
  own.read("include_usage", request.stream_usage);
  bool ignored = false;
  own.read("include_obfuscation", ignored);  // which only hides lengths from those who listen in
  own.require_known();
}

/// Bytes at the end of a text that begin a character of UTF-8 without ending it.
std::size_t incomplete_bytes(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;
    const std::size_t length = byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : byte >= 0xC0U ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

nlohmann::ordered_json error_json(const RefusedRequest& refused) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  return {{"error",
           {{"message", refused.what()},
            {"type", refused.status >= 500 ? "server_error" : "invalid_request_error"},
            {"param", or_null(refused.param)},
            {"code", or_null(refused.code)}}}};
}

namespace {

Json parsed(const std::string& body) {
  bool too_deep = false;
  auto json = Json::parse(
      body,
      [&](int depth, Json::parse_event_t, const Json&) {
        too_deep = too_deep || depth > kDeepest;
        return !too_deep;
      },
      /*allow_exceptions=*/false);
  if (too_deep) {
    throw RefusedRequest(400, "the body is nested deeper than " + std::to_string(kDeepest));
  }
  return json;
}

}  // namespace

CompletionRequest parse_completion_request(const std::string& body) {
  const auto json = parsed(body);
  if (!json.is_object()) throw RefusedRequest(400, "the body must be a JSON object");
  Fields fields(json);
  CompletionRequest request;
  read_texts(fields, request);
  fields.read("max_tokens", 0, kMostTokens, request.max_tokens);
  fields.read("temperature", 0.0, 2.0, request.temperature);
  fields.read("top_p", 1e-9, 1.0, request.top_p);
  fields.read("top_k", -1, 1'000'000'000, request.top_k);  // elsewhere -1 means all
  request.top_k = std::max<std::int64_t>(request.top_k, 0);
  fields.read("n", 1, kMostCompletions, request.n);
  std::int64_t seed = 1;
  fields.read("seed", 0, std::int64_t{1} << 53, seed);
  request.seed = static_cast<std::uint64_t>(seed);
  if (fields.find("logprobs") != nullptr) {
    fields.read("logprobs", 0, kMostLogprobs, request.logprobs.emplace());
  }
  fields.read("echo", request.echo);
  read_stream(fields, request);
  fields.only("best_of", request.n);
  fields.only("suffix", "");
  fields.only("logit_bias", Json::object());
  fields.only("presence_penalty", 0);
  fields.only("frequency_penalty", 0);
  (void)fields.find("user");  // a name for logs of who operates a server
  fields.require_known();
  if (request.echo && (request.logprobs || request.stream)) {
    throw RefusedRequest(400, "echo = true, must be false beside logprobs and stream", "echo");
  }
  return request;
}

std::string CompletionText::grow(const std::string& text) {
  if (stopped_) return {};
  text_ = text;
  auto end = text_.size();
  for (const auto& stop : stop_) end = std::min(end, text_.find(stop));
  if (end < text_.size()) {
    stopped_ = true;
    text_.resize(end);
  } else {
    std::size_t held = incomplete_bytes(text_);
    for (const auto& stop : stop_) {
      for (auto length = std::min(stop.size() - 1, text_.size()); length > held; --length) {
        if (text_.ends_with(std::string_view(stop).substr(0, length))) held = length;
      }
    }
    end -= held;
  }
  if (end <= sent_) return {};
  const auto from = std::exchange(sent_, end);
  return text_.substr(from, end - from);
}

std::string CompletionText::rest() {
  const auto from = std::min(std::exchange(sent_, text_.size()), text_.size());
  return text_.substr(from);
}

}  // namespace nas
