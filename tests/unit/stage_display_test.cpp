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

TEST(StageDisplay, SaysAfterEachGroupOfSeedsWhatIsNew) {
  std::ostringstream out;
  double now = 0.0;
  const auto ok = evaluation();
  auto at_most = options(false, now);
  at_most.stage = "training";
  at_most.total = 20;
  at_most.at_most = true;
  StageDisplay display(out, at_most);
  display.update({.kind = Progress::Kind::evaluation_started, .evaluation = &ok});
  now += 10;
  display.update({.kind = Progress::Kind::evaluation_finished, .trained = 8, .evaluation = &ok});
  display.group_ended({.lines = {"one: decided", "two: goes on"}, .total = 14});
  display.update({.kind = Progress::Kind::evaluation_finished, .trained = 9, .evaluation = &ok});
  display.group_ended({.lines = {"one: decided", "two: decided"}, .total = 9});
  EXPECT_EQ(
      out.str(),
      "training 8 of at most 20, at most 2 min left, 10 s elapsed: the one seed 3\n"
      "one: decided\ntwo: goes on\n"
      "training 9 of at most 14, at most 50 s left, 10 s elapsed: the one seed 3\ntwo: decided\n");
}

TEST(StageDisplay, WrapsWhatAGroupSaysAboveTheLinesOfATerminal) {
  std::ostringstream out;
  double now = 0.0;
  const auto ok = evaluation();
  StageDisplay display(out, options(true, now, 30));
  display.update({.kind = Progress::Kind::evaluation_started, .evaluation = &ok});
  out.str("");
  display.group_ended({.lines = {"one: between 1 % better and 2 % worse, goes on"}, .total = 4});
  EXPECT_THAT(out.str(), ::testing::StartsWith("\rone: between 1 % better and 2\x1b[K\n"));
  EXPECT_THAT(out.str(), HasSubstr("\x1b[K\nre-test 0/4, 0 s elapsed\x1b[K\nthe one: training"));
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
