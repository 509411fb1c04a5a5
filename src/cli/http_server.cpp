#include "cli/http_server.hpp"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "core/error.hpp"
#include "core/stop.hpp"

namespace nas {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;
using Error = beast::error_code;

constexpr std::chrono::seconds kPatience{60};     ///< with a connection that is silent
constexpr std::chrono::milliseconds kPause{200};  ///< after a connection that failed
constexpr std::uint32_t kLongestHeader = 16384;
constexpr std::chrono::seconds kFarewell{5};  ///< until a connection that has ended is closed
constexpr std::size_t kLongestRest = std::size_t{1} << 26;  ///< bytes that are read until then

/// One connection: requests and answers in turns, until one side ends it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Tcp::socket socket, const HttpServer::Handler& handler, std::uint64_t longest)
      : stream_(std::move(socket)), handler_(&handler), longest_(longest) {}

  void read() {
    parser_.emplace();
    parser_->header_limit(kLongestHeader);
    parser_->body_limit(longest_);
    stream_.expires_after(kPatience);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](Error error, std::size_t) {
                       if (!error) self->write();
                       if (error == http::error::body_limit) self->refuse_body();
                     });
  }

 private:
  void write() {
    stream_.expires_after(kPatience);
    const auto request = parser_->release();
    try {
      answer_ = (*handler_)(request);
    } catch (const std::exception& error) {
      refuse(http::status::internal_server_error, error.what());
    }
    answer_.version(request.version());
    answer_.keep_alive(request.keep_alive());
    send(request.method() == http::verb::head);
  }

  void refuse(http::status status, const std::string& message) {
    answer_ = {};
    answer_.result(status);
    answer_.body() = message + '\n';
  }

  void refuse_body() {
    refuse(http::status::payload_too_large,
           "a request has at most " + std::to_string(longest_) + " bytes");
    answer_.keep_alive(false);
    send(false);
  }

  void send(bool header_alone) {
    answer_.prepare_payload();
    const bool close = answer_.need_eof();
    const auto then = [self = shared_from_this(), close](Error error, std::size_t) {
      if (error) return;
      if (!close) return self->read();
      self->end();
    };
    if (header_alone) {  // the header says what the body would be
      serializer_.emplace(answer_);
      http::async_write_header(stream_, *serializer_, then);
    } else {
      http::async_write(stream_, answer_, then);
    }
  }

  void end() {
    Error ignored;
    stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kFarewell);
    drop_rest(0);
  }

  /// Who is still sending would see a broken connection, and not the answer, if it were closed.
  void drop_rest(std::size_t dropped) {
    if (dropped > kLongestRest) return;
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kLongestHeader),
                            [self = shared_from_this(), dropped](Error error, std::size_t read) {
                              if (!error) self->drop_rest(dropped + read);
                            });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  HttpResponse answer_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  const HttpServer::Handler* handler_;
  std::uint64_t longest_;
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

struct HttpServer::State {
  Handler handler;
  std::uint64_t longest = 0;
  asio::io_context context{1};
  Tcp::acceptor acceptor{context};
  asio::steady_timer pause{context};
  asio::signal_set signals{context};

  void listen(const std::string& host, std::uint16_t port);
  void accept();
};

void HttpServer::State::listen(const std::string& host, std::uint16_t port) {
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

void HttpServer::State::accept() {
  acceptor.async_accept([this](Error error, Tcp::socket socket) {
    if (!error) {
      std::make_shared<Connection>(std::move(socket), handler, longest)->read();
      return accept();
    }
    // No descriptor is left, until a connection ends.
    pause.expires_after(kPause);
    pause.async_wait([this](Error) { accept(); });
  });
}

HttpServer::HttpServer(const std::string& host, std::uint16_t port, std::uint64_t longest)
    : state_(new State) {
  state_->longest = longest;
  state_->listen(host, port);
  state_->signals.add(SIGINT);
  state_->signals.add(SIGTERM);
  if (!is_ignored(SIGHUP)) state_->signals.add(SIGHUP);
}

HttpServer::~HttpServer() = default;

std::string HttpServer::address() const {
  const auto end = state_->acceptor.local_endpoint();
  const auto host = end.address().to_string();
  return "http://" + (end.address().is_v6() ? "[" + host + "]" : host) + ":" +
         std::to_string(end.port());
}

void HttpServer::serve(const Handler& handler) {
  state_->handler = handler;
  state_->signals.async_wait([this](Error error, int) {
    if (!error) state_->context.stop();
  });
  state_->accept();
  state_->context.run();
}

}  // namespace nas
