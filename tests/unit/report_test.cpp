#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/host.hpp"
#include "core/temporary_folder.hpp"
#include "places.hpp"
#include "report/digest.hpp"
#include "report/files.hpp"
#include "report/recorded_genes.hpp"
#include "report/text.hpp"
#include "report/verdict.hpp"
#include "search/algorithm.hpp"
#include "store/writer_lock.hpp"
#include "unit/message_of.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

/// A small made-up run: five asks in two generations, one of them reused, one failed, and a
/// baseline outside the search.
class ReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = std::make_unique<Store>(folder_ / "store.sqlite");
    store_->add({evaluation("a", 90), evaluation("b", 80), evaluation("c", 0), evaluation("d", 85),
                 evaluation("v", 100)});
    store_->add_asks({ask(0, 0, "a", 90), ask(1, 0, "b", 80), ask(2, 1, "a", 90, true),
                      ask(3, 1, "c", 1e9), ask(4, 1, "d", 85)});
    store_->add_indicator({.asked = 2, .batch = 0, .evaluated = 2, .front = 1, .value = 80});
    store_->add_indicator({.asked = 5, .batch = 1, .evaluated = 4, .front = 1, .value = 80});
    store_->set_meta(
        "config",
        {{"name", "made up"},
         {"budget", {{"evaluations", 0}}},
         {"data",
          {{"corpus", "text_file"},
           {"path", "/some/where.txt"},
           {"train", "/some/other.txt"},
           {"seed_file", "/some/seed"},
           {"min_count", 2}}},
         {"evaluation", {{"workers", "2"}, {"array", "4"}, {"threads", 1}, {"repeated", "reuse"}}},
         {"training", {{"steps", 5}, {"checkpoint_minutes", 5}}}});
    store_->set_meta("objectives", nlohmann::json::array({objective("perplexity", "1", 1, 400)}));
    store_->set_meta("schema", {{"objectives", {{"perplexity", {{"source", "trained"}}}}}});
    store_->set_meta("baseline", {{"evaluations", {"v"}}, {"fitness", {100.0}}});
    store_->set_meta("labels", {{"candidate b", "the <best>, \"b\""}});
  }
  static nlohmann::json objective(const char* name, const char* unit, double best, double worst,
                                  bool maximise = false) {
    return {{"name", name},         {"key", name},  {"unit", unit},
            {"maximise", maximise}, {"best", best}, {"worst", worst}};
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
            .evaluations = {id},
            .reused = reused,
            .fitness = {fitness}};
  }

  /// How many files' names begin so.
  [[nodiscard]] std::ptrdiff_t files_like(const std::string& begin) const {
    return std::count_if(
        fs::directory_iterator(folder_), fs::directory_iterator(),
        [&](const auto& entry) { return entry.path().filename().string().starts_with(begin); });
  }

  const TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  std::unique_ptr<Store> store_;
};

TEST_F(ReportTest, TheBaselineHasAllSeedsThatTheSearchGaveIt) {
  store_->set_meta("baseline", {{"evaluations", {"a"}}, {"fitness", {70.0}}});
  EXPECT_EQ(RunSummary(*store_).baseline->values.front(), 70.0) << "the search has no more";
  auto further = evaluation("a2", 110);
  further.candidate = "candidate a";
  store_->add({further});
  auto again = ask(5, 2, "a", 100);
  again.evaluations = {"a", "a2"};
  store_->add_asks({again});
  const RunSummary run(*store_);
  EXPECT_EQ(run.baseline->n, 2);
  EXPECT_EQ(run.baseline->values.front(), 100.0);
  EXPECT_TRUE(run.baseline->standard_errors.front());
}

TEST_F(ReportTest, SummaryRanksCountsAndSetsFailuresApart) {
  const RunSummary run(*store_);
  ASSERT_EQ(run.ranking.size(), 3U);
  EXPECT_EQ(run.ranking[0].candidate, "candidate b");
  EXPECT_EQ(run.ranking[2].candidate, "candidate a");
  EXPECT_EQ(run.ranking[2].times_asked, 2);
  EXPECT_EQ(run.ranking[2].n, 1);
  EXPECT_EQ(run.search.failures.size(), 1U);
  EXPECT_EQ(run.reused, 1);
  EXPECT_EQ(run.search.evaluations, 4);
  EXPECT_NEAR(run.baseline->values.front(), 100, 1e-9);
  EXPECT_EQ(run.baseline->first_ask, -1);
  EXPECT_DOUBLE_EQ(run.search.train_seconds, 10.0) << "without the baseline's";
  ASSERT_EQ(run.batches.size(), 2U);
  EXPECT_EQ(run.batches[1].best, 85);
  EXPECT_EQ(run.batches[1].best_so_far, 80);
  EXPECT_EQ(run.batches[1].mean, 87.5);
  EXPECT_EQ(run.batches[1].failures, 1);
}

TEST_F(ReportTest, TableShowsTheBaselineTheFailuresAndN) {
  const auto text = closing_table(RunSummary(*store_));
  EXPECT_THAT(text, HasSubstr("5 candidates asked for, 4 evaluated, 1 answered by an earlier "
                              "evaluation, 1 failure; 10 s of training\n"));
  EXPECT_THAT(text, HasSubstr("-20.0 %"));
  EXPECT_THAT(text, HasSubstr("baseline  candidate v"));
  EXPECT_THAT(text, HasSubstr("1 diverged, e.g.: not finite"));
  EXPECT_THAT(text, HasSubstr("n = 1"));
}

TEST_F(ReportTest, ABaselineNoBetterThanTheUnigramModelIsSaidLast) {
  const auto table = [this](const nlohmann::json& unigram) {
    store_->set_meta("facts", {{"unigram_perplexity", unigram}});
    return closing_table(RunSummary(*store_));
  };
  for (const auto& unigram : {nlohmann::json(100.5), nlohmann::json(0.0), nlohmann::json()}) {
    EXPECT_THAT(table(unigram), Not(HasSubstr("learned nothing"))) << unigram;
  }
  EXPECT_THAT(
      table(62.25),
      ::testing::EndsWith("\n\nThe baseline has learned nothing: its perplexity is 100.00, "
                          "that of the unigram model, which looks\nat no context, 62.25. Train "
                          "longer, or with another learning rate, before mechanisms are "
                          "compared.\n"));
}

TEST_F(ReportTest, ControlsAreRowsAndABaselineBehindOneIsSaid) {
  auto trained = objective("perplexity", "1", 1, 400);
  trained["source"] = "trained";
  store_->set_meta("objectives", nlohmann::json::array({trained}));
  store_->add({evaluation("n", 95), evaluation("w", 70)});
  const auto control = [](const char* name, const char* id, double value) {
    return nlohmann::json{{"name", name},
                          {"candidate", "candidate " + std::string(id)},
                          {"evaluations", {id}},
                          {"fitness", {value}}};
  };
  const auto shown = [&](const nlohmann::json& controls) {
    store_->set_meta("controls", controls);
    return RunSummary(*store_);
  };
  const auto both = shown({control("no mixer", "n", 95), control("window 2", "w", 70)});
  ASSERT_EQ(both.controls.size(), 2U);
  EXPECT_EQ(both.controls[1].measured.values, std::vector<double>{70.0});
  EXPECT_EQ(results_json(both)["controls"][0]["name"], "no mixer");
  EXPECT_EQ(results_json(both)["controls"][0]["values"]["perplexity"], 95.0);
  const auto table = closing_table(both);
  EXPECT_THAT(table, ::testing::ContainsRegex("no mixer  candidate n +95.00"));
  EXPECT_THAT(table, HasSubstr("outside the search (baseline, controls): 3 evaluated"));
  EXPECT_EQ(behind_control_text(both),
            "The baseline is behind a control: window 2 has 70.00 in perplexity, the baseline "
            "100.00 (n = 1). What is better than the baseline here may be so by attending less. "
            "Nothing that the search found is better than that control.");
  const auto one = shown(nlohmann::json::array({control("no mixer", "n", 95)}));
  EXPECT_THAT(behind_control_text(one), HasSubstr("no mixer has 95.00"));
  EXPECT_THAT(behind_control_text(one), Not(HasSubstr("Nothing that the search")));
  EXPECT_EQ(behind_control_text(shown(nlohmann::json::array({control("no mixer", "n", 101)}))), "");
  EXPECT_EQ(behind_control_text(shown(nullptr)), "");
  EXPECT_TRUE(shown(nlohmann::json::array({control("gone", "unknown", 1)})).controls.empty());
}

TEST_F(ReportTest, CountsOfTheTrainingTokensAreShownAndABaselineBehindThemIsSaid) {
  const auto counted = [this](double nll) {
    store_->set_meta("count_models",
                     {{{"order", 1}, {"tokens", 614400}, {"valid_nll", 9.0}},
                      {{"order", 3}, {"tokens", 614400}, {"valid_nll", nll}, {"test_nll", 0.1}},
                      {{"order", 4}, {"tokens", 614400}}});
    return RunSummary(*store_);
  };
  const auto ahead = counted(std::log(99.0));
  EXPECT_EQ(
      behind_counts_text(ahead),
      "The baseline is behind counts of the tokens that it was trained on: its perplexity is "
      "100.00, that of counts of order 3 99.00. It has not learned yet what the text's last 2 "
      "tokens say.");
  EXPECT_THAT(closing_table(ahead), HasSubstr("with as much history: perplexity 99.00 (order 3)"));
  EXPECT_EQ(results_json(ahead)["count_models"][1]["order"], 3);
  EXPECT_EQ(behind_counts_text(counted(std::log(101.0))), "");
  store_->set_meta("count_models", nullptr);
  EXPECT_FALSE(best_counts(RunSummary(*store_)));
}

TEST_F(ReportTest, ASearchOfWhichAllBeatTheBaselineIsUnderTrained) {
  auto trained = objective("perplexity", "1", 1, 400);
  trained["source"] = "trained";
  store_->set_meta("objectives", nlohmann::json::array({trained}));
  const auto add = [this](int number, double value) {
    const auto id = "more" + std::to_string(number);
    store_->add({evaluation(id, value)});
    store_->add_asks({ask(number, 2, id, value)});
  };
  for (int i = 5; i < 11; ++i) add(i, 60.0 + i);
  EXPECT_EQ(untrained_text(RunSummary(*store_)), "") << "nine are few";
  add(11, 71.0);
  EXPECT_EQ(untrained_text(RunSummary(*store_)),
            "All 10 mechanisms of the search are better than the baseline in perplexity: it is "
            "probably under-trained. Train longer, or with another learning rate.");
  add(12, 100.5);
  EXPECT_EQ(untrained_text(RunSummary(*store_)), "");
}

/// Adds what constraints rejected: e before training, f and its replicate after it.
void add_rejected(Store& store) {
  auto config = *store.meta("config");
  config["constraints"] = {"parameters <= 1500", "accuracy >= 0.5"};
  store.set_meta("config", config);
  Evaluation before;
  before.id = "e";
  before.candidate = "candidate e";
  before.status = Status::rejected;
  before.reason = "parameters = 2000, must be <= 1500";
  std::vector<Evaluation> after(2);
  for (std::size_t i = 0; i < 2; ++i) {
    after[i].id = i == 0 ? "f" : "f2";
    after[i].candidate = "candidate f";
    after[i].replicate = static_cast<std::int64_t>(i);
    after[i].status = Status::ok;
    after[i].curve.resize(1);
    after[i].curve[0].valid.tokens = 10;
    after[i].values = {{"perplexity", 70.0 + 5.0 * static_cast<double>(i)}, {"parameters", 1000.0}};
    after[i].measured = {{"accuracy", {{"value", i == 0 ? 0.3 : 0.6}}}};
  }
  store.add({before, after[0], after[1]});
  const std::vector<double> penalty{1 + 10 * (400.0 - 1)};
  store.add_asks(
      {{.number = 5, .batch = 1, .genotype = "ge", .evaluations = {"e"}, .fitness = penalty},
       {.number = 6,
        .batch = 1,
        .genotype = "gf",
        .evaluations = {"f", "f2"},
        .fitness = penalty}});
}

TEST_F(ReportTest, WhatConstraintsRejectIsNoFailureAndCostsNothing) {
  add_rejected(*store_);
  const RunSummary run(*store_);
  EXPECT_EQ(run.search.evaluations, 6) << "with both trainings of f";
  EXPECT_EQ(run.search.rejected, 1);
  EXPECT_EQ(run.search.failures.size(), 1U);
  ASSERT_EQ(run.rejected.size(), 2U);
  EXPECT_FALSE(run.rejected[0].trained);
  EXPECT_TRUE(run.rejected[1].trained);
  EXPECT_EQ(run.rejected[1].reason, "accuracy = 0.45, must be >= 0.5 (over 2 replicates)");
  EXPECT_EQ(run.ranking.size(), 3U) << "70 was not good enough to be ranked";
  EXPECT_EQ(run.batches[1].rejected, 2);
  EXPECT_EQ(run.batches[1].failures, 1);
  EXPECT_EQ(run.batches[1].mean, 87.5);
  const auto text = closing_table(run);
  EXPECT_THAT(text, HasSubstr("7 candidates asked for, 6 evaluated, 1 rejected by constraints, 1 "
                              "answered by an earlier evaluation, 1 failure"));
  EXPECT_THAT(text, HasSubstr("\nrejected by constraints\n"
                              "  1 before training, e.g.: parameters = 2000, must be <= 1500\n"
                              "  1 after training, e.g.: accuracy = 0.45, must be >= 0.5"));
  EXPECT_THAT(text, HasSubstr("\nfailures\n  1 diverged"));
  const auto json = results_json(run);
  EXPECT_EQ(json["counts"]["rejected"], 1);
  EXPECT_EQ(json["counts"]["failures"], 1);
  EXPECT_EQ(json["counts"]["evaluated"], 6);
  EXPECT_EQ(json["rejected"].size(), 2U);
  EXPECT_EQ(json["rejected"][0]["reason"], "parameters = 2000, must be <= 1500");
  EXPECT_EQ(json["batches"][1]["rejected"], 2);
  EXPECT_EQ(RunSummary(*store_, 4).asks.size(), 6U) << "a rejected one needs no training";
}

TEST_F(ReportTest, WhatWasStoppedEarlyIsMarkedAndNeverTheBest) {
  auto stopped = evaluation("s", 70);
  stopped.status = Status::stopped_early;
  stopped.reason = "nll above the limit";
  stopped.curve[0].step = 2;
  store_->add({stopped});
  store_->add_asks({ask(5, 1, "s", 70)});
  const RunSummary run(*store_);
  EXPECT_EQ(run.ranking.front().candidate, "candidate b");
  EXPECT_EQ(run.ranking.back().candidate, "candidate s");
  EXPECT_EQ(run.ranking.back().stopped_at, 2);
  EXPECT_FALSE(run.ranking.back().on_front);
  EXPECT_EQ(run.batches[1].best, 85);
  EXPECT_EQ(run.search.stopped_early, 1);
  const auto text = closing_table(run);
  EXPECT_THAT(text, HasSubstr("1 failure, 1 stopped early; "));
  EXPECT_THAT(text, ::testing::ContainsRegex("candidate s +70.00 +- +1 .*stopped at step 2\n"))
      << "not compared with the baseline";
  EXPECT_THAT(text, HasSubstr("Stopped early: the value is that of the step"));
  const auto json = results_json(run);
  EXPECT_EQ(json["counts"]["stopped_early"], 1);
  EXPECT_EQ(json["ranking"][3]["stopped_at"], 2);
  EXPECT_TRUE(json["ranking"][0]["stopped_at"].is_null());
}

TEST_F(ReportTest, WhereAllWereStoppedTheBestOfThemLeads) {
  Store store(folder_ / "stopped.sqlite");
  std::vector<Evaluation> all{evaluation("a", 90), evaluation("b", 85)};
  for (auto& one : all) one.status = Status::stopped_early;
  store.add(all);
  store.add_asks({ask(0, 0, "a", 90), ask(1, 0, "b", 85)});
  store.set_meta("objectives", nlohmann::json::array({objective("perplexity", "1", 1, 400)}));
  const RunSummary run(store);
  EXPECT_EQ(run.ranking.front().candidate, "candidate b");
  EXPECT_TRUE(run.ranking.front().on_front);
}

TEST_F(ReportTest, FewerReplicatesThanWantedAreMarked) {
  Store store(folder_ / "few.sqlite");
  std::vector<Evaluation> trained{evaluation("a", 90), evaluation("a2", 70), evaluation("a3", 0)};
  for (auto& one : trained) one.candidate = "candidate a";
  store.add(trained);
  store.add({evaluation("b", 85)});
  auto some = ask(0, 0, "a", 80);  // as an objective that judges failures lets it stand
  some.evaluations = {"a", "a2", "a3"};
  store.add_asks({some, ask(1, 0, "b", 85)});
  store.set_meta("objectives", nlohmann::json::array({objective("perplexity", "1", 1, 400)}));
  const RunSummary run(store);
  EXPECT_EQ(run.ranking[0].n, 2);
  EXPECT_EQ(run.ranking[0].wanted, 3);
  EXPECT_THAT(closing_table(run), ::testing::ContainsRegex("candidate a +80.00 +10.00 +2/3 "));
  EXPECT_THAT(closing_table(run), ::testing::ContainsRegex("candidate b +85.00 +- +1 "));
  EXPECT_THAT(closing_table(run), HasSubstr("n = 2/3: of 3 trainings 2 are used"));
  EXPECT_EQ(results_json(run)["ranking"][0]["replicates"], 3);
}

TEST_F(ReportTest, AFailedReplicateFailsTheCandidateAsItsFitnessSays) {
  Store store(folder_ / "frail.sqlite");
  std::vector<Evaluation> trained{evaluation("a", 60), evaluation("a2", 0)};
  for (auto& one : trained) one.candidate = "candidate a";
  store.add(trained);
  auto failed = ask(0, 0, "a", 1 + 10 * (400.0 - 1));
  failed.evaluations = {"a", "a2"};
  store.add_asks({failed});
  store.set_meta("objectives", nlohmann::json::array({objective("perplexity", "1", 1, 400)}));
  const RunSummary run(store);
  EXPECT_TRUE(run.ranking.empty());
  EXPECT_EQ(run.status(run.asks[0]), Status::diverged);
  EXPECT_EQ(run.reason(run.asks[0]), "1 of 2 replicates failed, replicate 0 diverged: not finite");
}

TEST_F(ReportTest, BaselineTuningAndRetestCountApart) {
  store_->add({evaluation("trial", 0), evaluation("fresh", 82)});
  store_->set_meta("tuning", nlohmann::json::array());
  const RunSummary run(*store_);
  const auto text = closing_table(run);
  EXPECT_THAT(text,
              HasSubstr("outside the search (baseline, tuning): 3 evaluated, 1 failure; 8 s of "
                        "training\n"));
  EXPECT_THAT(text, HasSubstr("\nfailures\n  1 diverged"));
  EXPECT_THAT(text, HasSubstr("\nfailures outside the search\n  1 diverged"));
  const auto json = results_json(run);
  EXPECT_EQ(json["counts"]["failures"], 1);
  EXPECT_EQ(json["failures"].size(), 1U);
  EXPECT_EQ(json["train_seconds"], 10.0);
  EXPECT_EQ(json["outside_the_search"]["evaluated"], 3);
  EXPECT_EQ(json["outside_the_search"]["train_seconds"], 7.5);
  EXPECT_EQ(json["outside_the_search"]["failures"][0]["evaluation"], "trial");
}

TEST_F(ReportTest, ATablesMeanIsNotCalledOneTrainingRun) {
  store_->set_meta("facts", {{"table", {{"mode", "mean"}, {"replicates", 5}}}});
  const auto text = closing_table(RunSummary(*store_));
  EXPECT_THAT(text, HasSubstr("\nn = 1: the mean over all trainings of a mechanism that the table "
                              "holds, at least 5. Only one is\ncharged.\n"));
  EXPECT_THAT(text, Not(HasSubstr("one training each")));
  store_->set_meta("facts", {{"table", {{"mode", "noisy"}, {"replicates", 5}}}});
  EXPECT_THAT(
      closing_table(RunSummary(*store_)),
      HasSubstr("\n\nn = 1: one training each, hence no standard error. Differences below the "
                "noise between seeds mean\nnothing, and the best"));
  EXPECT_THAT(closing_table(RunSummary(*store_), 60),
              HasSubstr("\n\nn = 1: one training each, hence no standard error.\nDifferences below "
                        "the noise between seeds mean nothing, and\nthe best"));
}

TEST_F(ReportTest, ARetestIsATableWithItsVerdict) {
  EXPECT_THAT(closing_table(RunSummary(*store_)), Not(HasSubstr("re-test")));
  const nlohmann::json estimate{
      {"mean", 84.0}, {"standard_error", 0.5}, {"n", 5}, {"low", 83.0}, {"high", 85.0}};
  const nlohmann::json unknown{{"mean", nullptr},
                               {"standard_error", nullptr},
                               {"n", 0},
                               {"low", nullptr},
                               {"high", nullptr}};
  const nlohmann::json contrast{{"difference", std::log(0.9)},
                                {"low", std::log(0.85)},
                                {"high", std::log(0.95)},
                                {"p", 0.002},
                                {"p_holm", 0.004},
                                {"effect_size", -2.0},
                                {"n", 5}};
  store_->set_meta("retest", {{"replicates", 5},
                              {"confidence", 0.95},
                              {"objective", "perplexity"},
                              {"candidates",
                               {{{"candidate", "candidate b"},
                                 {"label", "b"},
                                 {"role", "top"},
                                 {"search", {80.0}},
                                 {"retest", {estimate}},
                                 {"test", estimate},
                                 {"non_dominated_probability", 0.75},
                                 {"against_baseline", contrast}},
                                {{"candidate", "candidate v"},
                                 {"label", "v"},
                                 {"role", "baseline"},
                                 {"search", {100.0}},
                                 {"retest", {unknown}},
                                 {"test", unknown},
                                 {"non_dominated_probability", 0.25},
                                 {"against_baseline", nullptr}}}},
                              {"verdict", "b is better."}});
  store_->set_meta("tuning",
                   {{{"candidate", "candidate v"},
                     {"label", "v"},
                     {"trials",
                      {{{"learning_rate", 3e-4}, {"weight_decay", 0.01}, {"value", 100.0}},
                       {{"learning_rate", 0.002}, {"weight_decay", 0.0}, {"value", 95.0}}}},
                     {"best", 1}}});
  const RunSummary run(*store_);
  const auto text = closing_table(run);
  EXPECT_THAT(text,
              HasSubstr("v: learning rate 0.002, weight decay 0, the best of 2 trials (95.00, "
                        "the configuration's own 100.00)"));
  EXPECT_THAT(text, HasSubstr("re-test on 5 fresh seeds; 95 % intervals, each for itself; "
                              "differences in test perplexity, paired by seed, p by Holm over all "
                              "of them; P(best) by validation values\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex(
                        "top  b +80.00  84.00 \\(83.00 to 85.00\\)  84.00 \\(83.00 to 85.00\\) "
                        "+5 +-10.0 % \\(-15.0 to -5.0\\)  0.004 +0.75\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("baseline  v +100.00 +- +- +0/5 +- +- +0.25\n"));
  EXPECT_THAT(text, Not(HasSubstr("to tuned baseline")));
  EXPECT_THAT(text, HasSubstr("\nb is better.\n"));
  EXPECT_THAT(text, Not(HasSubstr("n = 1: one training each"))) << "the re-test says more";
  EXPECT_EQ(results_json(run)["retest"]["verdict"], "b is better.");
  EXPECT_EQ(results_json(run)["tuning"][0]["best"], 1);
}

TEST_F(ReportTest, ListedMechanismsAreComparedWithoutASearch) {
  Store store(folder_ / "listed.sqlite");
  store.add({evaluation("m", 84), evaluation("v", 100)});
  store.set_meta("config", {{"name", "listed"}, {"mechanisms", {"candidate m"}}});
  store.set_meta("objectives", nlohmann::json::array({objective("perplexity", "1", 1, 400),
                                                      objective("flops", "FLOP", 0, 10)}));
  const auto estimate = [](double mean, double half) {
    return nlohmann::json{{"mean", mean},
                          {"standard_error", half},
                          {"n", 3},
                          {"low", mean - half},
                          {"high", mean + half}};
  };
  const nlohmann::json difference{{"difference", -16.0}, {"low", -18.0},    {"high", -14.0},
                                  {"p", 0.002},          {"p_holm", 0.004}, {"n", 3}};
  const auto candidate = [&](const char* name, const char* role, double perplexity) {
    return nlohmann::json{{"candidate", name},
                          {"label", name},
                          {"role", role},
                          {"search", nlohmann::json::array()},
                          {"retest", {estimate(perplexity, 1.0), estimate(7.0, 0.0)}},
                          {"test", estimate(perplexity + 1.0, 2.0)},
                          {"non_dominated_probability", 0.5},
                          {"against_baseline", nullptr},
                          {"differences", {nullptr, nullptr}}};
  };
  auto mechanism = candidate("candidate m", "listed", 84.0);
  mechanism["differences"][0] = difference;
  store.set_meta("retest",
                 {{"replicates", 3},
                  {"confidence", 0.95},
                  {"objective", "perplexity"},
                  {"candidates", {mechanism, candidate("candidate v", "baseline", 100.0)}},
                  {"verdict", "candidate m is better."}});
  const RunSummary run(store);
  EXPECT_TRUE(run.listed());
  const auto text = closing_table(run);
  EXPECT_THAT(text, ::testing::StartsWith("2 evaluated, 0 failures; 5 s of training\n"));
  EXPECT_THAT(text, HasSubstr("\ntrained on 3 fresh seeds; 95 % intervals"));
  EXPECT_THAT(
      text, ::testing::ContainsRegex("listed  candidate m +84.00 \\(83.00 to 85.00\\) +7.00 +85.00 "
                                     "\\(83.00 to 87.00\\)"))
      << "all objectives, since no table of a search has the others";
  EXPECT_THAT(
      text, ::testing::ContainsRegex("  mechanism +perplexity +p  n\n"
                                     "  candidate m  -16.00 \\(-18.00 to -14.00\\)  0.004  3\n\n"));
  EXPECT_THAT(text, HasSubstr("\ncandidate m is better.\n"));
  for (const auto* word : {"asked", "search", "front,", "re-test"}) {
    EXPECT_THAT(text, Not(HasSubstr(word)));
  }
  EXPECT_THAT(canonical_export(run), Not(HasSubstr("mechanisms"))) << "more may be listed later";
}

TEST_F(ReportTest, CsvQuotesAndHasOneLinePerEvaluation) {
  const auto csv = evaluations_csv(RunSummary(*store_));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 6);
  EXPECT_THAT(csv, HasSubstr("\"the <best>, \"\"b\"\"\",candidate b,"));
  EXPECT_THAT(csv, HasSubstr(",1 3,0,ok,"));  // the asks of a
}

TEST_F(ReportTest, ResultsAreJsonWithCounts) {
  const auto json = results_json(RunSummary(*store_));
  EXPECT_EQ(json["schema"], 3);
  EXPECT_EQ(json["counts"]["asked"], 5);
  EXPECT_EQ(json["counts"]["evaluated"], 4);
  EXPECT_EQ(json["best"]["value"], 80);
  EXPECT_EQ(json["best"]["trace"].size(), 2U);
  EXPECT_FALSE(json.contains("hypervolume"));
  EXPECT_EQ(json["ranking"][0]["values"]["perplexity"], 80);
  EXPECT_EQ(json["ranking"][0]["candidate"], "candidate b");
  EXPECT_EQ(json["baseline"]["candidate"], "candidate v");
  EXPECT_EQ(json["failures"][0]["status"], "diverged");
  EXPECT_EQ(nlohmann::json::parse(json.dump()), json);
}

TEST_F(ReportTest, ResultsHoldTheWholeRecordAndWhatFollowsFromIt) {
  store_->set_meta("truth", {{"candidate b", {81.0}}});
  store_->set_meta("schema",
                   {{"objectives", {{"perplexity", {{"source", "trained"}, {"unit", "1"}}}}}});
  const auto json = results_json(RunSummary(*store_));
  EXPECT_EQ(json["objectives"][0]["source"], "trained");
  EXPECT_EQ(json["objectives"][0]["penalty"], 1 + 10 * (400.0 - 1));
  EXPECT_EQ(json["truth"]["candidate b"][0], 81);
  EXPECT_TRUE(json["planned_asks"].is_null());
  EXPECT_EQ(json["labels"]["candidate b"], "the <best>, \"b\"");
  EXPECT_EQ(json["genes"], nlohmann::json::parse(R"([{"name": "x1", "options":
      ["ga", "gb", "gc", "gd"]}])"));
  ASSERT_EQ(json["asks"].size(), 5U);
  const auto& asks = json["asks"];
  EXPECT_EQ(asks[2], nlohmann::json::parse(R"({"number": 2, "batch": 1, "genotype": "ga",
      "candidate": "candidate a", "evaluations": ["a"], "reused": true, "fitness": [90.0],
      "status": "ok", "usable": true, "reason": "", "believed": [90.0], "trained": 2,
      "seconds": 5.0})"));
  EXPECT_EQ(asks[3]["status"], "diverged");
  EXPECT_FALSE(asks[3]["usable"]);
  EXPECT_TRUE(asks[3]["believed"].is_null());
  EXPECT_EQ(asks[4]["trained"], 4);
  ASSERT_EQ(json["evaluations"].size(), 5U);
  const auto& first = json["evaluations"][0];
  EXPECT_EQ(first["id"], "a");
  EXPECT_EQ(first["objectives"]["perplexity"], 90);
  EXPECT_EQ(first["values"]["flops"], 2e6);
  EXPECT_EQ(first["measured"]["pid"], 1234);
  EXPECT_EQ(first["curve"][0]["valid"]["correct"], 4);
  EXPECT_TRUE(first["stopped_at"].is_null());
  EXPECT_EQ(json["identities"], nlohmann::json::parse("[{}]")) << "all but the candidates' names";
  EXPECT_EQ(first["identity"], 0);
}

TEST_F(ReportTest, GenesComeFromTheConfigurationAndElseFromTheAsks) {
  Store store(folder_ / "genes.sqlite");
  store.add({evaluation("a", 64), evaluation("b", 32)});
  auto first = ask(0, 0, "a", 64);
  first.genotype = "dot|softmax|none|fixed|bias|0.1";
  auto second = ask(1, 0, "b", 32);
  second.genotype = "cosine|softmax|none|learned|bias|0.2";
  store.add_asks({first, second});
  store.set_meta("config", {{"space",
                             {{"similarity", {"cosine", "dot"}},
                              {"bias", {true, false}},
                              {"attention_dropout", {{"min", 0}, {"max", 0.3}}}}}});
  EXPECT_EQ(results_json(RunSummary(store))["genes"], nlohmann::json::parse(R"([
      {"name": "similarity", "options": ["cosine", "dot"]},
      {"name": "normalization", "options": ["softmax"]},
      {"name": "gating", "options": ["none"]},
      {"name": "temperature", "options": ["fixed", "learned"]},
      {"name": "bias", "options": ["bias", "no_bias"]},
      {"name": "attention_dropout", "min": 0.0, "max": 0.3}])"));
}

TEST_F(ReportTest, NumbersWithoutASpaceAreRealGenes) {
  Store store(folder_ / "numbers.sqlite");
  store.add({evaluation("a", 1)});
  auto first = ask(0, 0, "a", 1);
  first.genotype = "0.5|-2";
  auto second = ask(1, 0, "a", 1);
  second.genotype = "0.25|3e+06";
  store.add_asks({first, second});
  EXPECT_EQ(results_json(RunSummary(store))["genes"],
            nlohmann::json::parse(R"([{"name": "x1", "min": 0.25, "max": 0.5},
                                      {"name": "x2", "min": -2.0, "max": 3e6}])"));
}

TEST_F(ReportTest, ANumberOfTrainingRunsCutsARunShort) {
  const auto cut = [this](std::int64_t trainings) {
    return results_json(RunSummary(*store_, trainings));
  };
  EXPECT_EQ(cut(4)["asks"].size(), 5U);
  EXPECT_EQ(cut(2)["asks"].size(), 3U) << "the reused one is free";
  EXPECT_EQ(cut(2)["best"]["trace"].size(), 1U);
  EXPECT_EQ(cut(1)["asks"].size(), 1U);
  EXPECT_EQ(cut(1)["ranking"][0]["candidate"], "candidate a");
  EXPECT_TRUE(cut(1)["best"]["trace"].empty());
}

TEST_F(ReportTest, CsvLineQuotesWhatNeedsIt) {
  EXPECT_EQ(csv_line({"a b", "a,b", "a\"b", "a\nb", ""}), "a b,\"a,b\",\"a\"\"b\",\"a\nb\",\r\n");
}

TEST_F(ReportTest, NoTextOfAStoreIsSql) {
  const std::string hostile = "x'); DROP TABLE asks;--";
  store_->add({evaluation(hostile, 70)});
  store_->add_asks({ask(5, 2, hostile, 70)});
  store_->set_meta("labels", {{"candidate " + hostile, hostile}});
  store_->set_meta(hostile, hostile);
  store_.reset();
  const Store store(folder_ / "store.sqlite", Store::Mode::read_only);
  EXPECT_EQ(store.meta(hostile), nlohmann::json(hostile));
  const RunSummary run(store);
  EXPECT_EQ(run.asks.size(), 6U);
  ASSERT_FALSE(run.ranking.empty());
  EXPECT_EQ(run.ranking[0].candidate, "candidate " + hostile);
  EXPECT_EQ(run.label(run.ranking[0].candidate), hostile);
  EXPECT_EQ(results_json(run)["ranking"][0]["mechanism"], hostile);
  EXPECT_THAT(evaluations_csv(run), HasSubstr(hostile + ",candidate " + hostile + ","));
}

TEST_F(ReportTest, CsvLineHasNoFormulas) {
  EXPECT_EQ(csv_line({"=1+1", "+x", "-x", "@x", "=\"a\"", "-", "x=1"}),
            "'=1+1,'+x,'-x,'@x,\"'=\"\"a\"\"\",'-,x=1\r\n");
  EXPECT_EQ(csv_line({"-1.5", "-3e-04", "-inf", "1e+09", "dot|softmax"}),
            "-1.5,-3e-04,-inf,1e+09,dot|softmax\r\n");
}

TEST_F(ReportTest, WhatIsNotFiniteIsNullInResults) {
  auto odd = evaluation("o", 70);
  odd.curve[0].train_nll = std::nan("");
  odd.curve[0].valid.pad_nll = std::nan("");
  odd.values["parameters"] = HUGE_VAL;
  store_->add({odd});
  const auto results = results_json(RunSummary(*store_));
  const auto& read = results["evaluations"][4];
  EXPECT_EQ(read["id"], "o");
  EXPECT_TRUE(read["curve"][0]["train_nll"].is_null());
  EXPECT_TRUE(read["curve"][0]["valid"]["pad_nll"].is_null());
  EXPECT_TRUE(read["values"]["parameters"].is_null());
}

TEST_F(ReportTest, BeliefInARetrainedCandidateIsTheMeanOfItsAnswersSoFar) {
  Store store(folder_ / "retrained.sqlite");
  std::vector<Evaluation> all{evaluation("a", 90), evaluation("a2", 70), evaluation("a3", 0)};
  for (auto& one : all) one.candidate = "candidate a";
  all[1].status = Status::stopped_early;
  all.push_back(evaluation("a4", 80));
  all.back().candidate = "candidate a";
  store.add(all);
  store.add_asks(
      {ask(0, 0, "a", 90), ask(1, 0, "a2", 70), ask(2, 0, "a3", 4000), ask(3, 0, "a4", 80)});
  store.set_meta("objectives", nlohmann::json::array({objective("perplexity", "1", 1, 400)}));
  const auto believed = [&store](const char* repeated) {
    store.set_meta("config", {{"evaluation", {{"repeated", repeated}}}});
    std::vector<Point> points = RunSummary(store).believed;
    return points;
  };
  EXPECT_EQ(believed("retrain"), (std::vector<Point>{{90}, {90}, {90}, {85}}));
  EXPECT_EQ(believed("reuse"), (std::vector<Point>{{90}, {}, {}, {80}}));
}

TEST_F(ReportTest, TextOfADigestHasALineARecord) {
  const RunSummary run(*store_);
  std::ostringstream out;
  write_digest(run, out);
  const auto text = out.str();
  EXPECT_EQ(nlohmann::json::parse(text), results_json(run));
  EXPECT_THAT(text, HasSubstr("\n\"schema\": 3,\n"));
  EXPECT_THAT(text,
              ::testing::ContainsRegex("\n\"asks\": \\[\n.\"batch\":0,[^\n]*},\n.\"batch\":0,"));
  EXPECT_LT(text.find("\"schema\""), text.find("\"asks\"")) << "short ones first";
  EXPECT_THAT(text, ::testing::EndsWith("}\n]\n}\n"));
}

TEST_F(ReportTest, IdentitiesAreHeldWithoutNamesAndExportedWithThem) {
  const RunSummary run(*store_);
  EXPECT_TRUE(run.evaluations.front().identity.at("candidate").is_null());
  EXPECT_EQ(whole_identity(run.evaluations.front()), store_->evaluations().front().identity);
  EXPECT_THAT(canonical_export(run), HasSubstr(R"("identity":{"candidate":"candidate a"})"));
}

TEST_F(ReportTest, CanonicalExportHoldsNothingMeasured) {
  const auto text = canonical_export(RunSummary(*store_));
  for (const auto* word : {"train_seconds", "pid", "workers", "array", "checkpoint_minutes",
                           "made up", "budget", "/some", "indicator"}) {
    EXPECT_THAT(text, Not(HasSubstr(word)));
  }
  EXPECT_THAT(text, HasSubstr("\"min_count\":2"));
  EXPECT_EQ(without_places({{"problem", {{"type", "tabular"}, {"table", "a"}, {"step", 5}}}}),
            nlohmann::json({{"problem", {{"type", "tabular"}, {"step", 5}}}}));
  EXPECT_THAT(text, HasSubstr("\"evaluations\":[\"a\"]"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 5 + 5);
}

TEST_F(ReportTest, WhereNothingIsOutAtOnceTheCanonicalExportSaysNothingOfIt) {
  const auto config_with = [this](std::int64_t in_flight) {
    store_->set_meta(
        "config",
        {{"algorithm", {{"name", "motpe"}, {"in_flight", in_flight}, {"order", "virtual"}}}});
    return canonical_export(RunSummary(*store_));
  };
  EXPECT_THAT(config_with(1), Not(HasSubstr("in_flight")));
  EXPECT_THAT(config_with(1), Not(HasSubstr("virtual")));
  EXPECT_THAT(config_with(2), HasSubstr("in_flight"));
}

TEST_F(ReportTest, AnOrderOfAnAlgorithmsOwnIsPartOfTheCanonicalExport) {
  algorithms().add({.key = "sorted_search",
                    .summary = "has an order, and nothing out at once",
                    .settings = {choice_setting("order", {"up", "down"}, "of its candidates")},
                    .file = __FILE__},
                   [] { return Algorithm(); });
  store_->set_meta("config", {{"algorithm", {{"name", "sorted_search"}, {"order", "down"}}}});
  EXPECT_THAT(canonical_export(RunSummary(*store_)), HasSubstr(R"("order":"down")"));
}

TEST_F(ReportTest, NoResultDependsOnWhatIsWithoutEffect) {
  EXPECT_THAT(
      settings_without_effect(),
      ElementsAre("baseline.tune", "budget", "cluster", "controls", "evaluation.array",
                  "evaluation.device", "evaluation.failure_window", "evaluation.keep_models",
                  "evaluation.retry_crashed", "evaluation.retry_failed", "evaluation.retry_lost",
                  "evaluation.retry_out_of_memory", "evaluation.retry_timed_out",
                  "evaluation.workers", "fidelity.audit", "fidelity.checkpoint_space", "name",
                  "retest", "training.checkpoint_minutes"));
}

TEST_F(ReportTest, EveryColumnIsDocumented) {
  const auto text = read_bytes(source_folder() + "/docs/files.md");
  const auto expect_named = [&text](const std::string& name) {
    EXPECT_THAT(text, HasSubstr("`" + name + "`"));
  };
  const RunSummary run(*store_);
  const auto csv = evaluations_csv(run);
  std::istringstream header(csv.substr(0, csv.find('\r')));
  int columns = 0;
  for (std::string column; std::getline(header, column, ','); ++columns) {
    const bool mean = column.ends_with("_mean") || column.ends_with("_standard_error");
    expect_named(mean ? column.substr(column.find("_mean") != std::string::npos
                                          ? column.find("_mean")
                                          : column.find("_standard_error"))
                      : column);
  }
  EXPECT_GT(columns, 20);
  const auto results = results_json(run);
  for (const auto& [key, value] : results.items()) expect_named(key);
}

TEST_F(ReportTest, RetrainedCandidateCountsWithItsMean) {
  Store store(folder_ / "retrain.sqlite");
  auto again = evaluation("a2", 70);
  again.candidate = "candidate a";
  auto failed = evaluation("a3", 0);
  failed.candidate = "candidate a";
  store.add({evaluation("a", 90), again, failed, evaluation("b", 85)});
  store.add_asks(
      {ask(0, 0, "a", 90), ask(1, 0, "b", 85), ask(2, 1, "a2", 70), ask(3, 1, "a3", 4000)});
  store.set_meta("objectives", nlohmann::json::array({objective("perplexity", "1", 1, 400)}));
  store.set_meta("config", {{"evaluation", {{"repeated", "retrain"}}}});
  {
    const RunSummary run(store);
    EXPECT_EQ(run.ranking[0].candidate, "candidate a");
    EXPECT_DOUBLE_EQ(run.ranking[0].values[0], 80);
    EXPECT_EQ(run.ranking[0].n, 2);
    EXPECT_EQ(run.ranking[0].evaluations.size(), 3U);
    EXPECT_EQ(run.batches[1].failures, 1);
  }
  store.set_meta("config", {{"evaluation", {{"repeated", "replicate"}}}});
  const RunSummary replicated(store);
  ASSERT_EQ(replicated.ranking.size(), 1U) << "the last answer is a failure";
  EXPECT_EQ(replicated.ranking[0].candidate, "candidate b");
}

TEST_F(ReportTest, AccuracyIsAMeanOverTheTrainingRunsToo) {
  Store store(folder_ / "replicates.sqlite");
  std::vector<Evaluation> trained{evaluation("a", 90), evaluation("a2", 70), evaluation("a3", 0)};
  for (auto& one : trained) one.candidate = "candidate a";
  trained[1].curve[0].valid.correct = 6;
  // An objective with the name of another quantity is told apart.
  trained[0].measured["perplexity"] = {{"value", 91}};
  store.add(trained);
  auto only = ask(0, 0, "a", 80.5);
  only.evaluations = {"a", "a2", "a3"};
  store.add_asks({only});
  store.set_meta("objectives", nlohmann::json::array({objective("perplexity", "1", 1, 400)}));
  const RunSummary run(store);
  EXPECT_EQ(run.ranking[0].n, 2);
  EXPECT_DOUBLE_EQ(run.ranking[0].standard_errors[0].value(), 10.5);
  const auto text = closing_table(run);
  EXPECT_THAT(text, ::testing::ContainsRegex("perplexity +s.e. +n +accuracy +s.e. "));
  EXPECT_THAT(text, ::testing::ContainsRegex(" 80.50 +10.50 +2/3 +50.0 % +10.0 "));
  EXPECT_THAT(text, Not(HasSubstr("n = 1")));
}

TEST_F(ReportTest, MaximisedObjectiveIsShownInItsOwnSense) {
  Store store(folder_ / "maximised.sqlite");
  store.add({evaluation("a", 90), evaluation("b", 85), evaluation("v", 100)});
  store.add_asks({ask(0, 0, "a", -0.25), ask(1, 0, "b", -0.5)});
  store.set_meta("objectives", nlohmann::json::array({objective("accuracy", "1", 1, 0, true)}));
  store.set_meta("baseline", {{"evaluations", {"v"}}, {"fitness", {-0.2}}});
  const RunSummary run(store);
  EXPECT_EQ(run.ranking[0].candidate, "candidate b");
  EXPECT_DOUBLE_EQ(run.ranking[0].values[0], 0.5);
  EXPECT_EQ(run.batches[0].best, 0.5);
  EXPECT_EQ(run.batches[0].mean, 0.375);
  const auto text = closing_table(run);
  EXPECT_THAT(text, HasSubstr("accuracy (max)"));
  EXPECT_THAT(text, HasSubstr("+150.0 %"));
}

TEST_F(ReportTest, SyntheticRunHasNoBaselineNoSpaceNoTraining) {
  Store store(folder_ / "synthetic.sqlite");
  std::vector<Evaluation> made;
  std::vector<Ask> asks;
  for (int i = 0; i < 12; ++i) {
    Evaluation point;
    point.id = std::to_string(i);
    point.candidate = "0.1|0.2|0.3|0.4|0.5|0." + point.id;
    point.status = Status::ok;
    point.values["f1"] = 1.0 / (1 + i);
    made.push_back(point);
    asks.push_back(ask(i, i / 4, point.id, point.values["f1"]));
  }
  store.add(made);
  store.add_asks(asks);
  store.set_meta("objectives", nlohmann::json::array({objective("f1", "1", 0, 1)}));
  store.set_meta("config", {{"name", "sphere"}, {"evaluation", {{"repeated", "reuse"}}}});
  const RunSummary run(store);
  const auto text = closing_table(run);
  for (const auto* word : {"accuracy", "params", "FLOPs", "trained", "to baseline", "n = 1"}) {
    EXPECT_THAT(text, Not(HasSubstr(word)));
  }
  const auto csv = evaluations_csv(run);
  EXPECT_THAT(csv, Not(HasSubstr("similarity")));
  EXPECT_THAT(csv, HasSubstr("peak_bytes,f1,f1_mean,f1_standard_error,n,id\r\n"));
  EXPECT_TRUE(results_json(run)["baseline"].is_null());
  EXPECT_THAT(canonical_export(run), HasSubstr("\"repeated\""));
}

TEST_F(ReportTest, GenesHaveColumnsWhereCandidatesAreMechanisms) {
  Store store(folder_ / "genes.sqlite");
  auto mechanism = evaluation("m", 90);
  mechanism.candidate = "dot|softmax|none|learned|bias|0.1";
  store.add({mechanism});
  store.set_meta("config", {{"space", nlohmann::json::object()}});
  const auto csv = evaluations_csv(RunSummary(store));
  EXPECT_THAT(csv, HasSubstr("candidate,similarity,"));
  EXPECT_THAT(csv, HasSubstr(",dot,softmax,none,learned,bias,0.1,0,"));
}

class LongNamesTest : public ReportTest {
 protected:
  LongNamesTest() {
    const std::vector<std::pair<std::string, std::string>> candidates{
        {"v", "model{norm=rms}/2*attn"},
        {"a", "model{norm=rms}/2*attn{position=rope}"},
        {"b", "model{norm=rms}/2*attn{kv_heads=1,normalization=sparsemax,gating=highway}"},
        {"c", "model{norm=rms}/2*attn{temperature=per_query}"}};
    std::vector<Evaluation> made;
    std::vector<Ask> asks;
    for (const auto& [id, name] : candidates) {
      made.push_back(evaluation(id, 90.0 + static_cast<double>(made.size())));
      made.back().candidate = name;
      if (id != "v") {
        asks.push_back(ask(std::ssize(asks), 0, id, 90.0));
        asks.back().genotype = "dot|softmax|none|fixed|bias|0.1|rms|1|rope";
      }
    }
    long_.add(made);
    long_.add_asks(asks);
    long_.set_meta(
        "config",
        {{"space", {{"norm", {"rms"}}, {"kv_heads", {1, 4}}, {"position", {"none", "rope"}}}}});
    long_.set_meta("objectives", nlohmann::json::array({objective("perplexity", "1", 1, 400)}));
    long_.set_meta("baseline", {{"evaluations", {"v"}}, {"fitness", {100.0}}});
    long_.set_meta("silent_asks", {{"children", 8}, {"silent", 2}});
  }

  Store long_{folder_ / "long.sqlite"};
};

TEST_F(LongNamesTest, GenesOfTheSpaceHaveColumns) {
  const auto csv = evaluations_csv(RunSummary(long_));
  EXPECT_THAT(csv, HasSubstr("candidate,similarity,normalization,gating,temperature,bias,"
                             "attention_dropout,norm,kv_heads,position,replicate,"));
  EXPECT_THAT(csv, HasSubstr(",dot,softmax,none,fixed,bias,0.1,rms,0,rope,0,"));
  EXPECT_THAT(csv, HasSubstr(",dot,sparsemax,highway,fixed,bias,0.1,rms,1,none,0,"));
}

TEST_F(LongNamesTest, TablesNameWhatDiffersFromTheBaseline) {
  const auto text = closing_table(RunSummary(long_));
  EXPECT_THAT(text, HasSubstr(" position=rope "));
  EXPECT_THAT(text, HasSubstr(" sparsemax, highway, kv_heads=1 "));
  EXPECT_THAT(text, HasSubstr("named by the searched genes that differ from the baseline "
                              "model{norm=rms}/2*attn\n"));
  EXPECT_THAT(text, HasSubstr("2 of 8 asks after the initial population (25.0 %) differ"));
}

TEST_F(LongNamesTest, WhatTheSpaceFixesTellsNoCandidateFromAnother) {
  auto other_frame = evaluation("w", 101.0);
  other_frame.candidate = "dot|softmax|none|fixed|bias|0.1";
  long_.add({other_frame});
  long_.set_meta("baseline", {{"evaluations", {"w"}}, {"fitness", {101.0}}});
  const auto text = closing_table(RunSummary(long_));
  EXPECT_THAT(text, HasSubstr("  position=rope "));
  EXPECT_THAT(text, HasSubstr("  sparsemax, highway, kv_heads=1 "));
  EXPECT_THAT(text, Not(HasSubstr("norm=rms")));
}

TEST_F(LongNamesTest, NamesAreNeverCutAndTablesFitTheWidth) {
  long_.set_meta("config", {{"name", "of no space"}});
  const RunSummary run(long_);
  const auto longest =
      run.label("model{norm=rms}/2*attn{kv_heads=1,normalization=sparsemax,gating=highway}");
  ASSERT_GT(width_of(longest), 60U);
  const auto whole = closing_table(run);
  EXPECT_THAT(whole, HasSubstr("  " + longest + "  "));
  EXPECT_THAT(whole, HasSubstr("params"));
  for (const std::size_t width : {60U, 80U, 100U}) {
    const auto text = closing_table(run, width);
    EXPECT_THAT(text, Not(HasSubstr("\u2026")));
    EXPECT_THAT(text, HasSubstr("  perplexity"));
    EXPECT_THAT(text, Not(HasSubstr("params")));
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) EXPECT_LE(width_of(line), width) << line;
  }
  // A table that does not fit is not torn: each row has its last column.
  EXPECT_THAT(closing_table(run, 20), ::testing::ContainsRegex("\n  +1 .*  1 +1\n"));
}

TEST_F(LongNamesTest, TheDigestSaysWhatEachHas) {
  const auto json = results_json(RunSummary(long_));
  const auto& models = json.at("models");
  EXPECT_EQ(models.at("genes").back(), "position");
  const std::string windowed = "model{norm=rms}/2*attn{position=rope}";
  EXPECT_EQ(models.at("choices").at(windowed).back(), "rope");
  EXPECT_EQ(models.at("differences").at(windowed), "position=rope");
  EXPECT_EQ(json.at("genes").size(), 9U);
  EXPECT_EQ(json.at("genes")[7].at("options"), (nlohmann::json{"1", "4"}));
  EXPECT_TRUE(results_json(RunSummary(*store_)).at("models").is_null());
}

TEST_F(LongNamesTest, ListedMechanismsNeedNotBeOfASpace) {
  long_.set_meta("config", {{"mechanisms", {"2*mqa"}}, {"space", {{"match_parameters", true}}}});
  const RunSummary run(long_);
  EXPECT_TRUE(results_json(run).at("models").is_null());
  EXPECT_THAT(evaluations_csv(run), HasSubstr("candidate,replicate,"));
}

TEST_F(LongNamesTest, ARatioHasNoEffectWhereParametersAreMatched) {
  const auto choice = [&](bool matched) {
    long_.set_meta("config", {{"space", {{"ratio", {2, 4}}, {"match_parameters", matched}}}});
    return choices_json(RunSummary(long_), "model{norm=rms}/2*attn", {"ratio"});
  };
  EXPECT_EQ(choice(false), nlohmann::json::array({"4"}));
  EXPECT_EQ(choice(true), nlohmann::json::array({nullptr}));
}

// As in records of before failures kept what they had come to.
TEST_F(ReportTest, WhatFailsInAnAuditWithoutACurveIsNotPaused) {
  store_->add({evaluation("e", 0)});
  auto at_rung = ask(5, 2, "e", 90);
  at_rung.until = 3;
  store_->add_asks({at_rung});
  store_->set_meta("audit", {{"evaluations", {"e"}}});
  EXPECT_TRUE(RunSummary(*store_).paused.empty());
}

// As the baseline may have, or the run that another one reuses.
TEST_F(ReportTest, WhatTheSearchPausedIsPausedWhoeverTrainedOn) {
  auto ended = evaluation("e", 85);
  auto earlier = ended.curve.front();
  earlier.step = 3;
  ended.curve.insert(ended.curve.begin(), earlier);
  store_->add({ended});
  auto at_rung = ask(5, 2, "e", 90);
  at_rung.until = 3;
  store_->add_asks({at_rung});
  const RunSummary run(*store_);
  ASSERT_EQ(run.paused.size(), 1U);
  EXPECT_EQ(run.paused.front().curve.size(), 1U);
  EXPECT_EQ(run.ranking.size(), 3U);
}

TEST_F(ReportTest, EmptyStoreIsNoError) {
  const RunSummary run(Store(folder_ / "empty.sqlite"));
  EXPECT_THAT(closing_table(run), HasSubstr("0 candidates asked for"));
  EXPECT_EQ(results_json(run)["counts"]["asked"], 0);
}

TEST_F(ReportTest, FilesAreWrittenWholeOrNotAtAll) {
  const auto text = [](std::ostream& out) { out << "text"; };
  write_file(folder_ / "x.txt", text);
  EXPECT_EQ(fs::file_size(folder_ / "x.txt"), 4U);
  EXPECT_EQ(files_like("x.txt"), 1);
  // Whose fault it is depends on what was done before, which is not known here.
  EXPECT_THROW(write_file(folder_ / "no" / "x.txt", text), fs::filesystem_error);
  fs::create_directories(folder_ / "taken" / "inside");
  try {
    write_file(folder_ / "taken", text);
    FAIL() << "a folder was replaced";
  } catch (const fs::filesystem_error& error) {
    EXPECT_EQ(error.path1(), folder_ / "taken");
    EXPECT_EQ(error.code(), std::errc::is_a_directory);
  }
  EXPECT_EQ(files_like("taken"), 1) << "half a file takes space";
}

TEST_F(ReportTest, AResultIsWrittenThroughNoLink) {
  const auto victim = temporary_.write("victim", "of somebody");
  const auto result = folder_ / "results.json";
  const auto own = "results.json." + host_name() + "." + std::to_string(getpid()) + ".tmp";
  for (const auto& name : {std::string("results.json"), std::string("results.json.tmp"), own}) {
    fs::create_symlink(victim, folder_ / name);
  }
  write_file(result, [](std::ostream& out) { out << "text"; });
  EXPECT_EQ(read_bytes(victim), "of somebody");
  EXPECT_FALSE(fs::is_symlink(result));
  EXPECT_EQ(read_bytes(result), "text");
  EXPECT_FALSE(fs::is_symlink(folder_ / own));
  // What cannot be removed is not written to either.
  fs::create_directories(folder_ / own / "inside");
  EXPECT_THROW(write_file(result, [](std::ostream& out) { out << "more"; }), fs::filesystem_error);
  EXPECT_EQ(read_bytes(result), "text");
}

TEST_F(ReportTest, AResultReplacesNeitherAPipeNorADevice) {
  const auto pipe = folder_ / "pipe";
  const auto link = folder_ / "link";
  const auto device = folder_ / "device";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink(pipe, link);
  fs::create_symlink("/dev/null", device);
  const auto refusal = [](const fs::path& file) {
    return message_of<InputError>([&] { write_file(file, [](std::ostream& /*out*/) {}); });
  };
  for (const auto& file : {pipe, link}) {
    EXPECT_EQ(refusal(file), file.string() + ": is a pipe, must be a regular file");
  }
  EXPECT_EQ(refusal(device), device.string() + ": is a device, must be a regular file");
  EXPECT_TRUE(fs::is_fifo(pipe));
  for (const auto& file : {link, device}) EXPECT_TRUE(fs::is_symlink(file)) << file;
}

TEST_F(ReportTest, ALockIsWrittenThroughNoLink) {
  const auto victim = temporary_.write("victim", "of somebody");
  const auto store = folder_ / "locked.sqlite";
  const auto lock = store.string() + ".lock";
  const auto refusal = [&] {
    return message_of<InputError>([&] { const WriterLock held(store); });
  };
  const auto expected = lock + ": is a link or no regular file, must be a file without other names";
  fs::create_symlink(victim, lock);
  EXPECT_EQ(refusal(), expected);
  fs::remove(lock);
  fs::create_hard_link(victim, lock);
  EXPECT_EQ(refusal(), expected);
  EXPECT_EQ(read_bytes(victim), "of somebody");
  fs::remove(lock);
  fs::create_symlink(folder_ / "new", lock);
  EXPECT_EQ(refusal(), expected);
  EXPECT_FALSE(fs::exists(folder_ / "new"));
  fs::remove(lock);
  ASSERT_EQ(mkfifo(lock.c_str(), 0600), 0);
  EXPECT_EQ(refusal(), expected);
  fs::remove(lock);
  EXPECT_EQ(refusal(), "nothing was thrown");
  EXPECT_EQ(refusal(), "nothing was thrown") << "what an earlier holder left is no obstacle";
}

TEST_F(ReportTest, WhatAKilledProcessLeftOfAResultIsRemoved) {
  temporary_.write("results.json.other.23.tmp", "{");
  write_results(folder_, RunSummary(*store_));
  EXPECT_EQ(files_like("results.json"), 1);
}

/// A run of two or three objectives: perplexity against FLOPs, and a maximised accuracy.
class FrontReportTest : public ReportTest {
 protected:
  struct Made {
    std::string id;
    double perplexity, flops, accuracy;
  };
  /// A front of five (b c d e f), of which two replicates answer for d; four dominated ones, one of
  /// them far off, and a failure.
  static std::vector<Made> candidates() {
    return {{"a", 130, 3.0e6, 0.20}, {"b", 60, 9.0e6, 0.42},  {"c", 68, 4.0e6, 0.40},
            {"d", 75, 1.6e6, 0.36},  {"e", 110, 1.2e6, 0.28}, {"f", 160, 1.0e6, 0.22},
            {"g", 95, 5.0e6, 0.30},  {"h", 80, 9.5e6, 0.33},  {"i", 5e5, 8.0e6, 0.01}};
  }
  std::unique_ptr<Store> make(std::size_t objectives, bool failed = false) {
    auto store = std::make_unique<Store>(
        folder_ / ("front" + std::to_string(objectives) + (failed ? "f" : "") + ".sqlite"));
    const auto cut = [objectives](std::vector<double> fitness) {
      fitness.resize(objectives);
      return fitness;
    };
    std::vector<Evaluation> evaluations;
    std::vector<Ask> asks;
    for (const auto& made : candidates()) {
      auto entry = evaluation(made.id, failed ? 0 : made.perplexity);
      entry.candidate = "similarity_" + made.id + "|softmax|none|learned|bias|0.1";
      if (!failed) entry.values["flops"] = made.flops;
      entry.measured["latency"] = {{"value", 2.0}, {"canary_p50", 1.0 + 0.01 * made.flops / 1e6}};
      entry.values.erase("accuracy");
      evaluations.push_back(entry);
      const auto number = static_cast<std::int64_t>(asks.size());
      asks.push_back({.number = number,
                      .batch = number / 4,
                      .genotype = "g",
                      .evaluations = {made.id},
                      .fitness = cut({made.perplexity, made.flops, -made.accuracy})});
      if (made.id != "d") continue;
      auto replicate = entry;
      replicate.id = "d2";
      replicate.replicate = 1;
      replicate.values["perplexity"] = 77;
      evaluations.push_back(replicate);
      asks.back().evaluations.emplace_back("d2");
      asks.back().fitness[0] = failed ? made.perplexity : 76;
    }
    auto lost = evaluation("z", 0);
    evaluations.push_back(lost);
    asks.push_back({.number = 9,
                    .batch = 2,
                    .genotype = "g",
                    .evaluations = {"z"},
                    .fitness = cut({4000, 9e7, 9})});
    auto vanilla = evaluation("v", 85);
    vanilla.candidate = "scaled_dot|softmax|none|fixed|bias|0.1";
    evaluations.push_back(vanilla);
    store->add(evaluations);
    store->add_asks(asks);
    if (!failed) {
      store->add_indicator({.asked = 4, .batch = 0, .evaluated = 5, .front = 3, .value = 0.75});
      store->add_indicator({.asked = 8, .batch = 1, .evaluated = 9, .front = 5, .value = 0.8125});
    }
    nlohmann::json records{objective("perplexity", "1", 1, 400),
                           objective("flops", "FLOP", 5e5, 1e7),
                           objective("accuracy", "1", 1, 0, true)};
    if (objectives == 2) records.erase(2);
    store->set_meta("objectives", records);
    store->set_meta("config", {{"name", "two <goals>"},
                               {"space", nlohmann::json::object()},
                               {"evaluation", {{"repeated", "reuse"}}}});
    store->set_meta("facts", {{"corpus", "brown"}});
    store->set_meta("baseline", {{"evaluations", {"v"}}, {"fitness", cut({85, 6e6, -0.34})}});
    store->set_meta("ended_by", "10 evaluations");
    store->set_meta("last_population", {cut({0.2, 0.2, 0.5}), cut({9, 9, 9})});
    return store;
  }
};

TEST_F(FrontReportTest, FrontComesFirstAndHasAKnee) {
  const RunSummary run(*make(2));
  ASSERT_EQ(run.front.size(), 5U);
  std::string members;
  for (const auto i : run.front) {
    EXPECT_TRUE(run.ranking[i].on_front);
    members += run.ranking[i].evaluations.front()->id;
  }
  EXPECT_EQ(members, "bcdef");
  EXPECT_FALSE(run.ranking[5].on_front);
  ASSERT_TRUE(run.knee);
  EXPECT_EQ(*run.knee, 2U);  // d
  EXPECT_EQ(run.ranking[2].n, 2);
  EXPECT_EQ(run.ranking[2].values, (std::vector<double>{76, 1.6e6}));
  EXPECT_EQ(run.search.evaluations, 11);
}

TEST_F(FrontReportTest, TableShowsTheFrontTheKneeAndTheHypervolume) {
  const auto text = closing_table(RunSummary(*make(2)));
  for (const auto* words :
       {"ended by: 10 evaluations\n", "non-dominated front, 5 of 9 candidates\n", "flops (FLOP)",
        "9 M", "hypervolume 0.812; reference point 1.1 everywhere",
        "perplexity 1.00 to 400.00, flops 500 k to 10 M", "1 diverged, e.g.: not finite",
        "n = 1"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
  EXPECT_THAT(text, ::testing::ContainsRegex("perplexity +s.e. +flops .FLOP. +n +ask\n"))
      << "FLOPs do not vary between replicates: no column for that";
  EXPECT_THAT(text, ::testing::ContainsRegex("similarity_d.* 76.00 +1.00 +1.6 M +2 +4 +knee\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("baseline  scaled_dot.* 85.00 +- +6 M +1 +-\n"));
}

TEST_F(FrontReportTest, RangesThatHoldNoValueAreNamed) {
  const std::string words = "every value of perplexity is worse than its range, ";
  const auto store = make(2);
  EXPECT_THAT(closing_table(RunSummary(*store)), Not(HasSubstr(words)));
  store->set_meta("objectives", {objective("perplexity", "1", 1, 49 + 1.0 / 3.0),
                                 objective("flops", "FLOP", 5e5, 1e7)});
  const auto text = closing_table(RunSummary(*store));
  EXPECT_THAT(text, HasSubstr("perplexity 1.00 to 49.33, flops"));
  EXPECT_THAT(text, HasSubstr(words));
  EXPECT_THAT(text, HasSubstr("give the objective a wider range than [1.00, 49.33]\n"));
  EXPECT_THAT(text, Not(HasSubstr("every value of flops")));
}

TEST_F(FrontReportTest, MeansHaveTheirStandardErrorsAndN) {
  const RunSummary run(*make(3));
  const auto& errors = run.ranking[2].standard_errors;  // d, trained twice: 75 and 77
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_DOUBLE_EQ(errors[0].value(), 1.0);
  EXPECT_EQ(errors[1], 0.0);
  EXPECT_FALSE(errors[2]) << "accuracy is recorded of no single one";
  EXPECT_FALSE(run.ranking[1].standard_errors[0]) << "n = 1";
  EXPECT_FALSE(run.baseline->standard_errors[0]);
  const auto json = results_json(run);
  const nlohmann::json expected{{"perplexity", 1.0}, {"flops", 0.0}, {"accuracy", nullptr}};
  EXPECT_EQ(json["front"][2]["standard_errors"], expected);
  EXPECT_EQ(json["ranking"][2]["standard_errors"], expected);
  EXPECT_EQ(json["ranking"][2]["n"], 2);
  EXPECT_TRUE(json["baseline"]["standard_errors"]["perplexity"].is_null());
  const auto csv = evaluations_csv(run);
  EXPECT_THAT(csv, HasSubstr(",76,1,1600000,0,0.36,,2,d\r\n"));
  EXPECT_THAT(csv, HasSubstr(",76,1,1600000,0,0.36,,2,d2\r\n"));
  EXPECT_THAT(csv, HasSubstr(",68,,4e+06,,0.4,,1,c\r\n"));
  EXPECT_THAT(csv, HasSubstr(",,,,,,,,z\r\n")) << "a failure has no mean";
  const auto text = closing_table(run);
  EXPECT_THAT(text, HasSubstr("means over n trainings, s.e. their standard errors"));
  EXPECT_THAT(text, HasSubstr("one training each, hence no standard error"));
}

TEST_F(FrontReportTest, ThreeObjectivesKeepTheirSense) {
  const RunSummary run(*make(3));
  EXPECT_EQ(run.front.size(), 5U);
  EXPECT_DOUBLE_EQ(run.ranking[0].values[2], 0.42);
  EXPECT_THAT(closing_table(run), HasSubstr("accuracy (max)"));
  const auto json = results_json(run);
  EXPECT_EQ(json["front"][0]["values"]["accuracy"], 0.42);
  EXPECT_EQ(nlohmann::json::parse(json.dump()), json);
}

TEST_F(FrontReportTest, ResultsHoldTheFrontAndTheHypervolume) {
  const auto json = results_json(RunSummary(*make(2)));
  EXPECT_EQ(json["objectives"][1]["unit"], "FLOP");
  EXPECT_EQ(json["hypervolume"]["value"], 0.8125);
  EXPECT_EQ(json["hypervolume"]["reference"], 1.1);
  EXPECT_EQ(json["hypervolume"]["trace"][0]["front"], 3);
  EXPECT_NEAR(json["last_population_hypervolume"].get<double>(), 0.81, 1e-12);
  EXPECT_EQ(json["ended_by"], "10 evaluations");
  EXPECT_EQ(json["front"].size(), 5U);
  EXPECT_EQ(json["front"][2]["knee"], true);
  EXPECT_EQ(json["front"][2]["evaluations"].size(), 2U);
  EXPECT_EQ(nlohmann::json::parse(json.dump()), json);
}

TEST_F(FrontReportTest, CsvHasAColumnForEachFurtherObjective) {
  const auto store = make(2);
  store->set_meta("objectives", {objective("latency", "ms", 0, 10), objective("f", "1", 0, 1)});
  const auto csv = evaluations_csv(RunSummary(*store));
  EXPECT_THAT(csv, HasSubstr(",latency,f,latency_mean,latency_standard_error,"
                             "f_mean,f_standard_error,n,id\r\n"));
  EXPECT_THAT(csv, HasSubstr(",2,3e+06,"));  // one evaluation an ask: the ask's value
  EXPECT_THAT(csv, HasSubstr(",2,,"));       // two replicates: a value of neither
  EXPECT_THAT(csv, HasSubstr(",1600000,,2,d\r\n"));
}

TEST_F(FrontReportTest, CanaryShowsHowSteadyTheMachineWas) {
  const auto store = make(2);
  store->set_meta("objectives",
                  {objective("latency", "ms", 0, 10), objective("flops", "FLOP", 0, 1e7)});
  EXPECT_THAT(closing_table(RunSummary(*store)),
              HasSubstr("latency canary of latency: p50 between 1.01 and 1.09 ms (drift x1.08)\n"));
}

TEST_F(FrontReportTest, LongFrontIsShownInPart) {
  Store store(folder_ / "long.sqlite");
  std::vector<Evaluation> evaluations;
  std::vector<Ask> asks;
  for (int i = 0; i < 50; ++i) {
    evaluations.push_back(evaluation("e" + std::to_string(i), 50));
    asks.push_back({.number = i,
                    .genotype = "g",
                    .evaluations = {"e" + std::to_string(i)},
                    .fitness = {1.0 + i, 100.0 / (1.0 + i)}});
  }
  store.add(evaluations);
  store.add_asks(asks);
  store.set_meta("objectives", {objective("x", "1", 0, 60), objective("y", "1", 0, 100)});
  const RunSummary run(store);
  const auto text = closing_table(run);
  EXPECT_THAT(text, HasSubstr("50 of 50 candidates; 20 of them, evenly along the front, and 30"));
  EXPECT_EQ(count_of(text, "  candidate e"), 20U);
  EXPECT_EQ(count_of(text, "knee\n"), 1U);
  EXPECT_THAT(text, HasSubstr("candidate e49"));
}

TEST_F(FrontReportTest, OfAPointOfManyNumbersTheFirstOnesAreShown) {
  Store store(folder_ / "points.sqlite");
  auto one = evaluation("e1", 50);
  one.candidate = "0.25";
  for (int i = 0; i < 40; ++i) one.candidate += "|2.2759794666149524e-06";
  store.add({one});
  store.add_asks({{.number = 0, .genotype = "g", .evaluations = {"e1"}, .fitness = {1.0, 2.0}}});
  store.set_meta("objectives", {objective("x", "1", 0, 60), objective("y", "1", 0, 100)});
  std::istringstream text(closing_table(RunSummary(store)));
  for (std::string line; std::getline(text, line);) EXPECT_LE(width_of(line), 130U) << line;
  EXPECT_THAT(text.str(), HasSubstr("0.25|2.2759794666149524e-06|2.2759794666149524e-06|"));
}

TEST_F(FrontReportTest, FrontOfFailuresIsEmpty) {
  const RunSummary run(*make(2, /*failed=*/true));
  EXPECT_TRUE(run.front.empty());
  EXPECT_FALSE(run.knee);
  EXPECT_THAT(closing_table(run), HasSubstr("non-dominated front, 0 of 0 candidates"));
  EXPECT_TRUE(results_json(run)["hypervolume"]["value"].is_null());
}

}  // namespace
}  // namespace nas
