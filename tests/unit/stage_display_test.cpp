#include "cli/stage_display.hpp"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nas {
namespace {

using ::testing::HasSubstr;

StageDisplay::Options options(bool terminal, double& now, int width = 100) {
  return {.terminal = terminal,
          .width = [width] { return width; },
          .stage = "re-test",
          .total = 4,
          .label = [](const std::string& candidate) { return "the " + candidate; },
          .now = [&now] { return now; }};
}

Evaluation evaluation(Status status = Status::ok) {
  Evaluation made;
  made.candidate = "one";
  made.replicate = 1000002;
  made.status = status;
  if (status != Status::ok) made.reason = "not finite";
  return made;
}

TEST(StageDisplay, WritesALineForEachFinishedTrainingRun) {
  std::ostringstream out;
  double now = 0.0;
  const auto ok = evaluation();
  auto failed = evaluation(Status::diverged);
  failed.id = "2";
  {
    StageDisplay display(out, options(false, now));
    display.update({.kind = Progress::Kind::evaluation_started, .evaluation = &ok});
    display.update({.kind = Progress::Kind::evaluation_started, .evaluation = &failed});
    EXPECT_EQ(out.str(), "");
    now += 10;
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
            "re-test 3/4, 10 s left, 10 s elapsed: the one seed 3\n"
            "re-test 4/4, 10 s elapsed: the one seed 3, diverged: not finite\n");
}

TEST(StageDisplay, ReasonsOfOthersDoNotCommandTheTerminal) {
  std::ostringstream out;
  double now = 0.0;
  auto failed = evaluation(Status::failed);
  failed.reason = "\x1b[31mred";
  StageDisplay display(out, options(false, now));
  display.update(
      {.kind = Progress::Kind::evaluation_finished, .trained = 1, .evaluation = &failed});
  EXPECT_THAT(out.str(), HasSubstr(", failed: \uFFFD[31mred\n"));
}

TEST(StageDisplay, SaysEveryFiveMinutesThatTrainingGoesOn) {
  std::ostringstream out;
  double now = 0.0;
  const auto ok = evaluation();
  StageDisplay display(out, options(false, now));
  display.update({.kind = Progress::Kind::evaluation_started, .evaluation = &ok});
  for (; now <= 700; now += 50) {
    display.update(
        {.kind = Progress::Kind::evaluation_advanced,
         .evaluation = &ok,
         .last = &ok,
         .advance = {.step = static_cast<std::int64_t>(now) + 1, .steps = 1001, .loss = 5.25}});
  }
  EXPECT_EQ(out.str(),
            "re-test 0/4, 62 min left, 5 min 00 s elapsed: the one: step 301/1,001, loss 5.25\n"
            "re-test 0/4, 57 min left, 10 min 00 s elapsed: the one: step 601/1,001, loss 5.25\n");
}

TEST(StageDisplay, RewritesTwoLinesOfATerminalAndEndsThem) {
  std::ostringstream out;
  double now = 0.0;
  const auto ok = evaluation();
  {
    StageDisplay display(out, options(true, now, 30));
    display.update({.kind = Progress::Kind::evaluation_started, .evaluation = &ok});
    EXPECT_THAT(out.str(), HasSubstr("re-test 0/4, 0 s elapsed\x1b[K\nthe one: training\x1b[J\r"));
    out.str("");
    now += 10;
    display.update({.kind = Progress::Kind::evaluation_finished, .trained = 1, .evaluation = &ok});
    EXPECT_THAT(out.str(), HasSubstr("re-test 1/4, 30 s left, 10 s\u2026\x1b[K\nthe one seed"));
  }
  EXPECT_EQ(out.str().back(), '\n');
}

TEST(StageDisplay, SaysWhoWorksElsewhere) {
  std::ostringstream out;
  double now = 0.0;
  const auto ok = evaluation();
  StageDisplay display(out, options(false, now));
  display.workforce({.workers = 2, .slots = 2});
  display.update({.kind = Progress::Kind::evaluation_started, .evaluation = &ok});
  display.update({.kind = Progress::Kind::evaluation_finished, .trained = 1, .evaluation = &ok});
  EXPECT_THAT(out.str(), HasSubstr("elapsed, 2 workers, 2 slots: the one"));
}

}  // namespace
}  // namespace nas
