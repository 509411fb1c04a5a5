#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "report/files.hpp"
#include "report/progress_display.hpp"
#include "report/svg.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

/// A small made-up run: five asks in two generations, one of them reused, one failed, and a
/// baseline outside the search.
class ReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "attnas-report-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    store_ = std::make_unique<Store>(folder_ / "store.sqlite");
    store_->add({evaluation("a", 90), evaluation("b", 80), evaluation("c", 0), evaluation("d", 85),
                 evaluation("v", 100)});
    store_->add_asks({ask(0, 0, "a", 90), ask(1, 0, "b", 80), ask(2, 1, "a", 90, true),
                      ask(3, 1, "c", 1e9), ask(4, 1, "d", 85)});
    store_->set_meta("config", {{"name", "made up"},
                                {"objectives", {"perplexity"}},
                                {"evaluation", {{"workers", "2"}, {"threads", 1}}},
                                {"training", {{"steps", 5}, {"checkpoint_minutes", 5}}}});
    store_->set_meta("baseline", "v");
    store_->set_meta("labels", {{"candidate b", "the <best>, \"b\""}});
  }
  void TearDown() override {
    store_.reset();
    fs::remove_all(folder_);
  }

  static Evaluation evaluation(const std::string& id, double perplexity) {
    Evaluation made;
    made.id = id;
    made.candidate = "candidate " + id;
    made.identity = {{"candidate", made.candidate}};
    made.measured = {{"train_seconds", 2.5}, {"pid", 1234}};
    if (perplexity == 0) {
      made.status = Status::diverged;
      made.reason = "not finite";
      return made;
    }
    made.status = Status::ok;
    CurvePoint point;
    point.step = 5;
    point.valid.tokens = 10;
    point.valid.nll = 10 * std::log(perplexity);
    point.valid.correct = 4;
    point.valid.batches = 1;
    point.valid.batch_mean_nll = std::log(perplexity);
    made.curve = {point};
    made.values = {{"perplexity", perplexity}, {"parameters", 1000.0}, {"flops", 2e6}};
    return made;
  }
  static Ask ask(std::int64_t number, std::int64_t batch, const std::string& id, double fitness,
                 bool reused = false) {
    return {.number = number,
            .batch = batch,
            .genotype = "g" + id,
            .evaluation = id,
            .reused = reused,
            .fitness = {fitness}};
  }

  fs::path folder_;
  std::unique_ptr<Store> store_;
};

TEST_F(ReportTest, SummaryRanksCountsAndSetsFailuresApart) {
  const RunSummary run(*store_);
  ASSERT_EQ(run.ranking.size(), 3U);
  EXPECT_EQ(run.ranking[0].candidate, "candidate b");
  EXPECT_EQ(run.ranking[2].candidate, "candidate a");
  EXPECT_EQ(run.ranking[2].times_asked, 2);
  EXPECT_EQ(run.ranking[2].n, 1);
  EXPECT_EQ(run.failures.size(), 1U);
  EXPECT_EQ(run.reused, 1);
  EXPECT_NEAR(run.baseline->value, 100, 1e-9);
  EXPECT_EQ(run.baseline->first_ask, -1);
  EXPECT_DOUBLE_EQ(run.train_seconds, 12.5);
  ASSERT_EQ(run.batches.size(), 2U);
  EXPECT_EQ(run.batches[1].best, 85);
  EXPECT_EQ(run.batches[1].best_so_far, 80);
  EXPECT_EQ(run.batches[1].mean, 87.5);
  EXPECT_EQ(run.batches[1].failures, 1);
}

TEST_F(ReportTest, TableShowsTheBaselineTheFailuresAndN) {
  const auto text = closing_table(RunSummary(*store_));
  EXPECT_THAT(
      text,
      HasSubstr(
          "5 candidates asked for, 4 evaluated, 1 answered by an earlier evaluation, 1 failures"));
  EXPECT_THAT(text, HasSubstr("-20.0 %"));
  EXPECT_THAT(text, HasSubstr("baseline  candidate v"));
  EXPECT_THAT(text, HasSubstr("1 diverged, e.g.: not finite"));
  EXPECT_THAT(text, HasSubstr("n = 1"));
}

TEST_F(ReportTest, CsvQuotesAndHasOneLineAnEvaluation) {
  const auto csv = evaluations_csv(RunSummary(*store_));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 6);
  EXPECT_THAT(csv, HasSubstr("\"the <best>, \"\"b\"\"\",candidate b,"));
  EXPECT_THAT(csv, HasSubstr(",1 3,0,ok,"));  // the asks of a
}

TEST_F(ReportTest, ResultsAreJsonWithCounts) {
  const auto json = results_json(RunSummary(*store_));
  EXPECT_EQ(json["counts"]["asked"], 5);
  EXPECT_EQ(json["ranking"][0]["candidate"], "candidate b");
  EXPECT_EQ(json["baseline"]["candidate"], "candidate v");
  EXPECT_EQ(json["failures"][0]["status"], "diverged");
  EXPECT_EQ(nlohmann::json::parse(json.dump()), json);
}

TEST_F(ReportTest, CanonicalExportHoldsNothingMeasured) {
  const auto text = canonical_export(RunSummary(*store_));
  for (const auto* word : {"train_seconds", "pid", "workers", "checkpoint_minutes", "made up"}) {
    EXPECT_THAT(text, Not(HasSubstr(word)));
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 5 + 5);
}

TEST_F(ReportTest, PictureEscapesItsTextsAndDrawsEveryAsk) {
  const auto svg = progress_svg(RunSummary(*store_));
  EXPECT_THAT(svg, HasSubstr("the &lt;best&gt;, &quot;b&quot;"));
  EXPECT_THAT(svg, Not(HasSubstr("<best>")));
  EXPECT_THAT(svg, HasSubstr("baseline 100.00"));
  std::size_t circles = 0;
  for (auto at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1))
    ++circles;
  EXPECT_EQ(circles, 5U);  // four usable asks and the mark of the best
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST_F(ReportTest, PictureOfARunOfFailuresSaysSo) {
  Store store(folder_ / "failed.sqlite");
  store.add({evaluation("c", 0)});
  store.add_asks({ask(0, 0, "c", 1e9)});
  EXPECT_THAT(progress_svg(RunSummary(store)), HasSubstr("no candidate could be evaluated"));
}

TEST_F(ReportTest, FilesAreWrittenWholeOrNotAtAll) {
  write_file(folder_ / "x.txt", "text");
  std::ifstream file(folder_ / "x.txt");
  std::string text;
  std::getline(file, text);
  EXPECT_EQ(text, "text");
  EXPECT_FALSE(fs::exists(folder_ / "x.txt.tmp"));
  EXPECT_THROW(write_file(folder_ / "no" / "x.txt", "text"), InputError);
}

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

TEST_F(DisplayTest, TerminalLineIsRewrittenWithinItsWidth) {
  std::ostringstream out;
  {
    ProgressDisplay display(out, options(true));
    play(display);
  }
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line, '\r');) {
    if (line.empty()) continue;
    EXPECT_LE(line.find("\x1b"), 80U) << line;
  }
  EXPECT_THAT(out.str(), HasSubstr("gen 1/2"));
  EXPECT_EQ(out.str().back(), '\n');
}

}  // namespace
}  // namespace nas
