#include "report/stage_display.hpp"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nas {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

StageDisplay::Options options(bool terminal, int width = 100) {
  return {.terminal = terminal,
          .width = width,
          .stage = "re-test",
          .total = 4,
          .label = [](const std::string& candidate) { return "the " + candidate; }};
}

Evaluation evaluation(Status status = Status::ok) {
  Evaluation made;
  made.candidate = "one";
  made.replicate = 1000002;
  made.status = status;
  if (status != Status::ok) made.reason = "not finite";
  return made;
}

TEST(StageDisplay, WritesALineForEachFinishedTraining) {
  std::ostringstream out;
  const auto ok = evaluation();
  const auto failed = evaluation(Status::diverged);
  {
    StageDisplay display(out, options(false));
    display.update({.kind = Progress::Kind::evaluation_started, .evaluation = &ok});
    EXPECT_EQ(out.str(), "");
    display.update({.kind = Progress::Kind::evaluation_finished,
                    .trained = 1,
                    .reused = 2,
                    .evaluation = &ok});
    display.update({.kind = Progress::Kind::evaluation_finished,
                    .trained = 2,
                    .reused = 2,
                    .evaluation = &failed});
  }
  EXPECT_EQ(out.str(),
            "re-test 3/4, 0 s elapsed, 0 s left: the one replicate 1000002\n"
            "re-test 4/4, 0 s elapsed: the one replicate 1000002, diverged: not finite\n");
}

TEST(StageDisplay, RewritesOneLineOfATerminalAndEndsIt) {
  std::ostringstream out;
  const auto ok = evaluation();
  {
    StageDisplay display(out, options(true, 30));
    display.update({.kind = Progress::Kind::evaluation_started, .evaluation = &ok});
    EXPECT_THAT(out.str(), StartsWith("\rre-test 0/4"));
    EXPECT_THAT(out.str(), HasSubstr("\u2026\x1b[K")) << "no longer than the terminal";
  }
  EXPECT_EQ(out.str().back(), '\n');
}

}  // namespace
}  // namespace nas
