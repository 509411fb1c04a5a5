#include "cli/program.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <new>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "unit/forked.hpp"

namespace nas {
namespace {

class ProgramMain : public ::testing::Test {
 protected:
  struct End {
    int code;
    std::string words;
  };
  static End end_of(const std::function<int()>& body, const std::string& kept = {}) {
    ::testing::internal::CaptureStderr();
    const int code = run_main("nas-x", body, kept);
    return {code, ::testing::internal::GetCapturedStderr()};
  }
  template <class Exception>
  static End end_by(const Exception& exception, const std::string& kept = {}) {
    return end_of([&]() -> int { throw exception; }, kept);
  }
  /// Of a process that prints so many characters to a descriptor, and then returns a code.
  static End end_of_printing(std::size_t size, int code, int output) {
    ::testing::internal::CaptureStderr();
    std::fflush(stdout);
    const int ended = testing::in_child([&] {
      dup2(output, STDOUT_FILENO);
      return run_main("nas-x", [&] {
        signal(SIGPIPE, SIG_IGN);
        std::cout << std::string(size, 'x');
        return code;
      });
    });
    return {ended, ::testing::internal::GetCapturedStderr()};
  }
  static fs::filesystem_error of_file(std::errc code) {
    return {"operation", "runs/x/file", std::make_error_code(code)};
  }
};

TEST_F(ProgramMain, SaysByItsCodeWhatIsToBlame) {
  EXPECT_EQ(end_by(InputError("x = 1")).code, 2);
  EXPECT_EQ(end_by(InputError("x = 1")).words, "nas-x: x = 1\n");
  EXPECT_EQ(end_by(StopRequested()).code, 130);
  EXPECT_EQ(end_by(MachineError("no space left in runs/x")).code, 75);
  EXPECT_EQ(end_by(std::bad_alloc()).code, 75);
  EXPECT_EQ(end_by(std::system_error(std::make_error_code(std::errc::io_error))).code, 75);
  EXPECT_EQ(end_by(std::logic_error("a defect")).code, 1);
  const auto full = end_by(of_file(std::errc::no_space_on_device));
  EXPECT_EQ(full.code, 75);
  EXPECT_EQ(full.words, "nas-x: no space left in runs/x\n");
}

TEST_F(ProgramMain, TextsOfOthersDoNotCommandTheTerminal) {
  EXPECT_EQ(end_by(InputError("unknown key 'x\x1b]0;owned\a'\nknown: name")).words,
            "nas-x: unknown key 'x\uFFFD]0;owned\uFFFD'\nknown: name\n");
}

TEST_F(ProgramMain, APathIsBadInputUntilSomethingHasBegun) {
  const auto denied = of_file(std::errc::permission_denied);
  EXPECT_EQ(end_by(denied).code, 2);
  EXPECT_EQ(end_by(denied, "runs/x").code, 75);
  EXPECT_EQ(end_by(of_file(std::errc::io_error)).code, 75);
}

TEST_F(ProgramMain, SaysWhatIsKeptAndWhatContinues) {
  const TemporaryFolder folder;
  folder.write("store.sqlite", "");
  const auto kept = folder.path().string();
  EXPECT_EQ(end_by(MachineError("no space left in runs/x"), kept).words,
            "nas-x: no space left in runs/x\nEverything finished is kept in " + kept +
                "; the same command continues.\n");
  EXPECT_THAT(end_by(std::logic_error("a defect"), kept).words,
              HasSubstr("Everything finished is kept in " + kept + ".\n"));
  EXPECT_EQ(end_by(InputError("x = 1"), kept).words, "nas-x: x = 1\n");
  EXPECT_EQ(end_by(MachineError("gone"), kept + "/removed").words, "nas-x: gone\n");
}

TEST_F(ProgramMain, OnlyWhatHasAStoreIsSaidToKeepAnything) {
  const TemporaryFolder folder;
  const auto kept = folder.path().string();
  folder.write("checkpoints/a", "");
  EXPECT_EQ(end_by(MachineError("moved"), kept).words, "nas-x: moved\n");
  folder.write("comparison.sqlite", "");
  EXPECT_THAT(end_by(MachineError("full"), kept).words, HasSubstr("is kept in " + kept));
}

TEST_F(ProgramMain, OutputThatCannotBeWrittenIsNoSuccess) {
  constexpr std::size_t kMoreThanABuffer = 1U << 20U;
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  const auto little = end_of_printing(1, kDone, full);
  EXPECT_EQ(little.code, kMachineFailed);
  EXPECT_EQ(little.words, "nas-x: standard output: cannot be written: No space left on device\n");
  const auto much = end_of_printing(kMoreThanABuffer, kDone, full);
  EXPECT_EQ(much.code, kMachineFailed);
  EXPECT_THAT(much.words, HasSubstr("nas-x: standard output: cannot be written"));
  EXPECT_EQ(end_of_printing(1, kBadInput, full).code, kBadInput) << "it has failed otherwise";
  EXPECT_EQ(end_of_printing(0, kDone, full).code, kDone) << "nothing is lost";
  close(full);
}

TEST_F(ProgramMain, EveryExitCodeIsExplained) {
  for (const int code : {kDone, kDefect, kBadInput, kMachineFailed, kStopped}) {
    EXPECT_THAT(help_end(), HasSubstr("\n  " + std::to_string(code) + " "));
  }
  EXPECT_THAT(help_end(""), Not(HasSubstr("130")));
}

}  // namespace
}  // namespace nas
