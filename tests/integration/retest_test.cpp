// What follows a search, with real trainings: tuning and re-test, killed and continued.

#include <map>

#include <nlohmann/json.hpp>

#include "integration/program.hpp"

namespace nas::testing {
namespace {

class RetestTest : public ProgramTest {
 protected:
  /// A search of a few tiny trainings, then 2 x 3 trials and 3 seeds for each of five candidates.
  static std::vector<std::string> small_search(const std::filesystem::path& folder,
                                               int steps = 20) {
    return {config("smoke.yaml"),
            "--output",
            folder.string(),
            "training.steps=" + std::to_string(steps),
            "budget.evaluations=5",
            "baseline.tune={trials: 3, winners: 1}",
            "retest={replicates: 3, top: 2}",
            "evaluation.array=2",
            "--no-report",
            "evaluation.workers=2"};
  }
};

TEST_F(RetestTest, JudgesWhatWasFoundOnFreshSeedsAndTheTestSplit) {
  ASSERT_EQ(run("nas-run", small_search(folder_ / "run")), 0) << text();
  expect_text("tuning ");
  expect_text("re-test on 3 fresh seeds");
  expect_text("tuned by the validation split");
  expect_text("shown to differ from the baseline with 3 seeds");
  const auto found = results_of(folder_ / "run");
  EXPECT_EQ(found["counts"]["evaluated"], 5) << "nothing further is charged to the search";
  const auto& retest = found["retest"];
  EXPECT_EQ(retest["replicates"], 3);
  std::map<std::string, int> roles;
  for (const auto& candidate : retest["candidates"]) {
    ++roles[candidate["role"]];
    EXPECT_EQ(candidate["evaluations"].size(), 3U);
    EXPECT_EQ(candidate["test"]["n"], 3);
    EXPECT_NE(candidate["retest"][0]["mean"], candidate["search"][0]);
  }
  EXPECT_EQ(roles, (std::map<std::string, int>{{"top", 2}, {"baseline", 1}, {"tuned", 2}}));
  ASSERT_EQ(found["tuning"].size(), 2U);
  const auto& trials = found["tuning"][0]["trials"];
  ASSERT_EQ(trials.size(), 3U);
  EXPECT_EQ(trials[0]["evaluations"], found["baseline"]["evaluations"])
      << "the first trial is the search's own baseline";
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const auto& other = found["tuning"][1]["trials"][i];
    EXPECT_EQ(other["learning_rate"], trials[i]["learning_rate"]) << "the same for every mechanism";
    EXPECT_EQ(other["weight_decay"], trials[i]["weight_decay"]);
  }
  auto fewer = small_search(folder_ / "run");
  fewer[5] = "baseline.tune={trials: 2, winners: 1}";
  ASSERT_EQ(run("nas-run", fewer), 0) << text();
  expect_text("of each 1 more trials are recorded than baseline.tune asks for: all count");
  EXPECT_EQ(results_of(folder_ / "run")["tuning"], found["tuning"]);
}

TEST_F(RetestTest, KilledInBothStagesEndsLikeAnUninterruptedRunOfOneWorker) {
  constexpr int kSteps = 100;
  const auto whole = folder_ / "whole";
  auto one_worker = small_search(whole, kSteps);
  one_worker.back() = "evaluation.workers=1";
  one_worker.emplace_back("evaluation.array=1");
  ASSERT_EQ(run("nas-run", one_worker), 0) << text();
  const auto killed = folder_ / "killed";
  for (const std::string moment : {"tuning 4/", "re-test 2/", "re-test 8/"}) {
    const auto output = folder_ / "killed.txt";
    std::filesystem::remove(output);
    Program program("nas-run", small_search(killed, kSteps), output);
    int code = -1;
    while (read_file(output).find(moment) == std::string::npos) {
      ASSERT_FALSE(program.wait_for(std::chrono::milliseconds(5), code)) << read_file(output);
    }
    program.kill(SIGKILL);
    program.wait();
    EXPECT_FALSE(std::filesystem::exists(killed / "results.json")) << "killed too late";
  }
  ASSERT_EQ(run("nas-run", small_search(killed, kSteps)), 0) << text();
  EXPECT_EQ(results_of(killed)["retest"], results_of(whole)["retest"]);
  EXPECT_EQ(results_of(killed)["tuning"], results_of(whole)["tuning"]);
  EXPECT_EQ(canonical_export(killed), canonical_export(whole));
}

TEST_F(RetestTest, AFinishedSearchIsRetestedLaterAndWithMoreSeeds) {
  const auto out = folder_ / "run";
  auto search = small_search(out);
  search[6] = "retest={replicates: 0}";
  search[5] = "baseline.tune=false";
  ASSERT_EQ(run("nas-run", search), 0) << text();
  EXPECT_TRUE(results_of(out)["retest"].is_null());
  EXPECT_TRUE(results_of(out)["tuning"].is_null());
  const auto asks = results_of(out)["ranking"];
  search[6] = "retest={replicates: 1}";
  ASSERT_EQ(run("nas-run", search), 0) << text();
  expect_text("One fresh seed each: nothing can be distinguished from noise.");
  const auto first = results_of(out)["retest"]["candidates"][0]["evaluations"];
  search[6] = "retest={replicates: 2}";
  ASSERT_EQ(run("nas-run", search), 0) << text();
  const auto both = results_of(out)["retest"]["candidates"][0]["evaluations"];
  EXPECT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0], first[0]);
  EXPECT_EQ(results_of(out)["ranking"], asks);
  const auto retest = results_of(out)["retest"];
  for (const auto* fewer : {"retest={replicates: 0}", "retest={replicates: 1}"}) {
    search[6] = fewer;
    ASSERT_EQ(run("nas-run", search), 0) << text();
    EXPECT_EQ(results_of(out)["retest"], retest) << fewer;
  }
  expect_text("of each there are 2 fresh seeds, more than retest.replicates = 1: all count");
}

TEST_F(RetestTest, WhatIsThereStaysWhileMoreOfItIsMadeAndWhereNothingIsAskedFor) {
  const auto out = folder_ / "run";
  auto search = small_search(out, 300);
  search[6] = "retest={replicates: 1, top: 2}";
  ASSERT_EQ(run("nas-run", search), 0) << text();
  const auto before = results_of(out);
  ASSERT_FALSE(before["retest"].is_null());
  search[6] = "retest={replicates: 20, top: 2}";
  {
    Program program("nas-run", search, folder_ / "killed.txt");
    int code = -1;
    while (read_file(folder_ / "killed.txt").find("/100,") == std::string::npos) {
      ASSERT_FALSE(program.wait_for(std::chrono::milliseconds(5), code))
          << read_file(folder_ / "killed.txt");
    }
    program.kill(SIGKILL);
    program.wait();
  }
  search[5] = "baseline.tune=false";
  search[6] = "retest={replicates: 0}";
  ASSERT_EQ(run("nas-run", search), 0) << text();
  EXPECT_EQ(results_of(out)["retest"], before["retest"]);
  EXPECT_EQ(results_of(out)["tuning"], before["tuning"]);
  search[6] = "retest={replicates: 2, top: 2}";
  ASSERT_EQ(run("nas-run", search), 0) << text();
  const auto more = results_of(out)["retest"];
  EXPECT_EQ(more["replicates"], 2);
  EXPECT_EQ(more["candidates"].size(), before["retest"]["candidates"].size())
      << "what was tuned is among them";
}

TEST_F(RetestTest, ARetestOfOtherWinnersIsNotShown) {
  const auto out = folder_ / "run";
  auto search = small_search(out);
  search[4] = "budget.evaluations=2";
  search[5] = "baseline.tune=false";
  search[6] = "retest={replicates: 1, top: 5}";
  ASSERT_EQ(run("nas-run", search), 0) << text();
  const auto before = results_of(out)["retest"]["candidates"].size();
  search[4] = "budget.evaluations=8";
  search[6] = "retest={replicates: 0}";
  ASSERT_EQ(run("nas-run", search), 0) << text();
  const auto best = results_of(out)["ranking"][0]["candidate"];
  EXPECT_TRUE(results_of(out)["retest"].is_null()) << before;
  expect_text("the search has found others since its re-test");
  search[6] = "retest={replicates: 1, top: 1}";
  ASSERT_EQ(run("nas-run", search), 0) << text();
  EXPECT_EQ(results_of(out)["retest"]["candidates"][0]["candidate"], best);
}

TEST_F(RetestTest, AFrontIsRetestedWhole) {
  const auto out = folder_ / "run";
  ASSERT_EQ(run("nas-run", {config("smoke.yaml"), "--output", out.string(),
                            "objectives=[perplexity, attention_flops]", "algorithm.name=nsga2",
                            "algorithm.population=8", "budget.evaluations=8", "retest.replicates=2",
                            "--no-report"}),
            0)
      << text();
  expect_text("P(front)");
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

TEST_F(RetestTest, APlanListsTuningAndRetest) {
  auto search = small_search(folder_ / "run");
  search.emplace_back("--dry-run");
  ASSERT_EQ(run("nas-run", search), 0) << text();
  expect_text("3 trials for the baseline and each of the best 1: 6 training runs");
  expect_text("the best 2, the baseline, 2 tuned on 3 fresh seeds each: 15 training runs");
  search.emplace_back("retest.top=1000");
  ASSERT_EQ(run("nas-run", search), 0) << text();
  expect_text("the baseline, 2 tuned on 3 fresh seeds each: ");
  EXPECT_EQ(text().find("the best 1000"), std::string::npos) << "the search comes to fewer";
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(RetestTest, IsRefusedWhereNothingIsTrained) {
  const auto out = folder_ / "run";
  EXPECT_EQ(
      run("nas-run", {config("nsga2_zdt.yaml"), "--output", out.string(), "retest.replicates=3"}),
      2);
  expect_text("retest.replicates = 3, must be 0: the problem zdt trains nothing");
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace nas::testing
