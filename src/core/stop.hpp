#pragma once

#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// Cooperative stopping by signals. Long work asks stop_requested() at least once per step and
/// leaves by throwing StopRequested, with everything that is finished already stored.

/// Installs the handlers. SIGINT and SIGTERM, SIGHUP (a lost connection; not where nohup ignores
/// it), SIGUSR1 (what batch systems send ahead of the end) and SIGXCPU ask to stop. SIGINT or
/// SIGTERM for the second time, or so many seconds without an end, leaves the process at once: the
/// store is transactional and checkpoints are renamed into place, so nothing is lost.
///
/// SIGPIPE and SIGXFSZ are ignored: a reader that closes standard output wants no more of it, and a
/// file beyond the process's limit of size is an error of the write.
///
/// May be called again, with another time.
/// @param seconds  for an orderly end, > 0.
/// @param code     exit code of a process that leaves at once.
void install_stop_handlers(double seconds = 4.5, int code = 130);
/// @return whether this process ignores a signal, as it does SIGHUP where nohup has started it.
bool is_ignored(int signal) noexcept;
/// @return whether a stop was asked for. Safe from any thread and cheap.
bool stop_requested() noexcept;
/// @return whether it is this process that is to stop: StopOfOthers does not count.
bool stop_of_process_requested() noexcept;
/// Asks for a stop, or (false) takes it back: for tests and embedding programs.
void request_stop(bool stop = true) noexcept;

/// Asks for a stop that ends with the object: where one of several that work together fails, the
/// others stop.
class StopOfOthers {
 public:
  StopOfOthers() = default;
  ~StopOfOthers();
  StopOfOthers(const StopOfOthers&) = delete;
  StopOfOthers& operator=(const StopOfOthers&) = delete;

  /// Not from two threads at once.
  void ask() noexcept;

 private:
  bool asked_ = false;
};

/// While it lives, a stop is asked for once so many seconds of awake_now() from its beginning have
/// passed.
class StopDeadline {
 public:
  explicit StopDeadline(double seconds);
  ~StopDeadline();
  StopDeadline(const StopDeadline&) = delete;
  StopDeadline& operator=(const StopDeadline&) = delete;
};
/// @return whether such a time has passed and nothing else asked for a stop.
bool stopped_by_deadline() noexcept;

}  // namespace nas
