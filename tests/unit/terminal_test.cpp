#include "core/terminal.hpp"

#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/warning.hpp"
#include "report/text.hpp"

namespace nas {
namespace {

TEST(Terminal, IsOneOnWhichLinesCanBeRewritten) {
  const int ours = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(ours, 0);
  ASSERT_EQ(grantpt(ours), 0);
  ASSERT_EQ(unlockpt(ours), 0);
  const int theirs = open(ptsname(ours), O_RDWR | O_NOCTTY);
  ASSERT_GE(theirs, 0);
  setenv("TERM", "xterm", 1);
  EXPECT_TRUE(is_terminal(theirs));
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(is_terminal(theirs));
  unsetenv("TERM");
  EXPECT_TRUE(is_terminal(theirs));
  close(theirs);
  close(ours);
}

/// Standard output, a terminal of 60 columns meanwhile.
class WidthTest : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv("COLUMNS");
    std::fflush(nullptr);
    before_ = dup(STDOUT_FILENO);
    ours_ = posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_GE(ours_, 0);
    ASSERT_EQ(grantpt(ours_), 0);
    ASSERT_EQ(unlockpt(ours_), 0);
    const int theirs = open(ptsname(ours_), O_RDWR | O_NOCTTY);
    ASSERT_GE(theirs, 0);
    const winsize size{.ws_row = 24, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(ioctl(theirs, TIOCSWINSZ, &size), 0);
    dup2(theirs, STDOUT_FILENO);
    close(theirs);
  }
  void TearDown() override {
    dup2(before_, STDOUT_FILENO);
    close(before_);
    close(ours_);
    unsetenv("COLUMNS");
  }

 private:
  int before_ = -1;
  int ours_ = -1;
};

TEST_F(WidthTest, HasItsColumnsOrFewerIfTheEnvironmentSaysSo) {
  EXPECT_EQ(line_width(), 60U);
  setenv("COLUMNS", "48", 1);
  EXPECT_EQ(line_width(), 48U);
  EXPECT_EQ(terminal_width(), 48);
  for (const auto* useless : {"90", "0", "-3", "many", ""}) {
    setenv("COLUMNS", useless, 1);
    EXPECT_EQ(line_width(), 60U) << useless;
  }
  setenv("COLUMNS", "2", 1);
  EXPECT_EQ(line_width(), 20U);
}

TEST_F(WidthTest, LimitsNothingWhereStandardOutputIsNone) {
  setenv("COLUMNS", "48", 1);
  const int file = open("/dev/null", O_WRONLY);
  dup2(file, STDOUT_FILENO);
  close(file);
  EXPECT_EQ(line_width(), kAnyWidth);
  EXPECT_EQ(terminal_width(), 48);
}

TEST(Warning, CommandsNoTerminal) {
  ::testing::internal::CaptureStderr();
  write_warning("the worker x\x1b]0;owned\a is set aside");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "warning: the worker x\uFFFD]0;owned\uFFFD is set aside\n");
}

}  // namespace
}  // namespace nas
