#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

namespace nas {

using HttpRequest = boost::beast::http::request<boost::beast::http::string_body>;
using HttpResponse = boost::beast::http::response<boost::beast::http::string_body>;

/// Sends a part of an answer. @return false where nobody reads it any more.
using SendPart = std::function<bool(std::string_view)>;

/// What a request is answered with.
struct HttpAnswer {
  HttpResponse response{};
  /// Sends what follows the header part by part, in place of a body; HTTP/1.1 only.
  std::function<void(const SendPart&)> parts{};
};

/// HTTP/1.1 with any number of connections, answered one request after the other on the thread that
/// calls serve(). An answer that throws is 500 with the exception's text, a body that is too long 413.
class HttpServer {
 public:
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;
  /// Fills in the body and its type of what the server itself refuses.
  using Refusal = std::function<void(HttpResponse&, const std::string& message)>;

  /// Begins to listen.
  /// @param port     0: any that is free.
  /// @param longest  bytes of a request's body.
  /// @throws InputError if the host is no address of this machine, or the port is in use.
  HttpServer(const std::string& host, std::uint16_t port, std::uint64_t longest);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Where it listens: "http://127.0.0.1:41234".
  [[nodiscard]] std::string address() const;
  /// From now on SIGINT, SIGTERM and SIGHUP (not where nohup ignores it) end serve().
  void heed_signals();
  /// What else ends serve(), asked ten times a second.
  void end_when(std::function<bool()> ended);
  /// How refusals are written; else as plain text. Before serve().
  void refuse_by(Refusal refusal);
  void serve(const Handler& handler);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nas
