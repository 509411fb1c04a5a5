#include "core/stop.hpp"

#include <atomic>
#include <csignal>

#include <sys/time.h>
#include <unistd.h>

namespace nas {

namespace {

std::atomic<bool> stop_flag{
    false};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): set by signal handlers
static_assert(std::atomic<bool>::is_always_lock_free);

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

bool stop_requested() noexcept { return stop_flag.load(std::memory_order_relaxed); }

void request_stop(bool stop) noexcept { stop_flag.store(stop); }

}  // namespace nas
