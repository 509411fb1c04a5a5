#include "cli/watch_server.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <sys/random.h>

#include "core/error.hpp"
#include "core/stop.hpp"
#include "watch_page.hpp"

namespace nas {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;
using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;
using Error = beast::error_code;

constexpr std::chrono::seconds kPatience{60};     ///< with a connection that is silent
constexpr std::chrono::milliseconds kPause{200};  ///< after a connection that failed
constexpr std::uint32_t kLongestHeader = 16384;
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
  RunWatch* watch = nullptr;
  std::string token = random_word();
  std::string nonce = random_word();  ///< of the page's own style and script, the only ones allowed
  std::string page =
      replaced(replaced(replaced(kWatchPage, "{{style}}", kWatchStyle), "{{script}}", kWatchScript),
               "{{nonce}}", nonce);
  asio::io_context context{1};
  Tcp::acceptor acceptor{context};
  asio::steady_timer pause{context};
  asio::signal_set signals{context, SIGINT, SIGTERM};

  void listen(const std::string& host, std::uint16_t port);
  void accept();
  [[nodiscard]] Response answer(const Request& request);
};

namespace {

/// One connection: requests and answers in turns, until one side ends it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Answer = std::function<Response(const Request&)>;
  Connection(Tcp::socket socket, Answer answer)
      : stream_(std::move(socket)), answer_(std::move(answer)) {}

  void read() {
    parser_.emplace();
    parser_->header_limit(kLongestHeader);
    parser_->body_limit(kLongestBody);
    stream_.expires_after(kPatience);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](Error error, std::size_t) {
                       if (!error) self->write();
                     });
  }

 private:
  void write() {
    stream_.expires_after(kPatience);
    const auto request = parser_->release();
    try {
      response_ = answer_(request);
    } catch (const std::exception& error) {
      response_ = {http::status::internal_server_error, request.version()};
      response_.body() = std::string(error.what()) + '\n';
    }
    response_.version(request.version());
    response_.keep_alive(request.keep_alive());
    response_.prepare_payload();
    const bool close = response_.need_eof();
    const auto then = [self = shared_from_this(), close](Error error, std::size_t) {
      if (error) return;
      if (!close) return self->read();
      Error ignored;
      self->stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
    };
    if (request.method() == http::verb::head) {  // the header says what the body would be
      serializer_.emplace(response_);
      http::async_write_header(stream_, *serializer_, then);
    } else {
      http::async_write(stream_, response_, then);
    }
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  Response response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  Answer answer_;
};

/// An address, or that of a name which means this machine alone: what else a name means may change.
asio::ip::address address_of(asio::io_context& context, const std::string& host) {
  Error error;
  const auto address = asio::ip::make_address(host, error);
  if (!error) return address;
  Tcp::resolver resolver(context);
  for (const auto& protocol : {Tcp::v4(), Tcp::v6()}) {
    for (const auto& found : resolver.resolve(protocol, host, "", error)) {
      if (found.endpoint().address().is_loopback()) return found.endpoint().address();
    }
  }
  throw InputError("command line: --host " + host +
                   ", must be an address of this machine, such as 127.0.0.1 or ::1, or localhost");
}

}  // namespace

void WatchServer::State::listen(const std::string& host, std::uint16_t port) {
  Error error;
  const Tcp::endpoint end(address_of(context, host), port);
  acceptor.open(end.protocol(), error);
  if (!error) acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(end, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    throw InputError("command line: cannot listen on " + host + " port " + std::to_string(port) +
                     ": " + error.message() +
                     (port == 0 ? "" : "; --port 0 takes one that is free"));
  }
}

void WatchServer::State::accept() {
  acceptor.async_accept([this](Error error, Tcp::socket socket) {
    if (!error) {
      std::make_shared<Connection>(std::move(socket), [this](const Request& request) {
        return answer(request);
      })->read();
    }
    if (!error) return accept();
    // No descriptor is left, until a connection ends.
    pause.expires_after(kPause);
    pause.async_wait([this](Error) { accept(); });
  });
}

Response WatchServer::State::answer(const Request& request) {
  Response response;
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
  if (path != "/" && path != "/state.json") return refuse(http::status::not_found, "not here\n");
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    response.set(http::field::allow, "GET, HEAD");
    return refuse(http::status::method_not_allowed, "only GET and HEAD\n");
  }
  if (path == "/") {
    response.set(http::field::content_type, "text/html; charset=utf-8");
    response.set("Content-Security-Policy",
                 "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; "
                 "form-action 'none'; frame-ancestors 'none'; style-src 'nonce-" +
                     nonce + "'; script-src 'nonce-" + nonce + "'");
    response.body() = page;
    return response;
  }
  watch->look();
  // With a part of the nonce: another process numbers its versions from the beginning.
  const auto tag = "\"" + nonce.substr(0, 8) + "-" + std::to_string(watch->version()) + "\"";
  response.set(http::field::etag, tag);
  response.set(http::field::content_type, "application/json");
  if (request[http::field::if_none_match] == tag) {
    response.result(http::status::not_modified);
    return response;
  }
  const auto state = watch->state(version_of(parameter(target, "since")));
  // What programs wrote into a record may be no UTF-8.
  response.body() = state.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return response;
}

WatchServer::WatchServer(const std::string& host, std::uint16_t port) : state_(new State) {
  if (!is_ignored(SIGHUP)) state_->signals.add(SIGHUP);
  state_->listen(host, port);
}

WatchServer::~WatchServer() = default;

std::string WatchServer::url() const {
  const auto end = state_->acceptor.local_endpoint();
  const auto host = end.address().to_string();
  return "http://" + (end.address().is_v6() ? "[" + host + "]" : host) + ":" +
         std::to_string(end.port()) + "/?token=" + state_->token;
}

void WatchServer::serve(RunWatch& watch) {
  state_->watch = &watch;
  state_->signals.async_wait([this](Error, int) { state_->context.stop(); });
  state_->accept();
  state_->context.run();
}

}  // namespace nas
