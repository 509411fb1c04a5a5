#include "core/stop.hpp"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <limits>
#include <utility>

#include <sys/time.h>
#include <unistd.h>

#include "core/awake_clock.hpp"

namespace nas {

namespace {

std::atomic<bool> stop_flag{
    false};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): set by signal handlers
static_assert(std::atomic<bool>::is_always_lock_free);

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
std::atomic<std::int64_t> stop_at{kNever};  // NOLINT: as above; nanoseconds of awake_now()

std::int64_t nanoseconds_now() { return awake_now().time_since_epoch().count(); }

bool deadline_has_passed() noexcept {
  const auto at = stop_at.load(std::memory_order_relaxed);
  return at != kNever && nanoseconds_now() >= at;
}

std::atomic<int> failures{0};  // NOLINT: as above; of StopOfOthers

std::atomic<int> leaving_code{130};        // NOLINT: as above
std::atomic<std::int64_t> microseconds{};  // NOLINT: as above; for an orderly end

/// Leaves the process where stopping takes too long.
void leave_soon() {
  constexpr std::int64_t kSecond = 1000000;
  itimerval deadline{};
  deadline.it_value.tv_sec = microseconds.load() / kSecond;
  deadline.it_value.tv_usec = microseconds.load() % kSecond;
  setitimer(ITIMER_REAL, &deadline, nullptr);
}

/// From people and service managers: a second one means now.
extern "C" void on_stop_signal(int /*signal*/) {
  static std::atomic<bool> once{false};
  if (once.exchange(true)) _exit(leaving_code.load());
  if (!stop_flag.exchange(true)) leave_soon();
}

/// From the system, which may send several of them for one event.
extern "C" void on_notice(int /*signal*/) {
  if (!stop_flag.exchange(true)) leave_soon();
}

extern "C" void on_deadline(int /*signal*/) { _exit(leaving_code.load()); }

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

}  // namespace

bool is_ignored(int signal) noexcept {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

void install_stop_handlers(double seconds, int code) {
  microseconds.store(static_cast<std::int64_t>(1e6 * seconds));
  leaving_code.store(code);
  handle(SIGINT, on_stop_signal);
  handle(SIGTERM, on_stop_signal);
  if (!is_ignored(SIGHUP)) handle(SIGHUP, on_notice);
  handle(SIGUSR1, on_notice);
  handle(SIGXCPU, on_notice);
  handle(SIGALRM, on_deadline);
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);
}

bool stop_of_process_requested() noexcept {
  return stop_flag.load(std::memory_order_relaxed) || deadline_has_passed();
}

bool stop_requested() noexcept {
  return failures.load(std::memory_order_relaxed) > 0 || stop_of_process_requested();
}

void request_stop(bool stop) noexcept { stop_flag.store(stop); }

StopDeadline::StopDeadline(double seconds) {
  constexpr double kLongest = 1e9;  // seconds; what is longer is never reached
  if (seconds >= kLongest) return;
  stop_at.store(nanoseconds_now() + static_cast<std::int64_t>(seconds * 1e9));
}

StopDeadline::~StopDeadline() { stop_at.store(kNever); }

bool stopped_by_deadline() noexcept { return !stop_flag.load() && deadline_has_passed(); }

void StopOfOthers::ask() noexcept {
  if (std::exchange(asked_, true)) return;
  ++failures;
}

StopOfOthers::~StopOfOthers() {
  if (asked_) --failures;
}

}  // namespace nas
