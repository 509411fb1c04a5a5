#include "cli/program.hpp"

#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

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
  static fs::filesystem_error of_file(std::errc code) {
    return {"operation", "runs/x/file", std::make_error_code(code)};
  }
};

TEST_F(ProgramMain, ReturnsWhatTheBodyReturns) {
  const auto [code, words] = end_of([] { return 7; });
  EXPECT_EQ(code, 7);
  EXPECT_EQ(words, "");
}

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

TEST_F(ProgramMain, EveryExitCodeIsExplained) {
  for (const int code : {kDone, kDefect, kBadInput, kMachineFailed, kStopped}) {
    EXPECT_THAT(help_end(), HasSubstr("\n  " + std::to_string(code) + " "));
  }
  EXPECT_THAT(help_end(""), Not(HasSubstr("130")));
}

}  // namespace
}  // namespace nas
