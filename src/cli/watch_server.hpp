#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/run_watch.hpp"
#include "cli/watch_list.hpp"

namespace nas {

/// Shows a run to browsers that know a token: GET and HEAD of / (the page) and of /state.json (what
/// the page shows; `since=VERSION` leaves out records that have not changed, an ETag says whether
/// anything has). Of a list of runs / is the page of the list and /runs.json what that shows; run
/// number N of it has its page and state at /run/N/ and /run/N/state.json. 403 without the token,
/// 404 for other paths, 405 for other methods. HTTP/1.1 with any number of connections, on the
/// thread that calls serve().
class WatchServer {
 public:
  /// Begins to listen, and to heed signals; SIGHUP not where nohup ignores it.
  /// @param port  0: any that is free.
  /// @throws InputError if the host is no address of this machine, or the port is in use.
  WatchServer(const std::string& host, std::uint16_t port);
  ~WatchServer();
  WatchServer(const WatchServer&) = delete;
  WatchServer& operator=(const WatchServer&) = delete;

  /// Where the page is, with the token: "http://127.0.0.1:41234/?token=...".
  [[nodiscard]] std::string url() const;
  /// Answers until SIGINT, SIGTERM or SIGHUP, also one that came since this was made.
  void serve(RunWatch& watch);
  void serve(WatchList& list);

 private:
  void serve();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nas
