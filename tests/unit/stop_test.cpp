#include "core/stop.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "unit/forked.hpp"

namespace nas {
namespace {

TEST(Stop, SignalsThatAnnounceTheEndRequestAStop) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXCPU}) {
    const int code = testing::in_child([number] {
      install_stop_handlers();
      if (stop_requested()) return 1;
      raise(number);
      return stop_requested() ? 0 : 2;
    });
    EXPECT_EQ(code, 0) << strsignal(number);
  }
}

TEST(Stop, ASecondSignalEndsAtOnceOnlyWhereAPersonSendsIt) {
  const auto after = [](std::vector<int> signals) {
    return testing::in_child([&] {
      install_stop_handlers();
      for (const int number : signals) raise(number);
      return 0;
    });
  };
  EXPECT_EQ(after({SIGTERM, SIGINT}), 130);
  EXPECT_EQ(after({SIGHUP, SIGHUP, SIGTERM}), 0) << "a closed terminal sends several";
  EXPECT_EQ(after({SIGXCPU, SIGXCPU, SIGXCPU}), 0) << "it comes each second";
}

TEST(Stop, TheTimeForAnOrderlyEndAndTheExitCodeCanBeChosen) {
  const auto begun = std::chrono::steady_clock::now();
  const int code = testing::in_child([] {
    install_stop_handlers();
    install_stop_handlers(0.2, 143);
    raise(SIGTERM);
    std::this_thread::sleep_for(std::chrono::seconds(60));
    while (true) pause();
    return 0;
  });
  EXPECT_EQ(code, 143);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(4));
}

TEST(Stop, WhereOneOfSeveralFailsTheProcessGoesOn) {
  StopOfOthers failure;
  failure.ask();
  EXPECT_TRUE(stop_requested());
  EXPECT_FALSE(stop_of_process_requested());
  request_stop();
  EXPECT_TRUE(stop_of_process_requested());
  request_stop(false);
}

TEST(Stop, NohupKeepsItsMeaning) {
  const int code = testing::in_child([] {
    signal(SIGHUP, SIG_DFL);
    if (is_ignored(SIGHUP)) return 1;
    signal(SIGHUP, SIG_IGN);
    if (!is_ignored(SIGHUP)) return 2;
    install_stop_handlers();
    raise(SIGHUP);
    return stop_requested() ? 3 : 0;
  });
  EXPECT_EQ(code, 0);
}

TEST(Stop, AClosedPipeAndALargeFileAreErrorsOfTheWrite) {
  const TemporaryFolder folder;
  const auto file = folder.write("file", "");
  const int code = testing::in_child([&] {
    install_stop_handlers();
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) return 1;
    close(ends[0]);
    if (write(ends[1], "x", 1) != -1 || errno != EPIPE) return 2;
    const rlimit limit{0, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    const int limited = open(file.c_str(), O_WRONLY);
    if (write(limited, "x", 1) != -1 || errno != EFBIG) return 3;
    return stop_requested() ? 4 : 0;
  });
  EXPECT_EQ(code, 0);
}

// With threads of this process, after those that fork: a thread sanitizer supports no threads in a
// child of a process that has had several.

TEST(Stop, ADeadlineRequestsAStopAndWithdrawsIt) {
  EXPECT_FALSE(stop_requested());
  {
    const StopDeadline deadline(0.02);
    EXPECT_FALSE(stopped_by_deadline());
    while (!stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(stopped_by_deadline());
    request_stop();
    EXPECT_FALSE(stopped_by_deadline()) << "somebody else asked, too";
    request_stop(false);
  }
  EXPECT_FALSE(stop_requested());
  const StopDeadline passed(-1.0);
  EXPECT_TRUE(stop_requested());
}

TEST(Stop, AFarDeadlineIsNone) {
  const StopDeadline deadline(9e300);
  EXPECT_FALSE(stop_requested());
}

TEST(Stop, AStopOnBehalfOfOthersEndsWithItsObject) {
  {
    StopOfOthers failure;
    EXPECT_FALSE(stop_requested());
    failure.ask();
    failure.ask();
    EXPECT_TRUE(stop_requested());
    EXPECT_FALSE(stopped_by_deadline());
  }
  EXPECT_FALSE(stop_requested());
}

}  // namespace
}  // namespace nas
