#include "cli/progress_display.hpp"

#include "prelude.hpp"
#include "report/text.hpp"

namespace nas {
namespace {

class DisplayTest : public ::testing::Test {
 protected:
  ProgressDisplay::Options options(bool terminal) {
    return {.terminal = terminal,
            .width = [this] { return width_; },
            .expected_asks = 10,
            .expected_batches = 2,
            .workers = 2,
            .objective = "perplexity",
            .value = [](const Evaluation& e) { return e.values.at("perplexity"); },
            .label = [](const std::string& candidate) { return "label of " + candidate; },
            .now = [this] { return now_; }};
  }
  void play(ProgressDisplay& display, std::optional<double> seconds_left = std::nullopt) {
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
    if (seconds_left) progress.seconds_left = *seconds_left;
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
  /// What is written of a small batch.
  std::string played(ProgressDisplay::Options given) {
    std::ostringstream out;
    {
      ProgressDisplay display(out, std::move(given));
      play(display);
    }
    return out.str();
  }
  /// What the terminal shows: the lines that were written last.
  static Texts shown(const std::string& written) {
    const auto end = written.rfind("\x1b[J");
    const auto begin = written.rfind('\r', end) + 1;
    std::istringstream last(written.substr(begin, end - begin));
    Texts lines;
    for (std::string line; std::getline(last, line);) {
      lines.push_back(line.substr(0, line.find("\x1b[K")));
    }
    return lines;
  }
  double now_ = 100;
  int width_ = 80;
  std::ostringstream out_;
};

/// An array of trainings in progress, of ids 1, 2, ...
class TrainingArray {
 public:
  explicit TrainingArray(int size) : members_(static_cast<std::size_t>(size)) {
    for (int i = 0; i < size; ++i) {
      auto& member = members_[static_cast<std::size_t>(i)];
      member.id = std::to_string(i + 1);
      member.candidate = "a_rather_long_name|of|a|mechanism|" + member.id;
      member.status = Status::ok;
      member.values["perplexity"] = 537.9 + i;
      if (size > 1) member.measured = {{"array", size}};
    }
  }
  void start(ProgressDisplay& display) {
    for (const auto& member : members_) {
      display.update({.kind = Progress::Kind::evaluation_started,
                      .batch = 4,
                      .asked = 48,
                      .reused = 6,
                      .evaluation = &member});
    }
  }
  void advance(ProgressDisplay& display, std::int64_t step, double loss) {
    display.update({.kind = Progress::Kind::evaluation_advanced,
                    .batch = 4,
                    .asked = 48,
                    .reused = 6,
                    .evaluation = &members_.front(),
                    .last = &members_.back(),
                    .advance = {.step = step, .steps = 5000, .loss = loss}});
  }
  void finish(ProgressDisplay& display) {
    std::int64_t trained = 0;
    for (const auto& member : members_) {
      display.update({.kind = Progress::Kind::evaluation_finished,
                      .batch = 4,
                      .asked = 48,
                      .trained = ++trained,
                      .reused = 6,
                      .evaluation = &member});
    }
  }

 private:
  std::vector<Evaluation> members_;
};

TEST_F(DisplayTest, PipedLinesSayEveryFiveMinutesThatTrainingGoesOn) {
  std::ostringstream out;
  ProgressDisplay display(out, options(false));
  TrainingArray array(2);
  array.start(display);
  for (std::int64_t step = 1; step <= 8; ++step) {
    now_ += 100;
    array.advance(display, 500 * step, 5.5);
  }
  const auto said = out.str();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2) << said;
  EXPECT_THAT(said, HasSubstr("5 min 00 s elapsed; label of a_rather"));
  EXPECT_THAT(said, HasSubstr("; label of a_rather_long_name|of|a|mechanism|1 + 1 more: step "
                              "1,500/5,000, loss 5.50\n"));
  EXPECT_THAT(said, HasSubstr("step 3,000/5,000"));
}

TEST_F(DisplayTest, PipedLinesReportEachEvaluationAndGeneration) {
  const auto said = played(options(false));
  EXPECT_THAT(said, HasSubstr("trained label of x seed 1: perplexity 81.23 (5 s)\n"));
  EXPECT_THAT(said, HasSubstr("trained label of y seed 1: diverged, not finite (10 s)\n"));
  // 6 asks to come, half of them trainings of 6.25 s to 8.75 s on two workers.
  EXPECT_THAT(
      said,
      HasSubstr(
          "generation 0 done: 4/10 asked, 9.5 to 13 s left, 2 trained, 1 failed, 2 known, gen 1/2, "
          "10 s elapsed, best 81.23 label of x\n"));
  EXPECT_THAT(said, Not(HasSubstr("\r")));
}

TEST_F(DisplayTest, SeveralObjectivesShowTheHypervolume) {
  for (const bool terminal : {false, true}) {
    std::ostringstream out;
    {
      auto several = options(terminal);
      several.several = true;
      several.width = [] { return 200; };
      ProgressDisplay display(out, several);
      play(display);
      display.indicator({.asked = 4, .batch = 0, .evaluated = 2, .front = 7, .value = 0.5123});
    }
    EXPECT_THAT(out.str(), HasSubstr("HV 0.512, front 7"));
    EXPECT_THAT(out.str(), Not(HasSubstr("best")));
  }
}

TEST_F(DisplayTest, TimeLeftIsThatOfTheBudgetWhereItEndsTheSearchFirst) {
  ProgressDisplay display(out_, options(false));
  for (const double seconds_left : {1e6, 12.0}) play(display, seconds_left);
  EXPECT_THAT(out_.str(), HasSubstr("done: 4/10 asked, "));
  EXPECT_THAT(out_.str(), HasSubstr("done: 4 asked, 6 s left"));
}

TEST(TimeLeftByBudget, WhatBeganGoesOnToItsEnd) {
  const TimeRange asks{.low = 20, .high = 30};
  const auto text = [](const TimeRange& left) { return left_text(left); };
  EXPECT_EQ(text(time_left_by_budget(asks, 100, 10, std::nullopt, 2)), "20 to 30 s left");
  EXPECT_EQ(text(time_left_by_budget(asks, 60, 10, std::nullopt, 2)), "20 to 25 s left");
  EXPECT_EQ(text(time_left_by_budget(asks, 30, 10, std::nullopt, 2)), "10 s left");
  EXPECT_EQ(text(time_left_by_budget(std::nullopt, 30, 10, TimeRange{4, 14}, 2)),
            "10 to 14 s left");
  EXPECT_EQ(text(time_left_by_budget(asks, 0, 10, TimeRange{4, 14}, 2)), "4 to 14 s left");
}

TEST_F(DisplayTest, BestIsTheLargestWhereMaximisedAndNothingThatBreaksAConstraint) {
  auto maximised = options(false);
  maximised.maximise = true;
  maximised.feasible = [](const Evaluation& e) { return e.values.at("perplexity") < 95; };
  ProgressDisplay display(out_, maximised);
  Evaluation earlier;
  for (const double value : {std::nan(""), 90.0, 99.0, 85.0, 94.0}) {
    earlier.candidate = "of " + std::to_string(value);
    earlier.status = value == 94.0 ? Status::stopped_early : Status::ok;
    earlier.values["perplexity"] = value;
    display.count(earlier);
  }
  play(display);
  EXPECT_THAT(out_.str(), HasSubstr("best 90.00 label of of 90"));
}

TEST_F(DisplayTest, CountsAndTimeLeftComeFirstInEveryWidth) {
  auto long_run = options(true);
  long_run.expected_asks = 93;
  long_run.expected_batches = 10;
  long_run.workers = 1;
  TrainingArray array(12);
  const std::string counts = "48/93 asked, 3 h left, 0 trained";
  const std::string elapsed = "8 min 20 s elapsed";
  const std::string state = "step 1,200/5,000, loss 5.10";
  const std::vector<std::pair<int, Texts>> expected{
      {130,
       {counts + ", 6 known, gen 5/10, " + elapsed,
        "best 99.00 label of earlier | label of a_rather_long_name|of|a|mechanism|1 + 11 more: " +
            state}},
      {80,
       {counts + ", 6 known, gen 5/10, " + elapsed,
        "best 99.00 | label of a_ra\u2026a|mechanism|1 + 11 more: " + state}},
      {60, {counts + ", " + elapsed, "best 99.00 label of earlier | " + state}},
      {40, {counts, state}},
      {27, {"48/93 asked, 3 h left", "step 1,200/5,000, loss 5.\u2026"}}};
  std::ostringstream out;
  ProgressDisplay display(out, long_run);
  Evaluation earlier;
  earlier.candidate = "earlier";
  earlier.status = Status::ok;
  earlier.values["perplexity"] = 99;
  for (int i = 0; i < 30; ++i) display.count(earlier);
  display.update({.kind = Progress::Kind::batch_finished, .batch = 3, .asked = 36, .reused = 6});
  array.start(display);
  array.advance(display, 200, 6.0);
  now_ += 500;
  for (const auto& [width, lines] : expected) {
    width_ = width;  // the terminal's, changed while the search runs
    array.advance(display, 1200, 5.1);
    EXPECT_EQ(shown(out.str()), lines) << width;
    for (const auto& line : shown(out.str())) {
      EXPECT_LT(width_of(line), static_cast<std::size_t>(width));
    }
  }
  array.finish(display);
  EXPECT_THAT(shown(out.str()).at(0), HasSubstr("asked"));
}

TEST_F(DisplayTest, WhoWorksElsewhereIsSaidAndCounts) {
  std::ostringstream out;
  {
    ProgressDisplay display(out, options(true));
    width_ = 120;
    play(display);
    const auto alone = shown(out.str()).at(0);
    display.workforce({.workers = 1, .slots = 4});
    EXPECT_THAT(shown(out.str()).at(0), HasSubstr(", 1 worker, 4 slots, "));
    EXPECT_NE(alone, shown(out.str()).at(0)) << "there are more, so it takes less time";
    width_ = 40;
    display.workforce({.workers = 2, .slots = 8});
    EXPECT_THAT(shown(out.str()).at(0), Not(HasSubstr("slots"))) << "what is done comes first";
  }
  std::ostringstream lines;
  ProgressDisplay display(lines, options(false));
  display.workforce({.workers = 2, .slots = 8});
  EXPECT_EQ(lines.str(), "2 workers, 8 slots\n");
}

/// Training runs beside a search.
class StageTest : public DisplayTest {
 protected:
  StageTest() {
    ok_.candidate = "one";
    ok_.replicate = 1000002;
    ok_.status = Status::ok;
    failed_ = ok_;
    failed_.id = "2";
    failed_.status = Status::diverged;
    failed_.reason = "not \x1b[31mfinite";
  }
  ProgressDisplay::Options stage(bool terminal, std::int64_t total = 4) {
    auto made = options(terminal);
    made.stage = "re-test";
    made.total = total;
    made.workers = 1;
    return made;
  }
  static void start(ProgressDisplay& display, const Evaluation& one) {
    display.update({.kind = Progress::Kind::evaluation_started, .evaluation = &one});
  }
  static void finish(ProgressDisplay& display, const Evaluation& one, std::int64_t trained,
                     std::int64_t reused = 0) {
    display.update({.kind = Progress::Kind::evaluation_finished,
                    .trained = trained,
                    .reused = reused,
                    .evaluation = &one});
  }
  Evaluation ok_, failed_;
};

TEST_F(StageTest, WritesALineForEachFinishedTrainingRun) {
  ProgressDisplay display(out_, stage(false));
  display.workforce({.workers = 2, .slots = 1});
  start(display, ok_);
  start(display, failed_);
  EXPECT_EQ(out_.str(), "");
  now_ += 10;
  finish(display, ok_, 1, 2);
  finish(display, failed_, 2, 2);
  EXPECT_EQ(out_.str(),
            "re-test 3/4, 10 s left, 10 s elapsed, 2 workers, 1 slot: label of one seed 3\n"
            "re-test 4/4, 10 s elapsed, 2 workers, 1 slot: label of one seed 3, diverged: not "
            "\uFFFD[31mfinite\n");
}

TEST_F(StageTest, RewritesTwoLinesOfATerminalAndEndsThem) {
  {
    width_ = 33;
    ProgressDisplay display(out_, stage(true));
    start(display, ok_);
    EXPECT_EQ(shown(out_.str()), (Texts{"re-test 0/4, 0 s elapsed", "label of one: training"}));
    now_ += 10;
    finish(display, ok_, 1);
    EXPECT_EQ(shown(out_.str()), (Texts{"re-test 1/4, 30 s left", "label of one seed 3"}));
    out_.str("");
    display.group_ended({.lines = {"one: between 1 % better and 2 % worse, goes on"}, .total = 4});
    EXPECT_THAT(out_.str(), StartsWith("\rone: between 1 % better and 2 %\x1b[K\n"));
    EXPECT_THAT(out_.str(), HasSubstr("\x1b[K\nre-test 1/4, "));
  }
  EXPECT_EQ(out_.str().back(), '\n');
}

TEST_F(StageTest, SaysAfterEachGroupOfSeedsWhatIsNew) {
  auto at_most = stage(false, 20);
  at_most.at_most = true;
  ProgressDisplay display(out_, at_most);
  start(display, ok_);
  now_ += 10;
  finish(display, ok_, 8);
  display.group_ended({.lines = {"one: decided", "two: goes on"}, .total = 14});
  finish(display, ok_, 9);
  display.group_ended({.lines = {"one: decided", "two: decided"}, .total = 9});
  const std::string one = " left, 10 s elapsed: label of one seed 3\n";
  EXPECT_EQ(out_.str(), "re-test 8 of at most 20, at most 2 min" + one +
                            "one: decided\ntwo: goes on\nre-test 9 of at most 14, at most 50 s" +
                            one + "two: decided\n");
}

}  // namespace
}  // namespace nas
