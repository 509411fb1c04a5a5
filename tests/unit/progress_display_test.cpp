#include "report/progress_display.hpp"

#include <cmath>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/text.hpp"

namespace nas {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class DisplayTest : public ::testing::Test {
 protected:
  ProgressDisplay::Options options(bool terminal) {
    return {.terminal = terminal,
            .width = 80,
            .expected_asks = 10,
            .expected_batches = 2,
            .workers = 2,
            .objective = "perplexity",
            .value = [](const Evaluation& e) { return e.values.at("perplexity"); },
            .label = [](const std::string& candidate) { return "label of " + candidate; },
            .now = [this] { return now_; }};
  }
  void play(ProgressDisplay& display) {
    Evaluation good;
    good.id = "1";
    good.candidate = "x";
    good.status = Status::ok;
    good.values["perplexity"] = 81.234;
    Evaluation bad;
    bad.id = "2";
    bad.candidate = "y";
    bad.status = Status::diverged;
    bad.reason = "not finite";
    using Kind = Progress::Kind;
    Progress progress{
        .kind = Kind::batch_started, .batch = 0, .asked = 4, .trained = 0, .reused = 0};
    display.update(progress);
    const std::pair<Kind, Evaluation*> events[] = {{Kind::evaluation_started, &good},
                                                   {Kind::evaluation_started, &bad},
                                                   {Kind::evaluation_finished, &good},
                                                   {Kind::evaluation_finished, &bad}};
    for (const auto& [kind, evaluation] : events) {
      progress.kind = kind;
      progress.evaluation = evaluation;
      if (kind == Kind::evaluation_finished) {
        now_ += 5;
        ++progress.trained;
      }
      display.update(progress);
    }
    progress.kind = Kind::batch_finished;
    progress.reused = 2;
    display.update(progress);
  }
  double now_ = 100;
};

TEST_F(DisplayTest, AMemberOfAnArrayTakesItsShareOfTheTime) {
  std::ostringstream out;
  ProgressDisplay display(out, options(false));
  Evaluation member;
  member.status = Status::ok;
  member.measured = {{"array", 4}};
  member.values["perplexity"] = 81.234;
  Progress progress{.kind = Progress::Kind::evaluation_started, .evaluation = &member};
  display.update(progress);
  now_ += 8;
  progress.kind = Progress::Kind::evaluation_finished;
  display.update(progress);
  EXPECT_THAT(out.str(), HasSubstr("perplexity 81.23 (2 s)\n"));
}

TEST_F(DisplayTest, PipedLinesTellEachEvaluationAndGeneration) {
  std::ostringstream out;
  {
    ProgressDisplay display(out, options(false));
    play(display);
  }
  EXPECT_THAT(out.str(), HasSubstr("trained label of x replicate 0: perplexity 81.23 (5 s)\n"));
  EXPECT_THAT(out.str(),
              HasSubstr("trained label of y replicate 0: diverged, not finite (10 s)\n"));
  // 6 asks to come, half of them trainings of 7.5 s on two workers.
  EXPECT_THAT(
      out.str(),
      HasSubstr(
          "generation 0 done: 4/10 asked, 2 trained, 2 known, 1 failed, best 81.23 label of x, "
          "10 s elapsed, 11 s left\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("\r")));
}

TEST_F(DisplayTest, SeveralObjectivesShowTheHypervolume) {
  for (const bool terminal : {false, true}) {
    std::ostringstream out;
    {
      auto several = options(terminal);
      several.several = true;
      several.width = 200;
      ProgressDisplay display(out, several);
      play(display);
      display.indicator({.asked = 4, .batch = 0, .evaluated = 2, .front = 7, .value = 0.5123});
    }
    EXPECT_THAT(out.str(), HasSubstr("HV 0.512, front 7"));
    EXPECT_THAT(out.str(), Not(HasSubstr("best")));
  }
}

TEST_F(DisplayTest, UnknownLengthHasNoTimeLeft) {
  std::ostringstream out;
  {
    auto unknown = options(false);
    unknown.expected_asks = 0;
    ProgressDisplay display(out, unknown);
    play(display);
  }
  EXPECT_THAT(out.str(), HasSubstr("generation 0 done: 4 asked, "));
  EXPECT_THAT(out.str(), Not(HasSubstr("left")));
}

TEST_F(DisplayTest, BestIsTheLargestWhereMaximisedAndNeverNaN) {
  std::ostringstream out;
  {
    auto maximised = options(false);
    maximised.maximise = true;
    ProgressDisplay display(out, maximised);
    Evaluation earlier;
    earlier.status = Status::ok;
    for (const double value : {std::nan(""), 90.0, std::nan(""), 85.0}) {
      earlier.candidate = "of " + std::to_string(value);
      earlier.values["perplexity"] = value;
      display.count(earlier);
    }
    play(display);
  }
  EXPECT_THAT(out.str(), HasSubstr("best 90.00 label of of 90"));
  EXPECT_THAT(out.str(), Not(HasSubstr("nan")));
}

TEST_F(DisplayTest, TerminalLineIsRewrittenWithinItsWidth) {
  std::ostringstream out;
  {
    ProgressDisplay display(out, options(true));
    play(display);
  }
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line, '\r');) {
    if (line.empty()) continue;
    EXPECT_LE(width_of(line.substr(0, line.find('\x1b'))), 80U) << line;
  }
  EXPECT_THAT(out.str(), HasSubstr("gen 1/2"));
  EXPECT_EQ(out.str().back(), '\n');
}

}  // namespace
}  // namespace nas
