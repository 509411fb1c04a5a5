#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

namespace nas {

using HttpRequest = boost::beast::http::request<boost::beast::http::string_body>;
using HttpResponse = boost::beast::http::response<boost::beast::http::string_body>;

/// HTTP/1.1 with any number of connections, answered one request after the other on the thread that
/// calls serve(). An answer that throws is 500 with the exception's text, a body that is too long 413.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

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
  /// Until SIGINT, SIGTERM or SIGHUP (not where nohup ignores it), also those since the beginning.
  void serve(const Handler& handler);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nas
