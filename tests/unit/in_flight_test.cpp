#include "core/in_flight.hpp"

#include <csignal>
#include <cstdlib>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

#include "core/durable_file.hpp"
#include "core/stop.hpp"
#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "unit/forked.hpp"

// Sanitizers ask these for their options, before they are ready for code that they instrument. What a process does about its
// signals is looked at here, and they would do something about them before. NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" __attribute__((visibility("default"), no_sanitize("address", "thread"))) const char*
__asan_default_options() {
  return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0";
}
extern "C" __attribute__((visibility("default"), no_sanitize("address", "thread"))) const char*
__tsan_default_options() {
  return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0";
}
// NOLINTEND(bugprone-reserved-identifier)

namespace nas::testing {
namespace {

class InFlightTest : public ::testing::Test {
 protected:
  [[nodiscard]] Texts endings(const std::string& name) const { return endings_of(file_, name); }

  const TemporaryFolder folder_;
  const fs::path file_ = folder_.path() / kEndingsFile;
};

TEST_F(InFlightTest, WhatEndsTheProcessIsNamedWithItsSignal) {
  for (const int signal : {SIGSEGV, SIGFPE}) {
    EXPECT_EQ(in_child([&] {
                const InFlight mark(file_, {"a", "b"});
                return raise(signal);
              }),
              128 + signal);
  }
  EXPECT_EQ(in_child([&] {
              const InFlight mark(file_, {"a"});
              std::abort();
              return 0;
            }),
            128 + SIGABRT);
  EXPECT_THAT(endings("a"), ElementsAre("SIGSEGV", "SIGFPE", "SIGABRT"));
  EXPECT_THAT(endings("b"), ElementsAre("SIGSEGV", "SIGFPE"));
  EXPECT_THAT(endings("c"), IsEmpty());
  forget_endings(file_, {"b", "c"});
  EXPECT_THAT(endings("a"), ElementsAre("SIGSEGV", "SIGFPE", "SIGABRT"));
  EXPECT_THAT(endings("b"), IsEmpty());
  forget_endings(folder_.path() / "none", {"a"});  // no error
}

/// Recurses until the stack is full.
int endless(int depth) {  // NOLINT(misc-no-recursion)
  if (depth < 0) return 0;
  volatile char room[4096];
  room[0] = static_cast<char>(depth);
  return endless(depth + 1) + room[0];
}

TEST_F(InFlightTest, AStackThatOverflowsIsNamed) {
  EXPECT_EQ(in_child([&] {
              const InFlight mark(file_, {"a"});
              return endless(0);
            }),
            128 + SIGSEGV);
  EXPECT_EQ(in_child([&] {
              std::thread([&] {
                const InFlight mark(file_, {"b"});
                endless(0);
              }).join();
              return 0;
            }),
            128 + SIGSEGV);
  EXPECT_THAT(endings("a"), ElementsAre("SIGSEGV"));
  EXPECT_THAT(endings("b"), ElementsAre("SIGSEGV"));
}

TEST_F(InFlightTest, NothingIsWrittenThroughALinkAndNobodyIsWaitedFor) {
  const auto crash = [this] {
    return in_child([this] {
      alarm(20);
      const InFlight mark(file_, {"a"});
      return raise(SIGSEGV);
    });
  };
  const auto other = folder_.write("other.txt", "mine\n");
  fs::create_symlink(other, file_);
  EXPECT_EQ(crash(), 128 + SIGSEGV);
  EXPECT_EQ(fs::file_size(other), 5U);
  fs::remove(file_);
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_EQ(crash(), 128 + SIGSEGV);
}

TEST_F(InFlightTest, WhatEndsOtherwiseIsNotNamed) {
  EXPECT_EQ(in_child([&] {
              const InFlight mark(file_, {"a"});
              return raise(SIGKILL);
            }),
            128 + SIGKILL);
  EXPECT_EQ(in_child([&] {
              { const InFlight mark(file_, {"a"}); }
              return raise(SIGSEGV);
            }),
            128 + SIGSEGV);
  EXPECT_FALSE(fs::exists(file_));
  EXPECT_THAT(endings("a"), IsEmpty());
}

TEST_F(InFlightTest, OfSeveralThreadsTheOneThatFailsIsNamed) {
  const auto fail_beside = [&](bool at_something) {
    const InFlight innocent(file_, {"innocent"});
    std::thread([&] {
      if (!at_something) std::abort();
      const InFlight guilty(file_, {"guilty"});
      std::abort();
    }).join();
    return 0;
  };
  EXPECT_EQ(in_child([&] { return fail_beside(true); }), 128 + SIGABRT);
  EXPECT_THAT(endings("guilty"), ElementsAre("SIGABRT"));
  EXPECT_THAT(endings("innocent"), IsEmpty());
  EXPECT_EQ(in_child([&] { return fail_beside(false); }), 128 + SIGABRT);
  EXPECT_THAT(endings("innocent"), ElementsAre("SIGABRT"));
}

TEST_F(InFlightTest, WhereItCannotBeToldNobodyIsBlamed) {
  const auto fail_elsewhere = [&](const Texts& names) {
    const InFlight one(file_, names);
    std::thread([&] {
      const InFlight other(file_, {"other"});
      std::thread([] { raise(SIGSEGV); }).join();
    }).join();
    return 0;
  };
  EXPECT_EQ(in_child([&] { return fail_elsewhere({"a", "b"}); }), 128 + SIGSEGV);
  for (const auto* name : {"a", "b", "other"}) {
    EXPECT_THAT(endings(name), ElementsAre(InFlight::kBeside)) << name;
  }
  EXPECT_EQ(in_child([&] {
              const InFlight array(file_, {"c", "d"});
              std::thread([] { std::abort(); }).join();
              return 0;
            }),
            128 + SIGABRT);
  EXPECT_THAT(endings("c"), ElementsAre(InFlight::kBeside)) << "or is it d?";
}

TEST_F(InFlightTest, WhatHangsEndsTheProcessWithTheCodeThatSaysContinue) {
  EXPECT_EQ(in_child([&] {
              const InFlight done(file_, {"done"}, 3600.0);
              const InFlight hangs(file_, {"hangs"}, 0.1);
              std::this_thread::sleep_for(std::chrono::seconds(30));
              return 0;
            }),
            75);
  EXPECT_THAT(endings("hangs"), ElementsAre("overdue"));
  EXPECT_THAT(endings("done"), IsEmpty());
}

TEST_F(InFlightTest, BeforeTheProcessEndsTheOthersWriteTheirCheckpoints) {
  const auto checkpoint = folder_.path() / "checkpoint";
  EXPECT_EQ(in_child([&] {
              const InFlight hangs(file_, {"hangs"}, 0.1);
              std::thread([&] {
                const InFlight other(file_, {"other"}, 3600.0);
                while (!stop_requested()) {
                  std::this_thread::sleep_for(std::chrono::milliseconds(10));
                }
                const InFlight::Pause disk;
                write_durably(checkpoint, "whole");
              }).join();
              std::this_thread::sleep_for(std::chrono::seconds(30));
              return 0;
            }),
            75);
  EXPECT_EQ(read_bytes(checkpoint), "whole");
}

TEST_F(InFlightTest, WaitingForADiskMakesNothingOverdue) {
  using std::chrono::milliseconds;
  { const InFlight::Pause at_nothing; }
  EXPECT_EQ(in_child([&] {
              const InFlight without_limit(file_, {"a"});
              { const InFlight::Pause disk; }
              std::thread([&] {
                const InFlight mark(file_, {"b"}, 1.0);
                {
                  const InFlight::Pause disk;
                  std::this_thread::sleep_for(milliseconds(3500));
                }
                std::this_thread::sleep_for(milliseconds(200));
              }).join();
              return 0;
            }),
            0);
  EXPECT_EQ(in_child([&] {
              const InFlight mark(file_, {"hangs"}, 1.0);
              { const InFlight::Pause disk; }
              std::this_thread::sleep_for(std::chrono::seconds(30));
              return 0;
            }),
            75)
      << "after it time goes on";
  EXPECT_THAT(endings("b"), IsEmpty());
  EXPECT_THAT(endings("hangs"), ElementsAre("overdue"));
}

}  // namespace
}  // namespace nas::testing
