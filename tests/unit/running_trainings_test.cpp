#include "cli/running_trainings.hpp"

#include <tuple>

#include "cli/status_lines.hpp"
#include "core/terminal.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

/// Trains evaluations one after the other.
class RunningTrainingsTest : public ::testing::Test {
 protected:
  void update(Progress::Kind kind, const Evaluation& evaluation, std::int64_t step = 0) {
    trainings_.update({.kind = kind,
                       .evaluation = &evaluation,
                       .last = &evaluation,
                       .advance = {.step = step, .steps = 100, .loss = 2.5}},
                      now_);
  }
  void train(double seconds) {
    Evaluation evaluation;
    evaluation.id = std::to_string(++trained_);
    update(Progress::Kind::evaluation_started, evaluation);
    now_ += seconds;
    update(Progress::Kind::evaluation_finished, evaluation);
  }
  [[nodiscard]] std::string text(std::size_t columns) const {
    return trainings_.text(columns, [](const std::string& name) { return name; });
  }
  RunningTrainings trainings_;
  double now_ = 0.0;
  int trained_ = 0;
};

TEST_F(RunningTrainingsTest, TheTimeLeftFollowsRecentTrainingRuns) {
  EXPECT_FALSE(trainings_.left(10, 1, now_).has_value());
  for (int i = 0; i < 30; ++i) train(1.0);
  EXPECT_EQ(left_text(trainings_.left(10, 1, now_).value()), "10 s left");
  for (int i = 0; i < 10; ++i) train(3.0);  // the machine got busy
  EXPECT_EQ(left_text(trainings_.left(10, 1, now_).value()), "10 to 30 s left");
  for (int i = 0; i < 10; ++i) train(3.0);
  EXPECT_EQ(left_text(trainings_.left(10, 1, now_).value()), "30 s left");
  EXPECT_EQ(left_text(trainings_.left(10, 2, now_).value()), "15 s left");
}

TEST_F(RunningTrainingsTest, TheTimeLeftIsKnownDuringATrainingRun) {
  Evaluation evaluation;
  evaluation.id = "1";
  evaluation.candidate = "a";
  update(Progress::Kind::evaluation_started, evaluation);
  now_ += 50;  // loads a checkpoint of step 60
  update(Progress::Kind::evaluation_advanced, evaluation, 60);
  EXPECT_FALSE(trainings_.left(1, 1, now_).has_value());
  now_ += 10;
  update(Progress::Kind::evaluation_advanced, evaluation, 80);
  // 2 steps a second: 20 of this one, 100 of one more.
  EXPECT_EQ(left_text(trainings_.left(1, 1, now_).value()), "60 s left");
  EXPECT_EQ(text(80), "a: step 80/100, loss 2.50");
}

TEST_F(RunningTrainingsTest, WhereTheNumberOfStepsIsUnknownNothingFollowsFromThem) {
  Evaluation evaluation;
  evaluation.id = "of unknown length";
  update(Progress::Kind::evaluation_started, evaluation);
  for (const std::int64_t step : {1, 5}) {
    trainings_.update({.kind = Progress::Kind::evaluation_advanced,
                       .evaluation = &evaluation,
                       .last = &evaluation,
                       .advance = {.step = step, .steps = 0, .loss = 2.5}},
                      now_ += 10);
  }
  EXPECT_FALSE(trainings_.left(0, 1, now_).has_value());
  train(3.0);
  EXPECT_EQ(left_text(trainings_.left(0, 1, now_).value()), "3 s left");
}

TEST_F(RunningTrainingsTest, PartsOfAnArrayReplaceIt) {
  std::vector<Evaluation> members(4);
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i].id = std::to_string(i);
    members[i].candidate = "x";
    update(Progress::Kind::evaluation_started, members[i]);
  }
  const auto advance = [&](std::size_t first, std::size_t last, std::int64_t step) {
    trainings_.update({.kind = Progress::Kind::evaluation_advanced,
                       .evaluation = &members[first],
                       .last = &members[last],
                       .advance = {.step = step, .steps = 2000, .loss = 1}},
                      now_);
  };
  advance(0, 3, 1000);
  advance(0, 1, 5);
  EXPECT_EQ(text(80), "x + 1 more: step 5/2,000, loss 1.00; x + 1 more: training");
  EXPECT_EQ(text(50), "x + 1 more: step 5/2,000, loss 1.00; ...");
  EXPECT_EQ(text(30), "step 5/2,000, loss 1.00") << "how far it is comes before its name";
  EXPECT_FALSE(trainings_.seconds().has_value());
  now_ += 8;
  members[0].measured = {{"array", 2}};
  update(Progress::Kind::evaluation_finished, members[0]);
  EXPECT_EQ(trainings_.seconds(), 4.0);
  EXPECT_EQ(trainings_.size(), 3);
}

TEST_F(RunningTrainingsTest, NamesShareTheRoom) {
  EXPECT_EQ(text(80), "");
  std::vector<Evaluation> members(3);
  const char* names[] = {"dot|softmax|none|fixed|bias|0.1", "second", "a|short|one"};
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i].id = std::to_string(9 - i);  // not in the order of their numbers
    members[i].candidate = names[i];
    update(Progress::Kind::evaluation_started, members[i]);
  }
  trainings_.update({.kind = Progress::Kind::evaluation_advanced,
                     .evaluation = &members[0],
                     .last = &members[1],
                     .advance = {.step = 5, .steps = 10, .loss = 1}},
                    now_);
  const std::string first = " + 1 more: step 5/10, loss 1.00; a|short|one: training";
  EXPECT_EQ(text(100), names[0] + first);
  EXPECT_EQ(text(75), "dot|softma\u2026d|bias|0.1" + first);
  EXPECT_EQ(text(66), "dot|so\u2026s|0.1" + first);
  EXPECT_EQ(text(65), "dot|softmax|no\u2026fixed|bias|0.1 + 1 more: step 5/10, loss 1.00; ...");
}

TEST(LeftText, HasOneUnit) {
  EXPECT_EQ(left_text({.low = 0.1, .high = 0.2}), "0 s left");
  EXPECT_EQ(left_text({.low = 40, .high = 80}), "40 to 80 s left");
  EXPECT_EQ(left_text({.low = 170, .high = 310}), "3 to 5 min left");
  EXPECT_EQ(left_text({.low = 5000, .high = 7300}), "1.5 to 2 h left");
  EXPECT_EQ(left_text({.low = 190000, .high = 200000}), "2 to 2.5 d left");
  EXPECT_EQ(left_text({.low = -2, .high = -1}), "-2 to -1 s left") << "whatever it is";
}

TEST(StatusLines, LeavesTheCursorAtTheBeginningOfTheFirst) {
  std::ostringstream out;
  int width = 80;
  {
    StatusLines lines(out, [&width] { return width; });
    lines.show({"one", "two"});
    EXPECT_EQ(out.str(), "\rone\x1b[K\ntwo\x1b[J\r\x1b[1A");
    out.str("");
    width = 30;
    EXPECT_EQ(lines.columns(), 29U);
    lines.show({"a line of more than thirty characters", "two"});
    EXPECT_EQ(out.str(), "\ra line of more than thirty c\u2026\x1b[K\ntwo\x1b[J\r\x1b[1A");
    out.str("");
  }
  EXPECT_EQ(out.str(), "\ra line of more than thirty c\u2026\x1b[K\ntwo\x1b[J\n");
}

TEST(StatusLines, LeavesLinesAboveThem) {
  std::ostringstream out;
  {
    StatusLines lines(out, [] { return 80; });
    lines.leave("before any");
    EXPECT_EQ(out.str(), "\rbefore any\x1b[K\n\x1b[J\r");
    lines.show({"one", "two"});
    out.str("");
    lines.leave("stays\nas does this");
    EXPECT_EQ(out.str(), "\rstays\x1b[K\nas does this\x1b[K\none\x1b[K\ntwo\x1b[J\r\x1b[1A");
    out.str("");
  }
  EXPECT_EQ(out.str(), "\rone\x1b[K\ntwo\x1b[J\n");
}

/// Otherwise each call would scroll the screen.
TEST(StatusLines, TakesNoMoreThanTheRowsAndColumnsThatThereAre) {
  for (const auto& [width, height, shown] :
       {std::tuple{8, 2, "\rone two\x1b[K\ntwo\x1b[J\r\x1b[1A"},
        std::tuple{5, 24, "\rone\u2026\x1b[K\ntwo\x1b[J\r\x1b[1A"},
        std::tuple{8, 1, "\rone two\x1b[J\r"}, std::tuple{1, 1, "\r\u2026\x1b[J\r"}}) {
    std::ostringstream out;
    StatusLines lines(
        out, [width = width] { return width; }, [height = height] { return height; });
    lines.show({"one two", "two"});
    EXPECT_EQ(out.str(), shown) << width << ' ' << height;
  }
}

TEST(StatusLines, ShowsOfTextsOfOthersWhatFitsAndCommandsNothing) {
  std::ostringstream out;
  {
    StatusLines lines(out, [] { return 21; });
    lines.show({"\x1b[2Jred\nherring",
                "x\x9b"
                "31m and so on and so on"});
  }
  const std::string shown = "\r\uFFFD[2Jred\x1b[K\nx\uFFFD31m and so on and\u2026\x1b[J";
  EXPECT_EQ(out.str(), shown + "\r\x1b[1A" + shown + "\n");
}

TEST(PacedLine, IsShownTwicePerSecondAndAtTheEnd) {
  std::ostringstream out;
  double now = 0.0;
  PacedLine line(
      out, [] { return 31; }, [&now] { return now; });
  for (int i = 0; i < 8; ++i) {  // a second
    line.show(std::to_string(i) + " of 8  https://example.org/a/long/path", false);
    now += 0.125;
  }
  EXPECT_EQ(out.str(),
            "\r0 of 8  https://example.org/a\u2026\x1b[J\r\r4 of 8  "
            "https://example.org/a\u2026\x1b[J\r");
  out.str("");
  line.show("8 of 8", false);
  line.show("8 of 8, all", true);
  EXPECT_EQ(out.str(), "\r8 of 8\x1b[J\r\r8 of 8, all\x1b[J\r");
}

TEST(Abridged, KeepsBothEnds) {
  EXPECT_EQ(abridged("dot|softmax", 11), "dot|softmax");
  EXPECT_EQ(abridged("dot|softmax", 10), "dot|s\u2026tmax");
  EXPECT_EQ(abridged("dot|softmax", 3), "d\u2026x");
  EXPECT_EQ(abridged("dot|softmax", 1), "\u2026");
  EXPECT_EQ(abridged("\u00e9\u00e8\u00ea\u00eb", 3), "\u00e9\u2026\u00eb");
}

TEST(StatusLines, WritesNothingWhereNothingWasShown) {
  std::ostringstream out;
  { const StatusLines lines(out, terminal_width); }
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace nas
