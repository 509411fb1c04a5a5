#include "core/stop.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <limits>

#include <sys/time.h>
#include <unistd.h>

namespace nas {

namespace {

std::atomic<bool> stop_flag{
    false};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): set by signal handlers
static_assert(std::atomic<bool>::is_always_lock_free);

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
std::atomic<std::int64_t> stop_at{kNever};  // NOLINT: as above; nanoseconds of the steady clock

std::int64_t nanoseconds_now() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

constexpr int kInterrupted = 130;

extern "C" void on_stop_signal(int /*signal*/) {
  if (stop_flag.exchange(true)) _exit(kInterrupted);
  itimerval deadline{};
  deadline.it_value.tv_sec = 4;
  deadline.it_value.tv_usec = 500000;
  setitimer(ITIMER_REAL, &deadline, nullptr);
}

extern "C" void on_deadline(int /*signal*/) { _exit(kInterrupted); }

}  // namespace

void install_stop_handlers() {
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = on_deadline;
  sigaction(SIGALRM, &action, nullptr);
}

bool stop_requested() noexcept {
  return stop_flag.load(std::memory_order_relaxed) ||
         nanoseconds_now() >= stop_at.load(std::memory_order_relaxed);
}

void request_stop(bool stop) noexcept { stop_flag.store(stop); }

StopDeadline::StopDeadline(double seconds) noexcept {
  constexpr double kLongest = 1e9;  // seconds; what is longer is never reached
  if (seconds >= kLongest) return;
  stop_at.store(nanoseconds_now() + static_cast<std::int64_t>(seconds * 1e9));
}

StopDeadline::~StopDeadline() { stop_at.store(kNever); }

bool stopped_by_deadline() noexcept { return !stop_flag.load() && stop_requested(); }

}  // namespace nas
