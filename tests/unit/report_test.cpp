#include "core/durable_file.hpp"
#include "digest_file.hpp"
#include "places.hpp"
#include "prelude.hpp"
#include "report/text.hpp"
#include "report/verdict.hpp"
#include "search/algorithm.hpp"
#include "unit/report_fixture.hpp"

namespace nas {
namespace {

TEST_F(ReportTest, TheBaselineHasAllSeedsThatTheSearchGaveIt) {
  const auto before = run_with("baseline", {{"evaluations", {"a"}}, {"fitness", {70.0}}});
  EXPECT_EQ(before.baseline->values.front(), 70.0) << "the search has no more";
  store_->add({evaluation("a2", 110, "candidate a")});
  store_->add_asks({ask(5, 2, {"a", "a2"}, 100)});
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
  expect_words(closing_table(RunSummary(*store_)),
               {"5 candidates asked for, 4 evaluated, 1 answered by an earlier evaluation, 1 "
                "failure; 10 s of training\n",
                "-20.0 %", "baseline  candidate v", "1 diverged, e.g.: not finite", "n = 1"});
}

TEST_F(ReportTest, ControlsAreRowsAndABaselineBehindOneIsSaid) {
  store_->add({evaluation("n", 95), evaluation("w", 70)});
  const auto control = [](const char* name, const std::string& id, double value) {
    return nlohmann::json{{"name", name},
                          {"candidate", "candidate " + id},
                          {"evaluations", {id}},
                          {"fitness", {value}}};
  };
  const auto shown = [&](const nlohmann::json& controls) { return run_with("controls", controls); };
  const auto text_with = [&](const nlohmann::json& one) {
    return behind_control_text(shown(nlohmann::json::array({one})));
  };
  const auto both = shown({control("no mixer", "n", 95), control("window 2", "w", 70)});
  ASSERT_EQ(both.controls.size(), 2U);
  EXPECT_EQ(both.controls[1].measured.values, std::vector<double>{70.0});
  expect_values(test::results_json(both),
                {{"/controls/0/name", "no mixer"}, {"/controls/0/values/perplexity", 95.0}});
  expect_rows(closing_table(both), {"no mixer  candidate n +95.00",
                                    "outside the search .baseline, controls.: 3 evaluated"});
  EXPECT_EQ(behind_control_text(both),
            "The baseline is behind a control: window 2 has 70.00 in perplexity, the baseline "
            "100.00 (n = 1). What is better than the baseline here may be so by attending less. "
            "Nothing that the search found is better than that control.");
  auto by_memory = shown(nlohmann::json::array({control("window 2", "w", 70)}));
  by_memory.objectives.front().key = "peak_memory";
  EXPECT_EQ(behind_control_text(by_memory), "") << "of what a model costs";
  const auto one = text_with(control("no mixer", "n", 95));
  EXPECT_THAT(one, HasSubstr("no mixer has 95.00"));
  EXPECT_THAT(one, Not(HasSubstr("Nothing that the search")));
  EXPECT_EQ(text_with(control("no mixer", "n", 101)), "");
  EXPECT_EQ(behind_control_text(shown(nullptr)), "");
  EXPECT_TRUE(shown(nlohmann::json::array({control("gone", "unknown", 1)})).controls.empty());
}

TEST_F(ReportTest, ASearchOfWhichAllBeatTheBaselineIsUnderTrained) {
  const auto text_with = [this](int number, double value) {
    const auto id = "more" + std::to_string(number);
    store_->add({evaluation(id, value)});
    store_->add_asks({ask(number, 2, {id}, value)});
    return untrained_text(RunSummary(*store_));
  };
  for (int i = 5; i < 11; ++i) EXPECT_EQ(text_with(i, 60.0 + i), "") << "nine are few";
  EXPECT_EQ(text_with(11, 71.0),
            "All 10 mechanisms of the search are better than the baseline in perplexity: it is "
            "probably under-trained. Train longer, or with another learning rate.");
  EXPECT_EQ(text_with(12, 100.5), "");
}

/// Adds what constraints rejected: e before training, f and its replicate after it.
void add_rejected(Store& store) {
  auto config = *store.meta("config");
  config["constraints"] = {"parameters <= 1500", "accuracy >= 0.5"};
  store.set_meta("config", config);
  auto before = evaluation("e", 0);
  before.status = Status::rejected;
  before.reason = "parameters = 2000, must be <= 1500";
  std::vector<Evaluation> after{evaluation("f", 70), evaluation("f2", 75, "candidate f")};
  for (std::size_t i = 0; i < 2; ++i) {
    after[i].replicate = static_cast<std::int64_t>(i);
    after[i].measured = {{"accuracy", {{"value", i == 0 ? 0.3 : 0.6}}}};
  }
  store.add({before, after[0], after[1]});
  const double penalty = 1 + 10 * (400.0 - 1);
  store.add_asks({ask(5, 1, {"e"}, penalty), ask(6, 1, {"f", "f2"}, penalty)});
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
  EXPECT_EQ(run.batches[1].mean, 87.5);
  expect_words(closing_table(run),
               {"7 candidates asked for, 6 evaluated, 1 rejected by constraints, 1 answered by an "
                "earlier evaluation, 1 failure",
                "\nrejected by constraints\n"
                "  1 before training, e.g.: parameters = 2000, must be <= 1500\n"
                "  1 after training, e.g.: accuracy = 0.45, must be >= 0.5",
                "\nfailures\n  1 diverged"});
  const auto json = test::results_json(run);
  expect_values(json, {{"/counts/rejected", 1},
                       {"/counts/failures", 1},
                       {"/counts/evaluated", 6},
                       {"/rejected/0/reason", "parameters = 2000, must be <= 1500"},
                       {"/batches/1/rejected", 2},
                       {"/batches/1/failures", 1}});
  EXPECT_EQ(json["rejected"].size(), 2U);
}

TEST_F(ReportTest, WhatWasStoppedEarlyIsMarkedAndNeverTheBest) {
  auto stopped = evaluation("s", 70);
  stopped.status = Status::stopped_early;
  stopped.reason = "nll above the limit";
  stopped.curve[0].step = 2;
  store_->add({stopped});
  store_->add_asks({ask(5, 1, {"s"}, 70)});
  const RunSummary run(*store_);
  EXPECT_EQ(run.ranking.front().candidate, "candidate b");
  EXPECT_EQ(run.ranking.back().candidate, "candidate s");
  EXPECT_FALSE(run.ranking.back().on_front);
  EXPECT_EQ(run.batches[1].best, 85);
  const auto text = closing_table(run);
  expect_words(text,
               {"1 failure, 1 stopped early; ", "Stopped early: the value is that of the step"});
  expect_rows(text, {"candidate s +70.00 +- +1 .*stopped at step 2\n"});  // no "to baseline"
  expect_values(test::results_json(run), {{"/counts/stopped_early", 1},
                                          {"/ranking/3/stopped_at", 2},
                                          {"/ranking/0/stopped_at", nullptr}});
}

TEST_F(ReportTest, WhereAllWereStoppedTheBestOfThemLeads) {
  std::vector<Evaluation> all{evaluation("a", 90), evaluation("b", 85)};
  for (auto& one : all) one.status = Status::stopped_early;
  const auto run = run_of(all, {ask(0, 0, {"a"}, 90), ask(1, 0, {"b"}, 85)});
  EXPECT_EQ(run.ranking.front().candidate, "candidate b");
  EXPECT_TRUE(run.ranking.front().on_front);
}

TEST_F(ReportTest, FewerReplicatesThanWantedAreMarked) {
  const auto run = run_of({evaluation("a", 90), evaluation("a2", 70, "candidate a"),
                           evaluation("a3", 0, "candidate a"), evaluation("b", 85)},
                          // As an objective that judges failures lets it stand.
                          {ask(0, 0, {"a", "a2", "a3"}, 80), ask(1, 0, {"b"}, 85)});
  EXPECT_EQ(run.ranking[0].n, 2);
  EXPECT_EQ(run.ranking[0].wanted, 3);
  expect_rows(closing_table(run), {"candidate a +80.00 +10.00 +2/3 ", "candidate b +85.00 +- +1 ",
                                   "n = 2/3: of 3 trainings 2 are used"});
  expect_values(test::results_json(run), {{"/ranking/0/replicates", 3}});
}

TEST_F(ReportTest, AFailedReplicateFailsTheCandidateAsItsFitnessSays) {
  const auto run = run_of({evaluation("a", 60), evaluation("a2", 0, "candidate a")},
                          {ask(0, 0, {"a", "a2"}, 1 + 10 * (400.0 - 1))});
  EXPECT_TRUE(run.ranking.empty());
  EXPECT_EQ(run.asks[0].status, Status::diverged);
  EXPECT_EQ(run.asks[0].reason, "1 of 2 replicates failed, replicate 0 diverged: not finite");
}

TEST_F(ReportTest, WhatIsOutsideTheSearchCountsApart) {
  store_->add({evaluation("trial", 0), evaluation("fresh", 82)});
  const RunSummary run(*store_);
  expect_words(closing_table(run),
               {"outside the search (baseline): 3 evaluated, 1 failure; 8 s of training\n",
                "\nfailures\n  1 diverged", "\nfailures outside the search\n  1 diverged"});
  const auto json = test::results_json(run);
  expect_values(json, {{"/counts/failures", 1},
                       {"/train_seconds", 10.0},
                       {"/outside_the_search/evaluated", 3},
                       {"/outside_the_search/train_seconds", 7.5},
                       {"/outside_the_search/failures/0/id", "trial"}});
  EXPECT_EQ(json["failures"].size(), 1U);
}

TEST_F(ReportTest, ATablesMeanIsNotCalledOneTrainingRun) {
  const auto table = [this](const char* mode, std::size_t width = kAnyWidth) {
    return closing_table(run_with("facts", {{"table", {{"mode", mode}, {"replicates", 5}}}}),
                         width);
  };
  const auto text = table("mean");
  EXPECT_THAT(text, HasSubstr("\nn = 1: the mean over all trainings of a mechanism that the table "
                              "holds, at least 5. Only one is\ncharged.\n"));
  EXPECT_THAT(text, Not(HasSubstr("one training each")));
  EXPECT_THAT(table("noisy"),
              HasSubstr("\n\nn = 1: one training each, hence no standard error. Differences below "
                        "the noise between seeds mean\nnothing, and the best"));
  EXPECT_THAT(table("noisy", 60),
              HasSubstr("\n\nn = 1: one training each, hence no standard error.\nDifferences below "
                        "the noise between seeds mean nothing, and\nthe best"));
}

/// An estimate as a re-test records it; of no seed where it has no mean.
nlohmann::json estimate_record(std::optional<double> mean, double half, int n) {
  if (!mean) return {{"mean", nullptr}, {"n", 0}, {"low", nullptr}, {"high", nullptr}};
  return {{"mean", *mean}, {"n", n}, {"low", *mean - half}, {"high", *mean + half}};
}

TEST_F(ReportTest, ARetestIsATableWithItsVerdict) {
  EXPECT_THAT(closing_table(RunSummary(*store_)), Not(HasSubstr("re-test")));
  const auto candidate = [](const char* label, const char* role, double search,
                            std::optional<double> mean, double p, const nlohmann::json& contrast) {
    return nlohmann::json{{"candidate", "candidate " + std::string(label)},
                          {"label", label},
                          {"role", role},
                          {"evaluations", {"1", "2", "3", "4", "5"}},
                          {"search", {search}},
                          {"retest", {estimate_record(mean, 1.0, 5)}},
                          {"test", estimate_record(mean, 1.0, 5)},
                          {"non_dominated_probability", p},
                          {"against_baseline", contrast}};
  };
  const nlohmann::json contrast{{"difference", std::log(0.9)},
                                {"low", std::log(0.85)},
                                {"high", std::log(0.95)},
                                {"p_holm", 0.004}};
  store_->set_meta("retest", {{"replicates", 5},
                              {"confidence", 0.95},
                              {"objective", "perplexity"},
                              {"candidates",
                               {candidate("b", "top", 80.0, 84.0, 0.75, contrast),
                                candidate("v", "baseline", 100.0, std::nullopt, 0.25, nullptr)}},
                              {"verdict", "b is better."}});
  const RunSummary run(*store_);
  const auto text = closing_table(run);
  expect_words(text, {"re-test on 5 fresh seeds; 95 % intervals, each for itself; differences in "
                      "test perplexity, paired by seed, p by Holm over all of them; P(best) by "
                      "validation values\n",
                      "\nb is better.\n"});
  expect_rows(text, {"top  b +80.00  84.00 \\(83.00 to 85.00\\)  84.00 \\(83.00 to 85.00\\) "
                     "+5 +-10.0 % \\(-15.0 to -5.0\\)  0.004 +0.75\n",
                     "baseline  v +100.00 +- +- +0/5 +- +- +0.25\n"});
  // The re-test says more than "one training each".
  expect_no_words(text, {"n = 1: one training each"});
  expect_values(test::results_json(run), {{"/retest/verdict", "b is better."}});
}

/// A mechanism that was listed, of two objectives.
nlohmann::json listed_record(const char* name, const char* role, double perplexity,
                             const nlohmann::json& difference) {
  return {{"candidate", name},
          {"label", name},
          {"role", role},
          {"evaluations", {"1", "2", "3"}},
          {"search", nlohmann::json::array()},
          {"retest", {estimate_record(perplexity, 1.0, 3), estimate_record(7.0, 0.0, 3)}},
          {"test", estimate_record(perplexity + 1.0, 2.0, 3)},
          {"non_dominated_probability", nullptr},
          {"against_baseline", nullptr},
          {"differences", {difference, nullptr}}};
}

TEST_F(ReportTest, ListedMechanismsAreComparedWithoutASearch) {
  const nlohmann::json difference{
      {"difference", -16.0}, {"low", -18.0}, {"high", -14.0}, {"p_holm", 0.004}, {"n", 3}};
  const auto run = run_of(
      {evaluation("m", 84), evaluation("v", 100)}, {},
      {{"config", {{"name", "listed"}, {"mechanisms", {"candidate m"}}}},
       {"objectives", {objective("perplexity", "1", 1, 400), objective("flops", "FLOP", 0, 10)}},
       {"retest",
        {{"replicates", 3},
         {"confidence", 0.95},
         {"objective", "perplexity"},
         {"candidates",
          {listed_record("candidate m", "listed", 84.0, difference),
           listed_record("candidate v", "baseline", 100.0, nullptr)}},
         {"verdict", "candidate m is better."}}}});
  EXPECT_TRUE(run.listed());
  const auto text = closing_table(run);
  EXPECT_THAT(text, StartsWith("2 evaluated, 0 failures; 5 s of training\n"));
  expect_words(text, {"\ntrained on 3 fresh seeds; 95 % intervals", "\ncandidate m is better.\n"});
  expect_rows(text,  // all objectives, since no table of a search has the others
              {"listed  candidate m +84.00 \\(83.00 to 85.00\\) +7.00 +85.00 \\(83.00 to 87.00\\)",
               "  mechanism +perplexity +p  n\n"
               "  candidate m  -16.00 \\(-18.00 to -14.00\\)  0.004  3\n\n"});
  expect_no_words(text, {"asked", "search", "front,", "re-test"});
  EXPECT_THAT(canonical_export(run), Not(HasSubstr("mechanisms"))) << "more may be listed later";
}

TEST_F(ReportTest, SharesAndRatesStandBesideMeans) {
  const auto candidate = [](const char* label, const char* role, const nlohmann::json& solved) {
    auto record = listed_record(label, role, 84.0, nullptr);
    record["solved"] = solved;
    return record;
  };
  const auto solved = [](int count, double low, double high, const nlohmann::json& median) {
    return nlohmann::json{
        {"count", count}, {"of", 5}, {"low", low}, {"high", high}, {"median", median}};
  };
  auto mechanism = candidate("m", "listed", solved(4, 0.283, 0.995, 2.25));
  mechanism.update({{"learning_rate", 0.016}, {"rate_at_end", true}});
  auto baseline = candidate("v", "baseline", solved(5, 0.478, 1.0, 1.95));
  baseline.update({{"learning_rate", 0.004}, {"rate_at_end", false}});
  const auto table = [this](const nlohmann::json& rows, bool at_one_rate,
                            std::size_t width = kAnyWidth) {
    store_->set_meta("config", {{"name", "listed"}, {"mechanisms", {"m"}}});
    return closing_table(run_with("retest", {{"replicates", 5},
                                             {"confidence", 0.95},
                                             {"until", 0.03},
                                             {"voided", at_one_rate},
                                             {"at_one_rate", at_one_rate},
                                             {"objective", "perplexity"},
                                             {"candidates", rows},
                                             {"verdict", ""}}),
                         width);
  };
  const auto text = table({mechanism, baseline}, false);
  expect_rows(text, {"perplexity +solved +median of solved  n +rate\n",
                     "\\) +4 of 5 \\(0.28 to 0.99\\) +2.25  3  0.016 \\(end\\)\n",
                     "\\) +5 of 5 \\(0.48 to 1.00\\) +1.95  3 +0.004\n"});
  expect_words(text, {"trained on at most 5 fresh seeds, until each was decided to 3 %; 95 % "
                      "intervals, failures included, each for itself",
                      "solved: runs, and the Clopper-Pearson interval of their share; rate: "
                      "learning rate, (end) the lowest or the highest that was tried\n"});
  expect_no_words(text, {"one learning rate", "P(best)"});
  std::istringstream narrow(table({mechanism, baseline}, false, 80));
  for (std::string line; std::getline(narrow, line);) EXPECT_LE(line.size(), 80U) << line;
  baseline = candidate("v", "baseline", nullptr);
  const auto plain = table({candidate("m", "listed", nullptr), baseline}, true);
  expect_words(plain, {"\nbaseline and controls alone trained on 5 fresh seeds at one learning "
                       "rate; 95 % intervals, each"});
  expect_no_words(plain, {"solved", "median", "rate:", "  rate"});
  expect_no_words(table({candidate("m", "listed", solved(5, 0.48, 1.0, 2.0)), baseline}, true),
                  {"median"});
}

TEST_F(ReportTest, CsvQuotesAndHasOneLinePerEvaluation) {
  const auto csv = evaluations_csv(RunSummary(*store_));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 6);
  expect_words(csv, {"\"the <best>, \"\"b\"\"\",candidate b,", ",1 3,0,ok,"});  // the asks of a
  expect_no_words(csv, {"learning_rate"});
  auto own = evaluation("r", 90);
  own.identity["training"] = {{"learning_rate", 0.016}};
  store_->add({own});
  expect_words(evaluations_csv(RunSummary(*store_)),
               {",status,reason,learning_rate,perplexity,", ",ok,,0.016,90", ",ok,,,85"});
}

TEST_F(ReportTest, ResultsHoldTheWholeRecordAndWhatFollowsFromIt) {
  const auto json = test::results_json(run_with("truth", {{"candidate b", {81.0}}}));
  EXPECT_EQ(nlohmann::json::parse(json.dump()), json);
  EXPECT_FALSE(json.contains("hypervolume"));
  EXPECT_EQ(json["best"]["trace"].size(), 2U);
  EXPECT_EQ(json["asks"].size(), 5U);
  EXPECT_EQ(json["evaluations"].size(), 5U);
  EXPECT_EQ(json["genes"], nlohmann::json::parse(R"([{"name": "x1", "options":
      ["ga", "gb", "gc", "gd"]}])"));
  EXPECT_EQ(json["asks"][2], nlohmann::json::parse(R"({"number": 2, "batch": 1, "genotype": "ga",
      "candidate": "candidate a", "evaluations": ["a"], "reused": true, "fitness": [90.0],
      "status": "ok", "usable": true, "reason": "", "believed": [90.0], "trained": 2,
      "seconds": 5.0})"));
  EXPECT_EQ(json["identities"], nlohmann::json::parse("[{}]")) << "all but the candidates' names";
  expect_values(json, {{"/schema", 1},
                       {"/counts/asked", 5},
                       {"/counts/evaluated", 4},
                       {"/best/value", 80},
                       {"/ranking/0/values/perplexity", 80},
                       {"/ranking/0/candidate", "candidate b"},
                       {"/baseline/candidate", "candidate v"},
                       {"/failures/0/status", "diverged"},
                       {"/objectives/0/source", "trained"},
                       {"/objectives/0/penalty", 1 + 10 * (400.0 - 1)},
                       {"/candidates/candidate b/truth/0", 81},
                       {"/planned_asks", nullptr},
                       {"/candidates/candidate b/mechanism", "the <best>, \"b\""},
                       {"/asks/3/status", "diverged"},
                       {"/asks/3/usable", false},
                       {"/asks/3/believed", nullptr},
                       {"/asks/4/trained", 4},
                       {"/evaluations/0/id", "a"},
                       {"/evaluations/0/objectives/perplexity", 90},
                       {"/evaluations/0/values/flops", 2e6},
                       {"/evaluations/0/measured/pid", 1234},
                       {"/evaluations/0/curve/0/valid/correct", 4},
                       {"/evaluations/0/stopped_at", nullptr},
                       {"/evaluations/0/identity", 0}});
}

TEST_F(ReportTest, NoTextOfAStoreIsSql) {
  const std::string hostile = "x'); DROP TABLE asks;--";
  store_->add({evaluation(hostile, 70)});
  store_->add_asks({ask(5, 2, {hostile}, 70)});
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
  EXPECT_EQ(test::results_json(run)["ranking"][0]["mechanism"], hostile);
  EXPECT_THAT(evaluations_csv(run), HasSubstr(hostile + ",candidate " + hostile + ","));
}

struct CsvCase {
  Texts fields;
  std::string line;
};
class CsvLineTest : public ::testing::TestWithParam<CsvCase> {};

TEST_P(CsvLineTest, QuotesWhatNeedsItAndHasNoFormulas) {
  EXPECT_EQ(csv_line(GetParam().fields), GetParam().line + "\r\n");
}

INSTANTIATE_TEST_SUITE_P(, CsvLineTest,
                         ::testing::Values(CsvCase{{"a b", "a,b", "a\"b", "a\nb", ""},
                                                   "a b,\"a,b\",\"a\"\"b\",\"a\nb\","},
                                           CsvCase{{"=1+1", "+x", "-x", "@x", "=\"a\"", "-", "x=1"},
                                                   "'=1+1,'+x,'-x,'@x,\"'=\"\"a\"\"\",'-,x=1"},
                                           CsvCase{
                                               {"-1.5", "-3e-04", "-inf", "1e+09", "dot|softmax"},
                                               "-1.5,-3e-04,-inf,1e+09,dot|softmax"}));

TEST_F(ReportTest, WhatIsNotFiniteIsNullInResults) {
  auto odd = evaluation("o", 70);
  odd.curve[0].train_nll = std::nan("");
  odd.curve[0].valid.pad_nll = std::nan("");
  odd.values["parameters"] = HUGE_VAL;
  store_->add({odd});
  expect_values(test::results_json(RunSummary(*store_))["evaluations"][4],
                {{"/id", "o"},
                 {"/curve/0/train_nll", nullptr},
                 {"/curve/0/valid/pad_nll", nullptr},
                 {"/values/parameters", nullptr}});
}

TEST_F(ReportTest, BeliefInARetrainedCandidateIsTheMeanOfItsAnswersSoFar) {
  std::vector<Evaluation> all{evaluation("a", 90), evaluation("a2", 70, "candidate a"),
                              evaluation("a3", 0, "candidate a"),
                              evaluation("a4", 80, "candidate a")};
  all[1].status = Status::stopped_early;
  const auto believed = [&](const char* repeated) {
    const auto run = run_of(all,
                            {ask(0, 0, {"a"}, 90), ask(1, 0, {"a2"}, 70), ask(2, 0, {"a3"}, 4000),
                             ask(3, 0, {"a4"}, 80)},
                            {{"config", {{"evaluation", {{"repeated", repeated}}}}}});
    std::vector<Point> points;
    for (const auto& one : run.asks) points.push_back(one.believed);
    return points;
  };
  EXPECT_EQ(believed("retrain"), (std::vector<Point>{{90}, {90}, {90}, {85}}));
  EXPECT_EQ(believed("reuse"), (std::vector<Point>{{90}, {}, {}, {80}}));
}

TEST_F(ReportTest, AnAskSaysWhatItAskedForAndWhatTheSearchHadSpentByThen) {
  const RunSummary run(*store_);
  Texts told;
  for (const auto& one : run.asks) {
    told.push_back(std::string(one.candidate) + " " + std::to_string(one.trainings) + " " +
                   std::to_string(static_cast<int>(10 * one.seconds)));
  }
  EXPECT_EQ(told, (Texts{"candidate a 1 25", "candidate b 2 50", "candidate a 2 50",
                         "candidate c 3 75", "candidate d 4 100"}));
  const auto asks = run.asks_by_id();
  EXPECT_EQ(asks.at("a"), (std::vector<const AnsweredAsk*>{&run.asks[0], &run.asks[2]}));
  EXPECT_FALSE(asks.contains("v"));
  EXPECT_EQ(run.ranked("candidate b"), &run.ranking.front());
  EXPECT_EQ(run.ranked("candidate v"), nullptr) << "the baseline is none of the search's";
  EXPECT_EQ(run.find("candidate v"), &*run.baseline);
  EXPECT_EQ(run.find("candidate c"), nullptr) << "it failed";
}

TEST_F(ReportTest, IdentitiesAreHeldWithoutNamesAndExportedWithThem) {
  const RunSummary run(*store_);
  EXPECT_TRUE(run.evaluations.front().identity.at("candidate").is_null());
  EXPECT_EQ(whole_identity(run.evaluations.front()), store_->evaluations().front().identity);
  EXPECT_THAT(canonical_export(run), HasSubstr(R"("identity":{"candidate":"candidate a"})"));
}

TEST_F(ReportTest, CanonicalExportHoldsNothingMeasured) {
  const auto text = canonical_export(RunSummary(*store_));
  expect_no_words(text, {"train_seconds", "pid", "workers", "array", "checkpoint_minutes",
                         "made up", "budget", "/some", "indicator"});
  expect_words(text, {"\"min_count\":2", "\"evaluations\":[\"a\"]"});
  EXPECT_EQ(without_places({{"problem", {{"type", "tabular"}, {"table", "a"}, {"step", 5}}}}),
            nlohmann::json({{"problem", {{"type", "tabular"}, {"step", 5}}}}));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 5 + 5);
}

TEST_F(ReportTest, WhereNothingIsOutAtOnceTheCanonicalExportSaysNothingOfIt) {
  const auto config_with = [this](std::int64_t in_flight) {
    return canonical_export(run_with(
        "config",
        {{"algorithm", {{"name", "motpe"}, {"in_flight", in_flight}, {"order", "virtual"}}}}));
  };
  expect_no_words(config_with(1), {"in_flight", "virtual"});
  EXPECT_THAT(config_with(2), HasSubstr("in_flight"));
}

TEST_F(ReportTest, NoResultDependsOnWhatIsWithoutEffect) {
  EXPECT_THAT(
      settings_without_effect(),
      ElementsAre("budget", "cluster", "controls", "evaluation.array", "evaluation.device",
                  "evaluation.failure_window", "evaluation.keep_models", "evaluation.retry_crashed",
                  "evaluation.retry_failed", "evaluation.retry_lost",
                  "evaluation.retry_out_of_memory", "evaluation.retry_timed_out",
                  "evaluation.workers", "fidelity.checkpoint_space", "name", "rates", "retest",
                  "training.checkpoint_minutes"));
}

TEST_F(ReportTest, EveryColumnIsDocumented) {
  const auto text = read_bytes(source_folder() + "/docs/files.md");
  const RunSummary run(*store_);
  const auto csv = evaluations_csv(run);
  std::istringstream header(csv.substr(0, csv.find('\r')));
  Texts names;
  for (std::string column; std::getline(header, column, ',');) {
    for (const auto* end : {"_mean", "_standard_error"}) {
      if (column.ends_with(end)) column = end;
    }
    names.push_back("`" + column + "`");
  }
  EXPECT_GT(names.size(), 20U);
  const auto results = test::results_json(run);
  for (const auto& [key, value] : results.items()) names.push_back("`" + key + "`");
  expect_words(text, names);
}

TEST_F(ReportTest, RetrainedCandidateCountsWithItsMean) {
  const auto repeated = [this](const char* how) {
    return run_of({evaluation("a", 90), evaluation("a2", 70, "candidate a"),
                   evaluation("a3", 0, "candidate a"), evaluation("b", 85)},
                  {ask(0, 0, {"a"}, 90), ask(1, 0, {"b"}, 85), ask(2, 1, {"a2"}, 70),
                   ask(3, 1, {"a3"}, 4000)},
                  {{"config", {{"evaluation", {{"repeated", how}}}}}});
  };
  const auto run = repeated("retrain");
  EXPECT_EQ(run.ranking[0].candidate, "candidate a");
  EXPECT_DOUBLE_EQ(run.ranking[0].values[0], 80);
  EXPECT_EQ(run.ranking[0].n, 2);
  EXPECT_EQ(run.ranking[0].evaluations.size(), 3U);
  EXPECT_EQ(run.batches[1].failures, 1);
  const auto replicated = repeated("replicate");
  ASSERT_EQ(replicated.ranking.size(), 1U) << "the last answer is a failure";
  EXPECT_EQ(replicated.ranking[0].candidate, "candidate b");
}

TEST_F(ReportTest, AccuracyIsAMeanOverTheTrainingRunsToo) {
  std::vector<Evaluation> trained{evaluation("a", 90), evaluation("a2", 70, "candidate a"),
                                  evaluation("a3", 0, "candidate a")};
  trained[1].curve[0].valid.correct = 6;
  // An objective with the name of another quantity is told apart.
  trained[0].measured["perplexity"] = {{"value", 91}};
  const auto run = run_of(trained, {ask(0, 0, {"a", "a2", "a3"}, 80.5)});
  EXPECT_EQ(run.ranking[0].n, 2);
  EXPECT_DOUBLE_EQ(run.ranking[0].standard_errors[0].value(), 10.5);
  const auto text = closing_table(run);
  expect_rows(text, {"perplexity +s.e. +n +accuracy +s.e. ", " 80.50 +10.50 +2/3 +50.0 % +10.0 "});
  EXPECT_THAT(text, Not(HasSubstr("n = 1")));
}

TEST_F(ReportTest, MaximisedObjectiveIsShownInItsOwnSense) {
  const auto run = run_of({evaluation("a", 90), evaluation("b", 85), evaluation("v", 100)},
                          {ask(0, 0, {"a"}, -0.25), ask(1, 0, {"b"}, -0.5)},
                          {{"objectives", {objective("accuracy", "1", 1, 0, true)}},
                           {"baseline", {{"evaluations", {"v"}}, {"fitness", {-0.2}}}}});
  EXPECT_EQ(run.ranking[0].candidate, "candidate b");
  EXPECT_DOUBLE_EQ(run.ranking[0].values[0], 0.5);
  EXPECT_EQ(run.batches[0].best, 0.5);
  EXPECT_EQ(run.batches[0].mean, 0.375);
  expect_words(closing_table(run), {"accuracy (max)", "+150.0 %"});
}

TEST_F(ReportTest, SyntheticRunHasNoBaselineNoSpaceNoTraining) {
  std::vector<Evaluation> made;
  std::vector<Ask> asks;
  for (int i = 0; i < 12; ++i) {
    Evaluation point;
    point.id = std::to_string(i);
    point.candidate = "0.1|0.2|0.3|0.4|0.5|0." + point.id;
    point.status = Status::ok;
    point.values["f1"] = 1.0 / (1 + i);
    made.push_back(point);
    asks.push_back(ask(i, i / 4, {point.id}, point.values["f1"]));
  }
  const auto run =
      run_of(made, asks,
             {{"objectives", {objective("f1", "1", 0, 1)}},
              {"config", {{"name", "sphere"}, {"evaluation", {{"repeated", "reuse"}}}}}});
  expect_no_words(closing_table(run),
                  {"accuracy", "params", "FLOPs", "trained", "to baseline", "n = 1"});
  const auto csv = evaluations_csv(run);
  EXPECT_THAT(csv, Not(HasSubstr("similarity")));
  EXPECT_THAT(csv, HasSubstr("peak_bytes,f1,f1_mean,f1_standard_error,n,id\r\n"));
  EXPECT_TRUE(test::results_json(run)["baseline"].is_null());
  EXPECT_THAT(canonical_export(run), HasSubstr("\"repeated\""));
}

/// What is paused of a run with an ask at step 3 that another stage has trained on.
std::vector<Evaluation> paused_after(Store& store, const Evaluation& trained_on) {
  store.add({trained_on});
  auto at_rung = ask(5, 2, {trained_on.id}, 90);
  at_rung.until = 3;
  store.add_asks({at_rung});
  return RunSummary(store).paused;
}

TEST_F(ReportTest, WhatFailsInAnotherStageWithoutACurveIsNotPaused) {
  EXPECT_TRUE(paused_after(*store_, evaluation("e", 0)).empty());
}

// As the baseline may have, or the run that another one reuses.
TEST_F(ReportTest, WhatTheSearchPausedIsPausedWhoeverTrainedOn) {
  auto ended = evaluation("e", 85);
  ended.curve.insert(ended.curve.begin(), ended.curve.front());
  ended.curve.front().step = 3;
  const auto paused = paused_after(*store_, ended);
  ASSERT_EQ(paused.size(), 1U);
  EXPECT_EQ(paused.front().curve.size(), 1U);
  EXPECT_EQ(RunSummary(*store_).ranking.size(), 3U);
}

TEST_F(ReportTest, EmptyStoreIsNoError) {
  const RunSummary run(Store(folder_ / "empty.sqlite"));
  EXPECT_THAT(closing_table(run), HasSubstr("0 candidates asked for"));
  expect_values(test::results_json(run), {{"/counts/asked", 0}});
}

}  // namespace
}  // namespace nas
