#include "core/terminal.hpp"

#include <cstdlib>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/warning.hpp"

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

TEST(Terminal, IsNoFile) {
  const int file = open("/dev/null", O_RDWR);
  EXPECT_FALSE(is_terminal(file));
  close(file);
  EXPECT_FALSE(is_terminal(file)) << "closed";
}

TEST(Warning, CommandsNoTerminal) {
  ::testing::internal::CaptureStderr();
  write_warning("the worker x\x1b]0;owned\a is set aside");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "warning: the worker x\uFFFD]0;owned\uFFFD is set aside\n");
}

}  // namespace
}  // namespace nas
