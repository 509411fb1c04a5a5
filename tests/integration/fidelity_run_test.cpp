// Searches by rungs, as a user runs them.

#include "core/seed.hpp"
#include "integration/program.hpp"
#include "store/store.hpp"
#include "unit/small_table.hpp"

namespace nas::testing {
namespace {

using Words = Texts;

class FidelityRunTest : public ProgramTest {
 protected:
  FidelityRunTest() {
    write_table(small_content(), folder_ / "small.table");
    std::ofstream(folder_ / "table.yaml")
        << "problem: {type: tabular, table: " << (folder_ / "small.table").string()
        << ", mode: paired}\n"
        << "objectives: [perplexity, attention_flops]\n"
        << "algorithm: {name: random_search, population: 4, evaluations: 12, in_flight: 3}\n"
        << "fidelity: {min: 1}\n";
    // Two objectives, trainings of two workers, a checkpoint every tenth of a second.
    std::ofstream(folder_ / "training.yaml")
        << "extends: " << source_folder() << "/configs/smoke.yaml\n"
        << "objectives: [{name: perplexity, range: [1, 100]}, attention_flops]\n"
        << "training: {steps: 360, checkpoints: [40, 120], checkpoint_minutes: 0.002}\n"
        << "evaluation: {workers: 2}\n"
        << "fidelity: {rungs: [40, 120]}\n";
  }
  [[nodiscard]] Words search(const std::string& kind, const std::string& name,
                             const Words& more = {}) const {
    Words words{(folder_ / (kind + ".yaml")).string(), "--output", (folder_ / name).string(),
                "name=search", "--no-report"};
    if (kind == "training") words.push_back(asynchronous_);
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void refused(const std::string& kind, const Words& more, const std::string& why) {
    expect_refusal("nas-run", search(kind, "refused", more), why);
    EXPECT_FALSE(fs::exists(folder_ / "refused")) << why;
  }

  const std::string asynchronous_ =
      "algorithm={name: nsga2_async, population: 6, evaluations: 27, in_flight: 6}";
};

TEST_F(FidelityRunTest, DependsOnNeitherWorkersNorArraysNorTheSpaceOfCheckpoints) {
  ASSERT_TRUE(
      ran("nas-run", search("training", "one", {"evaluation.workers=1", "evaluation.array=1"})));
  EXPECT_THAT(text(), HasSubstr("rungs: "));
  EXPECT_THAT(text(), HasSubstr(" came to step 120, "));
  const auto closing = text();
  const auto expected = canonical_export(folder_ / "one");
  const Store store(folder_ / "one" / "store.sqlite", Store::Mode::read_only);
  EXPECT_GT(store.partials().size(), 10U);
  const auto asks = store.asks();
  EXPECT_GT(std::count_if(asks.begin(), asks.end(), [](auto& ask) { return ask.until == 0; }), 1);
  const auto reused = std::count_if(asks.begin(), asks.end(), [](auto& ask) { return ask.reused; });
  EXPECT_THAT(closing,
              HasSubstr(", " + std::to_string(reused) + " answered by an earlier evaluation"))
      << "at rungs, too";
  ASSERT_TRUE(ran("nas-run", search("training", "two", {"evaluation.array=3"})));
  EXPECT_EQ(canonical_export(folder_ / "two"), expected);
  ASSERT_TRUE(ran(
      "nas-run",
      search("training", "four", {"evaluation.workers=4", "fidelity.checkpoint_space=0.000001"})));
  EXPECT_EQ(canonical_export(folder_ / "four"), expected);
  const auto checkpoints = folder_ / "four" / "checkpoints";
  EXPECT_TRUE(!fs::exists(checkpoints) || fs::is_empty(checkpoints)) << "there is no space";
}

TEST_F(FidelityRunTest, KilledAtAnyMomentItEndsLikeAnUninterruptedRun) {
  ASSERT_TRUE(ran("nas-run", search("training", "whole")));
  kill_at_random_moments("nas-run", search("training", "killed"), folder_ / "killed", 6);
  ASSERT_TRUE(ran("nas-run", search("training", "killed", {"evaluation.workers=3"})));
  EXPECT_EQ(canonical_export(folder_ / "killed"), canonical_export(folder_ / "whole"));
}

TEST_F(FidelityRunTest, BatchesAreHalvedOneAfterTheOther) {
  const Words halving{"algorithm={name: random_search, population: 9, evaluations: 18}",
                      "fidelity.promote=successive_halving", "training.steps=90",
                      "fidelity.rungs=[10, 30]", "training.checkpoints=[10, 30]"};
  ASSERT_TRUE(ran("nas-run", search("training", "halving", halving)));
  EXPECT_THAT(text(), HasSubstr("rungs: 18 came to step 10, 6 went on; 6 came to step 30, 2 went "
                                "on; 16 are paused"));
  const auto results = read_file(folder_ / "halving" / "results.json");
  EXPECT_THAT(results, HasSubstr("\"rung_asks\""));
}

TEST_F(FidelityRunTest, OfFewCandidatesTheBestIsTrainedToTheEndAndTestedAgain) {
  int runs = 0;
  const auto few = [&](int candidates, const Words& more) {
    const auto number = std::to_string(candidates);
    Words words{"algorithm={name: random_search, in_flight: 2, population: " + number +
                    ", evaluations: " + number + "}",
                "training.steps=40",
                "training.checkpoints=[10, 20]",
                "fidelity.rungs=[10, 20]",
                "fidelity.eta=4",
                "retest.replicates=2"};
    words.insert(words.end(), more.begin(), more.end());
    return search("training", std::to_string(++runs), words);
  };
  for (const Words& objectives : {Words{}, Words{"objectives=[perplexity]"}}) {
    ASSERT_TRUE(ran("nas-run", few(1, objectives)));
    const auto results = results_of(folder_ / std::to_string(runs));
    EXPECT_FALSE(results["ranking"].empty());
    EXPECT_GE(results["retest"]["candidates"].size(), 2U) << "and the baseline";
    EXPECT_TRUE(results["warnings"].empty() ||
                !results["warnings"][0].get<std::string>().starts_with("The search has nothing"));
  }
  const std::pair<const char*, const char*> nothing[] = {
      {"constraints=[perplexity <= 1]",
       "of 6 asks none came to a result, 3 rejected by constraints"},
      {"training.learning_rate=1e30", "of 3 asks none came to a result, 3 failed"}};
  for (const auto& [setting, why] : nothing) {
    EXPECT_EQ(run("nas-run", few(3, {setting, "objectives=[perplexity]"})), 3) << text();
    expect_text("there is nothing to re-test. The search has nothing to return: ");
    expect_text(why);
    EXPECT_FALSE(results_of(folder_ / std::to_string(runs))["warnings"].empty());
    auto again = few(3, {setting, "objectives=[perplexity]", "retest.replicates=0"});
    EXPECT_EQ(run("nas-run", again), 0) << "nothing was to be tested again";
    expect_text("The search has nothing to return");
  }
}

TEST_F(FidelityRunTest, ATableAnswersFromItsCurves) {
  ASSERT_TRUE(ran("nas-run", search("table", "a")));
  EXPECT_THAT(text(), HasSubstr("rungs: 10 came to step "));
  ASSERT_TRUE(ran("nas-run", search("table", "b")));
  EXPECT_EQ(canonical_export(folder_ / "a"), canonical_export(folder_ / "b"));
  const auto found = results_of(folder_ / "a");
  std::int64_t most = 0;
  for (const auto* asks : {"asks", "rung_asks"}) {
    for (const auto& ask : found[asks]) {
      const auto begun = ask["trained"].get<std::int64_t>();
      EXPECT_LE(begun, ask["number"].get<std::int64_t>() + 1);
      most = std::max(most, begun);
    }
  }
  EXPECT_EQ(most, found["counts"]["evaluated"]) << "what is paused counts";
  ASSERT_EQ(run("nas-run", search("table", "a")), 0) << "once more: " << text();
  EXPECT_EQ(canonical_export(folder_ / "a"), canonical_export(folder_ / "b"));
}

TEST_F(FidelityRunTest, FurtherSeedsAndHyperbandAndPashaRun) {
  ASSERT_TRUE(ran("nas-run", search("table", "seeds", {"evaluation.replicates=3"})));
  EXPECT_THAT(text(), HasSubstr("Values are means over n trainings"));
  const auto hyperband = {std::string("algorithm={name: random_search, population: 4, "
                                      "evaluations: 12, in_flight: 1}"),
                          std::string("fidelity.promote=hyperband")};
  ASSERT_TRUE(ran("nas-run", search("table", "hyperband", hyperband)));
  EXPECT_THAT(text(), HasSubstr("rungs: 1"));
  ASSERT_TRUE(ran("nas-run", search("table", "pasha", {"fidelity.promote=pasha"})));
  EXPECT_THAT(text(), HasSubstr("rungs: 1"));
}

/// Where rungs have ended before the end of training, what is best is trained to it whatever the
/// budget says: a larger one asks for others in its place.
TEST_F(FidelityRunTest, PashaGoesOnUnderALargerBudget) {
  const auto pasha = [this](const std::string& name, const std::string& budget) {
    return search("table", name, {"fidelity.promote=pasha", "fidelity.epsilon=[1e9, 1e9]", budget});
  };
  ASSERT_TRUE(ran("nas-run", pasha("grown", "budget.evaluations=5")));
  const auto small = canonical_export(folder_ / "grown");
  {
    const Store store(folder_ / "grown" / "store.sqlite", Store::Mode::read_only);
    ASSERT_TRUE(store.meta("answer_from").value_or(nullptr).is_number()) << "it has no such asks";
  }
  for (const auto* budget : {"budget.evaluations=8", "budget.evaluations=0"}) {
    ASSERT_EQ(run("nas-run", pasha("grown", budget)), 0) << budget << text();
  }
  ASSERT_TRUE(ran("nas-run", pasha("whole", "budget.evaluations=0")));
  EXPECT_EQ(canonical_export(folder_ / "grown"), canonical_export(folder_ / "whole"));
  EXPECT_EQ(run("nas-run", pasha("grown", "budget.evaluations=5")), 2) << text();
  EXPECT_EQ(canonical_export(folder_ / "grown"), canonical_export(folder_ / "whole"));
  ASSERT_TRUE(ran("nas-run", pasha("small", "budget.evaluations=5")));
  EXPECT_EQ(canonical_export(folder_ / "small"), small);
}

TEST_F(FidelityRunTest, ThePlanCountsTheStepsThatPruningLeaves) {
  auto words = search("training", "plan", {"evaluation.replicates=3"});
  words.push_back("--dry-run");
  ASSERT_TRUE(ran("nas-run", words));
  EXPECT_THAT(text(), HasSubstr("rungs         about "));
  EXPECT_THAT(text(), HasSubstr(" whole training runs; of those that come to the end the best are "
                                "trained with 3 seeds"));
}

TEST_F(FidelityRunTest, WhatRungsCannotCompareIsRefused) {
  refused("table", {"problem.mode=noisy"},
          "problem.mode = noisy, must be paired or mean with the section fidelity");
  refused("table", {"problem.mode=loud"}, "problem.mode = loud, must be one of ");
  EXPECT_EQ(text().find("with the section fidelity"), std::string::npos) << "one mistake";
  refused("table", {"fidelity.min=1000"},
          "fidelity.min = 1000, must be at most a validation step before the last one");
  refused("table", {"fidelity.min=0", "fidelity.rungs=[7]"},
          "fidelity.rungs = 7, must be validation steps before the last one");
}

}  // namespace
}  // namespace nas::testing
