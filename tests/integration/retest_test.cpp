// What follows a search, with real trainings: learning rates and re-test, killed and continued.

#include "integration/program.hpp"

namespace nas::testing {
namespace {

class RetestTest : public ProgramTest {
 protected:
  /// A search of a few tiny trainings, then three candidates: 3 rates or more by 2 seeds, and 3 seeds each.
  static Texts small_search(const fs::path& folder, int steps = 20) {
    return {config("smoke.yaml"),
            "--output",
            folder.string(),
            "training.steps=" + std::to_string(steps),
            "budget.evaluations=5",
            "controls=false",
            "retest={replicates: 3, top: 2}",
            "evaluation.array=2",
            "--no-report",
            "evaluation.workers=2"};
  }
};

TEST_F(RetestTest, JudgesWhatWasFoundOnFreshSeedsAndTheTestSplit) {
  ASSERT_TRUE(ran("nas-run", small_search(folder_ / "run")));
  expect_text("learning rates ");
  expect_text("re-test on 3 fresh seeds");
  expect_text("shown to differ from the baseline with 3 seeds");
  const auto found = results_of(folder_ / "run");
  EXPECT_EQ(found["counts"]["evaluated"], 5) << "nothing further is charged to the search";
  std::map<std::string, nlohmann::json> by_id;
  for (const auto& one : found["evaluations"]) by_id[one["id"]] = one;
  const auto& retest = found["retest"];
  EXPECT_EQ(retest["replicates"], 3);
  std::map<std::string, int> roles;
  for (const auto& candidate : retest["candidates"]) {
    ++roles[candidate["role"]];
    EXPECT_EQ(candidate["evaluations"].size(), 3U);
    EXPECT_EQ(candidate["test"]["n"], 3);
    const auto& rates = candidate["rates"];
    ASSERT_GE(rates.size(), 3U);
    double least = INFINITY;
    for (const auto& one : rates) {
      ASSERT_EQ(one["valid_nll"].size(), 2U);
      const double mean = one["valid_nll"][0].get<double>() + one["valid_nll"][1].get<double>();
      if (mean >= least) continue;
      least = mean;
      EXPECT_LE(one["learning_rate"], candidate["learning_rate"]);
    }
    const bool first = candidate["learning_rate"] == rates.front()["learning_rate"];
    const bool last = candidate["learning_rate"] == rates.back()["learning_rate"];
    EXPECT_EQ(candidate["rate_at_end"], first || last);
    if (last) {
      EXPECT_EQ(rates.size(), 5U) << "the grid has grown as far as it may";
    }
    for (const auto& id : candidate["evaluations"]) {
      const auto& judged = by_id.at(id);
      EXPECT_GE(judged["replicate"], 1'000'000) << "seeds that choose a rate do not judge";
      EXPECT_EQ(
          found["identities"][judged["identity"].get<std::size_t>()]["training"]["learning_rate"],
          candidate["learning_rate"]);
    }
  }
  EXPECT_EQ(roles, (std::map<std::string, int>{{"top", 2}, {"baseline", 1}}));
  auto off = small_search(folder_ / "off");
  off.emplace_back("retest.tune=false");
  ASSERT_TRUE(ran("nas-run", off));
  const auto at_one = results_of(folder_ / "off");
  for (const auto& candidate : at_one["retest"]["candidates"]) {
    EXPECT_EQ(candidate["learning_rate"], at_one["config"]["training"]["learning_rate"]);
    EXPECT_TRUE(candidate["rates"].empty());
  }
}

TEST_F(RetestTest, GivenRatesAreTakenAndNotSought) {
  auto given = small_search(folder_ / "run");
  given.emplace_back("rates=[baseline 0.016]");
  given.emplace_back("retest.top=1");
  ASSERT_TRUE(ran("nas-run", given));
  const auto found = results_of(folder_ / "run");
  std::map<std::string, nlohmann::json> by_role;
  for (const auto& one : found["retest"]["candidates"]) by_role[one["role"]] = one;
  EXPECT_EQ(by_role["baseline"]["learning_rate"], 0.016);
  EXPECT_TRUE(by_role["baseline"]["rates"].empty());
  EXPECT_EQ(by_role["baseline"]["rate_at_end"], false);
  // Others begin there.
  std::set<double> tried;
  for (const auto& one : by_role["top"]["rates"]) tried.insert(one["learning_rate"].get<double>());
  for (const double rate : {0.008, 0.016, 0.032}) EXPECT_TRUE(tried.contains(rate)) << rate;
}

TEST_F(RetestTest, KilledInBothStagesEndsLikeAnUninterruptedRunOfOneWorker) {
  constexpr int kSteps = 100;
  const auto whole = folder_ / "whole" / "run";  // no neighbour, whose seeds would be seen
  auto one_worker = small_search(whole, kSteps);
  one_worker.back() = "evaluation.workers=1";
  one_worker.emplace_back("evaluation.array=1");
  ASSERT_TRUE(ran("nas-run", one_worker));
  const auto killed = folder_ / "killed";
  for (const std::string moment : {"learning rates 4/", "re-test 2/", "re-test 8/"}) {
    kill_at(moment, "nas-run", small_search(killed, kSteps));
    EXPECT_FALSE(fs::exists(killed / "results.json")) << "killed too late";
  }
  ASSERT_TRUE(ran("nas-run", small_search(killed, kSteps)));
  EXPECT_EQ(results_of(killed)["retest"], results_of(whole)["retest"]);
  EXPECT_EQ(canonical_export(killed), canonical_export(whole));
}

TEST_F(RetestTest, AFinishedSearchIsRetestedLaterAndWithMoreSeeds) {
  const auto out = folder_ / "run";
  auto search = small_search(out);
  search[6] = "retest={replicates: 0}";
  ASSERT_TRUE(ran("nas-run", search));
  EXPECT_TRUE(results_of(out)["retest"].is_null());
  const auto asks = results_of(out)["ranking"];
  search[6] = "retest={replicates: 1}";
  ASSERT_TRUE(ran("nas-run", search));
  expect_text("One fresh seed each: nothing can be distinguished from noise.");
  const auto first = results_of(out)["retest"]["candidates"][0]["evaluations"];
  search[6] = "retest={replicates: 2}";
  ASSERT_TRUE(ran("nas-run", search));
  const auto both = results_of(out)["retest"]["candidates"][0]["evaluations"];
  EXPECT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0], first[0]);
  EXPECT_EQ(results_of(out)["ranking"], asks);
  const auto retest = results_of(out)["retest"];
  for (const auto* fewer : {"retest={replicates: 0}", "retest={replicates: 1}"}) {
    search[6] = fewer;
    ASSERT_TRUE(ran("nas-run", search));
    EXPECT_EQ(results_of(out)["retest"], retest) << fewer;
  }
  expect_text("of each there are 2 fresh seeds, more than retest.replicates = 1: all count");
}

TEST_F(RetestTest, WhatIsThereStaysWhileMoreOfItIsMadeAndWhereNothingIsAskedFor) {
  const auto out = folder_ / "run";
  auto search = small_search(out, 300);
  search[6] = "retest={replicates: 1, top: 2}";
  ASSERT_TRUE(ran("nas-run", search));
  const auto before = results_of(out);
  ASSERT_FALSE(before["retest"].is_null());
  search[6] = "retest={replicates: 20, top: 2}";
  { kill_at("/60,", "nas-run", search); }
  search[6] = "retest={replicates: 0}";
  ASSERT_TRUE(ran("nas-run", search));
  EXPECT_EQ(results_of(out)["retest"], before["retest"]);
  search[6] = "retest={replicates: 2, top: 2}";
  ASSERT_TRUE(ran("nas-run", search));
  const auto more = results_of(out)["retest"];
  EXPECT_EQ(more["replicates"], 2);
  EXPECT_EQ(more["candidates"].size(), before["retest"]["candidates"].size());
}

TEST_F(RetestTest, ARetestOfOtherWinnersIsNotShown) {
  const auto out = folder_ / "run";
  auto search = small_search(out);
  search[4] = "budget.evaluations=2";
  search[6] = "retest={replicates: 1, top: 5}";
  ASSERT_TRUE(ran("nas-run", search));
  const auto before = results_of(out)["retest"]["candidates"].size();
  search[4] = "budget.evaluations=8";
  search[6] = "retest={replicates: 0}";
  ASSERT_TRUE(ran("nas-run", search));
  const auto best = results_of(out)["ranking"][0]["candidate"];
  EXPECT_TRUE(results_of(out)["retest"].is_null()) << before;
  expect_text("the search has found others since its re-test");
  search[6] = "retest={replicates: 1, top: 1}";
  ASSERT_TRUE(ran("nas-run", search));
  EXPECT_EQ(results_of(out)["retest"]["candidates"][0]["candidate"], best);
}

TEST_F(RetestTest, AFrontIsRetestedWhole) {
  const auto out = folder_ / "run";
  ASSERT_TRUE(ran("nas-run", {config("smoke.yaml"), "--output", out.string(),
                              "objectives=[perplexity, attention_flops]", "algorithm.name=nsga2",
                              "algorithm.population=8", "budget.evaluations=8",
                              "retest.replicates=2", "--no-report"}));
  const auto found = results_of(out);
  std::size_t front = 0;
  for (const auto& candidate : found["retest"]["candidates"]) {
    front += candidate["role"] == "front" ? 1U : 0U;
    EXPECT_EQ(candidate["retest"][1]["standard_error"], 0.0) << "FLOPs do not depend on the seed";
  }
  const auto baseline = found["baseline"]["candidate"];
  std::size_t expected = 0;
  for (const auto& member : found["front"]) expected += member["candidate"] != baseline ? 1U : 0U;
  EXPECT_EQ(front, expected);
}

TEST_F(RetestTest, APlanListsRatesAndRetest) {
  auto search = small_search(folder_ / "run");
  search.emplace_back("--dry-run");
  ASSERT_TRUE(ran("nas-run", search));
  expect_text(
      "the best 2, the baseline on 3 fresh seeds each: 27 training runs, 18 of them to find");
  search.emplace_back("retest.top=1000");
  ASSERT_TRUE(ran("nas-run", search));
  expect_text("the baseline on 3 fresh seeds each: ");
  EXPECT_EQ(text().find("the best 1000"), std::string::npos) << "the search comes to fewer";
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

}  // namespace
}  // namespace nas::testing
