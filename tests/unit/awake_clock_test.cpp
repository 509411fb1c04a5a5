#include "core/awake_clock.hpp"

#include <csignal>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/stop.hpp"
#include "unit/forked.hpp"

namespace nas::testing {
namespace {

using Seconds = std::chrono::duration<double>;
using std::chrono::steady_clock;

TEST(AwakeClock, GoesWithTheSteadyClockAndNeverBack) {
  const auto began = steady_clock::now();
  const auto awake = awake_now();
  auto last = awake;
  while (steady_clock::now() - began < std::chrono::milliseconds(600)) {
    const auto now = awake_now();
    ASSERT_GE(now, last);
    last = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_NEAR(Seconds(last - awake).count(), Seconds(steady_clock::now() - began).count(), 0.1);
}

/// Waits, is stopped for 5 s by a child of its own, and says whether the clock stood still meanwhile,
/// and with it what a stop is asked for by.
int stopped() {
  const auto began = steady_clock::now();
  const auto awake = awake_now();
  const StopDeadline deadline(4.0);
  const pid_t self = getpid();
  const pid_t waker = fork();
  if (waker == 0) {
    kill(self, SIGSTOP);
    sleep(5);
    kill(self, SIGCONT);
    _exit(0);
  }
  waitpid(waker, nullptr, 0);
  const auto at_once = awake_now();  // perhaps before the gap is noted
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  const auto noted = awake_now();
  const bool passed = steady_clock::now() - began > std::chrono::seconds(5);
  const bool still =
      noted - awake < std::chrono::milliseconds(3600) && at_once >= awake && noted >= at_once;
  return passed && still && !stop_requested() ? 0 : 1;
}

TEST(AwakeClock, StandsStillWhileTheProcessIsStopped) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer ends a child of fork() that starts a thread";
#endif
  (void)awake_now();  // a child of fork() has no thread of this process, and begins anew
  EXPECT_EQ(in_child(stopped), 0);
}

}  // namespace
}  // namespace nas::testing
