#include "cli/watch_server.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <ctime>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include <boost/beast/http.hpp>
#include <sys/random.h>

#include "cli/http_server.hpp"
#include "core/error.hpp"
#include "watch_page.hpp"

namespace nas {

namespace {

namespace http = boost::beast::http;

constexpr std::uint64_t kLongestBody = 65536;  ///< of requests, which need none

/// 128 random bits as hexadecimal digits.
std::string random_word() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw MachineError("the system has no random numbers");
  }
  constexpr const char* kDigits = "0123456789abcdef";
  std::string word;
  for (const auto byte : bytes) {
    word += kDigits[byte >> 4U];
    word += kDigits[byte & 15U];
  }
  return word;
}

/// Takes as long for a wrong word as for the right one.
bool equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned>(a[i]) ^ static_cast<unsigned>(b[i]);
  }
  return difference == 0;
}

/// The value of a name in the part of a target behind "?"; what is given here needs no decoding.
std::string_view parameter(std::string_view target, std::string_view name) {
  const auto question = target.find('?');
  if (question == std::string_view::npos) return {};
  auto rest = target.substr(question + 1);
  while (!rest.empty()) {
    const auto end = std::min(rest.find('&'), rest.size());
    const auto pair = rest.substr(0, end);
    if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=') {
      return pair.substr(name.size() + 1);
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

/// The present time in the form of HTTP, so that a page can tell how its clock differs.
std::string date() {
  const auto now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 64> text{};
  const auto size = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text.data(), size};
}

/// A version; -1, which is none, where the text is no number.
std::int64_t version_of(std::string_view text) {
  if (text.empty() || text.size() > 18 ||
      text.find_first_not_of("0123456789") != std::string_view::npos) {
    return -1;
  }
  return std::stoll(std::string(text));
}

}  // namespace

struct WatchServer::State {
  /// What a path stands for.
  struct Place {
    bool is_page = false;
    std::optional<std::size_t> run{};  ///< its number in the list
  };

  RunWatch* watch = nullptr;
  WatchList* list = nullptr;  ///< in place of the one run
  std::string token = random_word();
  std::string nonce = random_word();  ///< of the page's own style and script, the only ones allowed
  std::string page = page_of(kWatchPage, kWatchScript);
  std::string list_page = page_of(kWatchListPage, kWatchListScript);
  HttpServer server;

  State(const std::string& host, std::uint16_t port) : server(host, port, kLongestBody) {}
  [[nodiscard]] std::string page_of(const char* markup, const char* script) const;
  [[nodiscard]] std::optional<Place> place_of(std::string_view path) const;
  /// What changes with what is shown, and what is shown since a version.
  [[nodiscard]] std::pair<std::int64_t, std::function<nlohmann::json()>> look(
      const Place& place, std::int64_t since) const;
  [[nodiscard]] HttpResponse answer(const HttpRequest& request);
};

std::string WatchServer::State::page_of(const char* markup, const char* script) const {
  auto text = replaced(markup, "{{style}}", kWatchStyle);
  text = replaced(std::move(text), "{{script}}", std::string(kWatchCommonScript) + script);
  return replaced(std::move(text), "{{nonce}}", nonce);
}

/// @return nothing where there is nothing. A run is known by its number alone, so that no path of a
/// request is one of a file.
std::optional<WatchServer::State::Place> WatchServer::State::place_of(std::string_view path) const {
  constexpr std::string_view kRun = "/run/";
  if (path == "/") return Place{.is_page = true};
  if (path == (list != nullptr ? "/runs.json" : "/state.json")) return Place{};
  if (list == nullptr || !path.starts_with(kRun)) return std::nullopt;
  path.remove_prefix(kRun.size());
  const auto number = version_of(path.substr(0, path.find('/')));
  path.remove_prefix(std::min(path.find('/'), path.size()));
  if (number < 0 || !list->contains(static_cast<std::size_t>(number))) return std::nullopt;
  if (path != "/" && path != "/state.json") return std::nullopt;
  return Place{.is_page = path == "/", .run = static_cast<std::size_t>(number)};
}

std::pair<std::int64_t, std::function<nlohmann::json()>> WatchServer::State::look(
    const Place& place, std::int64_t since) const {
  if (list != nullptr && !place.run) {
    list->look();
    return {list->version(), [this] { return list->state(); }};
  }
  auto& run = place.run ? list->open(*place.run) : *watch;
  if (!place.run) run.look();
  return {run.version(), [&run, since] { return run.state(since); }};
}

HttpResponse WatchServer::State::answer(const HttpRequest& request) {
  HttpResponse response;
  response.set(http::field::content_type, "text/plain; charset=utf-8");
  response.set(http::field::cache_control, "no-store");
  response.set(http::field::date, date());
  response.set("X-Content-Type-Options", "nosniff");
  response.set("Referrer-Policy", "no-referrer");
  const auto refuse = [&response](http::status status, const char* why) {
    response.result(status);
    response.body() = why;
    return response;
  };
  const std::string_view target{request.target().data(), request.target().size()};
  const auto path = target.substr(0, target.find('?'));
  if (!equal(parameter(target, "token"), token)) {
    return refuse(http::status::forbidden, "the address that nas-watch prints has a token\n");
  }
  const auto place = place_of(path);
  if (!place) return refuse(http::status::not_found, "not here\n");
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    response.set(http::field::allow, "GET, HEAD");
    return refuse(http::status::method_not_allowed, "only GET and HEAD\n");
  }
  if (place->is_page) {
    response.set(http::field::content_type, "text/html; charset=utf-8");
    response.set("Content-Security-Policy",
                 "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; "
                 "form-action 'none'; frame-ancestors 'none'; style-src 'nonce-" +
                     nonce + "'; script-src 'nonce-" + nonce + "'");
    response.body() = list != nullptr && !place->run ? list_page : page;
    return response;
  }
  const auto [version, state] = look(*place, version_of(parameter(target, "since")));
  // With a part of the nonce: another process numbers its versions from the beginning.
  const auto tag = "\"" + nonce.substr(0, 8) + "-" + std::to_string(version) + "\"";
  response.set(http::field::etag, tag);
  response.set(http::field::content_type, "application/json");
  if (request[http::field::if_none_match] == tag) {
    response.result(http::status::not_modified);
    return response;
  }
  // What programs wrote into a record may be no UTF-8.
  response.body() = state().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return response;
}

WatchServer::WatchServer(const std::string& host, std::uint16_t port)
    : state_(new State(host, port)) {}

WatchServer::~WatchServer() = default;

std::string WatchServer::url() const {
  return state_->server.address() + "/?token=" + state_->token;
}

void WatchServer::serve(RunWatch& watch) {
  state_->watch = &watch;
  serve();
}

void WatchServer::serve(WatchList& list) {
  state_->list = &list;
  serve();
}

void WatchServer::serve() {
  state_->server.serve([this](const HttpRequest& request) { return state_->answer(request); });
}

}  // namespace nas
