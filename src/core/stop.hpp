#pragma once

namespace nas {

/// Cooperative stopping by SIGINT and SIGTERM. Long work asks stop_requested() at least once a step
/// and leaves by throwing StopRequested, with everything that is finished already stored.

/// Installs the handlers. The first signal asks to stop; a second one, or 4.5 seconds without an
/// end, leaves the process at once with exit code 130: the store is transactional and checkpoints
/// are renamed into place, so nothing is lost.
void install_stop_handlers();
/// @return whether a stop was asked for. Safe from any thread and cheap.
bool stop_requested() noexcept;
/// Asks for a stop, or (false) takes it back: for tests and embedding programs.
void request_stop(bool stop = true) noexcept;

/// While it lives, a stop is asked for once so many seconds from its beginning have passed.
class StopDeadline {
 public:
  explicit StopDeadline(double seconds) noexcept;
  ~StopDeadline();
  StopDeadline(const StopDeadline&) = delete;
  StopDeadline& operator=(const StopDeadline&) = delete;
};
/// @return whether such a time has passed and nothing else asked for a stop.
bool stopped_by_deadline() noexcept;

}  // namespace nas
