#include "study/reader/comparison.hpp"

#include "config_fixture.hpp"
#include "paper_components.hpp"
#include "prelude.hpp"
#include "search/problem.hpp"

namespace nas {
namespace {

/// Stands in for the problem that looks into a table.
const bool kRegistered =
    problems().contains("tabular") ||
    problems().add(
        {.key = "tabular",
         .summary = "looked up",
         .settings = {{.name = "mode", .default_value = std::string("noisy"), .help = "how"}}},
        [] {
          return ProblemKind{
              .sections = {"space"},
              .make = [](const ProblemInputs&) -> std::shared_ptr<Problem> { return nullptr; }};
        });

class ComparisonTest : public ConfigTest {
 protected:
  Comparison load(const std::string& text, const Texts& overrides = {}) const {
    return load_comparison(write("a.yaml", text), overrides);
  }
  std::string mistakes(const std::string& text) const {
    return error_of([&] { (void)load(text); });
  }
  const std::string head_ = "problem: tabular\nobjectives: [perplexity]\n";
  const std::string budget_ = "budget: {evaluations: 30}\n";
};

TEST_F(ComparisonTest, EachAlgorithmIsAnExperimentOfItsOwn) {
  const auto comparison = load(head_ + budget_ +
                               "seed: 7\n"
                               "seeds: 20\n"
                               "evaluation: {replicates: 2}\n"
                               "algorithms:\n"
                               "  - random_search\n"
                               "  - {name: evo_ga, label: paper, seeds: 5, population: 14,\n"
                               "     evaluation: {repeated: retrain}}\n"
                               "  - {name: cmaes, seeds: 50}\n");
  ASSERT_EQ(comparison.contenders.size(), 3U);
  const auto& random = comparison.contenders[0];
  EXPECT_EQ(random.name, "random_search");
  EXPECT_EQ(random.seeds, 20);
  EXPECT_EQ(random.experiment.algorithm, "random_search");
  EXPECT_EQ(random.experiment.seed, 7U);
  const auto& paper = comparison.contenders[1];
  EXPECT_EQ(paper.name, "paper");
  EXPECT_EQ(paper.seeds, 5);
  EXPECT_EQ(paper.experiment.population, 14);
  EXPECT_EQ(paper.experiment.evaluation.get<std::string>("repeated"), "retrain");
  EXPECT_EQ(paper.experiment.evaluation.get<Integer>("replicates"), 2);
  EXPECT_EQ(paper.record().key, "evo_ga");
  EXPECT_EQ(paper.record().settings.at("evaluation"),
            (nlohmann::json{{"repeated", "retrain"}, {"replicates", 2}}));
  EXPECT_EQ(paper.record().settings.at("population"), 14);
  const auto& cmaes = comparison.contenders[2];
  EXPECT_EQ(cmaes.seeds, 20);  // its own number is the most that it runs
  EXPECT_GE(cmaes.record().settings.at("population").get<Integer>(), 5);  // fitted
  EXPECT_EQ(cmaes.experiment.evaluation.get<std::string>("repeated"), "reuse");
}

TEST_F(ComparisonTest, ASearchMayReportTheBestAnswerThatItGot) {
  const auto algorithms = "algorithms: [random_search, {name: evo_ga, belief: best_answer}]\n";
  const auto comparison = load(head_ + budget_ + algorithms);
  EXPECT_FALSE(comparison.contenders[0].record().settings.contains("belief"));
  EXPECT_EQ(comparison.contenders[1].record().settings.at("belief"), "best_answer");
  EXPECT_THAT(mistakes("problem: tabular\nobjectives: [perplexity, accuracy]\n" + budget_ +
                       "algorithms: [{name: random_search, belief: best_answer}]\n"),
              HasSubstr("algorithms.belief = best_answer, must be record with several objectives"));
  EXPECT_THAT(mistakes(head_ + budget_ + "algorithms: [{name: evo_ga, belief: luck}]\n"),
              HasSubstr("belief = luck, must be one of record, best_answer"));
}

TEST_F(ComparisonTest, AnAlgorithmMayTrainByRungs) {
  const auto head = "problem: {type: tabular, mode: paired}\nobjectives: [perplexity]\n" + budget_;
  const auto comparison =
      load(head +
           "algorithms: [random_search, {name: random_search, label: asha, in_flight: 4,\n"
           "  fidelity: {rungs: [50, 150]}}]\n");
  EXPECT_FALSE(comparison.contenders[0].experiment.fidelity);
  const auto record = comparison.contenders[1].record();
  EXPECT_EQ(record.settings.at("fidelity").at("rungs"), nlohmann::json({50, 150}));
  EXPECT_FALSE(comparison.resolved().contains("fidelity"));
  EXPECT_THAT(mistakes(head + "fidelity: {rungs: [50]}\nalgorithms: [local_search]\n"),
              HasSubstr("fidelity: must be given with items of algorithms"));
}

TEST_F(ComparisonTest, AsksAreLimitedUnlessTheBudgetSaysHow) {
  const auto asks = [this](const std::string& budget) {
    return load(head_ + budget + "algorithms: [random_search]\n")
        .common()
        .budget.get<Integer>("asks");
  };
  EXPECT_EQ(asks(budget_), 50 * 30);
  EXPECT_EQ(asks("budget: {evaluations: 30, asks: 100}\n"), 100);
}

TEST_F(ComparisonTest, OverridesReachEveryAlgorithm) {
  const auto comparison = load(head_ + budget_ + "algorithms: [random_search, evo_ga]\n",
                               {"budget.evaluations=9", "seeds=3"});
  for (const auto& contender : comparison.contenders) {
    EXPECT_EQ(contender.experiment.budget.get<Integer>("evaluations"), 9);
    EXPECT_EQ(contender.seeds, 3);
  }
}

TEST_F(ComparisonTest, DrawsOfTheTableMayAnswer) {
  const auto text = budget_ + "objectives: [perplexity]\nalgorithms: [random_search]\n";
  EXPECT_EQ(load("problem: tabular\n" + text).draws, 0);
  const auto comparison = load("problem: tabular\ndraws: 200\n" + text);
  EXPECT_EQ(comparison.draws, 200);
  EXPECT_FALSE(comparison.resolved().contains("draws")) << "as before there were any";
  EXPECT_THAT(
      mistakes("problem: {type: tabular, mode: paired}\ndraws: 200\n" + text),
      HasSubstr("a.yaml:2:8: draws = 200, must be 0 where problem.mode = paired: only under "
                "noisy are replicates drawn for each mechanism"));
  EXPECT_THAT(mistakes("problem: tabular\ndraws: -1\n" + text),
              HasSubstr("a.yaml:2:8: draws = -1, must be in [0, 1e+06]"));
}

TEST_F(ComparisonTest, AllMistakesAreReportedTogetherAndOnce) {
  const auto text = mistakes(
      "problem: tabular\n"
      "objectives: [perplexity, nothing]\n"
      "seeds: 0\n"
      "budget: {evaluations: 30}\n"
      "algorithms:\n"
      "  - {name: evo_ga, mutation: 2}\n"
      "  - {name: evo_ga, elite: 20}\n"
      "  - {name: unknown_search}\n"
      "  - [evo_ga]\n"
      "  - {name: local_search, evaluation: {device: cpu}}\n"
      "  - {name: motpe, in_flight: 4, order: arrival}\n");
  EXPECT_THAT(text, HasSubstr("a.yaml:11:5: algorithms.order = arrival, must be virtual in a "
                              "comparison: a table's answers take no time"));
  EXPECT_EQ(text.find("nothing"), text.rfind("nothing"));
  EXPECT_THAT(text, HasSubstr("a.yaml:3:8: seeds = 0, must be in [1, 1e+06]"));
  EXPECT_THAT(text, HasSubstr("a.yaml:6:30: algorithm.mutation = 2, must be in [0, 1]"));
  EXPECT_THAT(text, HasSubstr("a.yaml:7:5: algorithms.label = evo_ga, must be another one"));
  EXPECT_THAT(text, HasSubstr("unknown_search"));
  EXPECT_THAT(text, HasSubstr("a.yaml:9:5: algorithms = [evo_ga], must be names of algorithms, or "
                              "maps of settings"));
  EXPECT_THAT(text, HasSubstr("a.yaml:10:39: algorithms.evaluation.device: unknown key"));
}

TEST_F(ComparisonTest, NoAlgorithmHasTheNameOfAnother) {
  for (const auto& key : algorithms().keys()) {
    for (const auto& label : algorithms().keys()) {
      const auto text =
          mistakes(head_ + budget_ + "algorithms: [{name: " + key + ", label: " + label + "}]\n");
      EXPECT_EQ(text.find("algorithms.label = " + label +
                          ", must be another one: it is the name") != std::string::npos,
                key != label)
          << text;
    }
  }
  for (const std::string label : {"a,b", "a\\tb", "a\\nb"}) {
    EXPECT_THAT(
        mistakes(head_ + budget_ + "algorithms: [{name: evo_ga, label: \"" + label + "\"}]\n"),
        HasSubstr("must have no comma"));
  }
}

TEST_F(ComparisonTest, AnAlgorithmMustTakeTheObjectives) {
  const auto text = mistakes(
      "problem: tabular\n"
      "objectives: [perplexity, accuracy]\n" +
      budget_ +
      "algorithms:\n"
      "  - evo_ga\n"
      "  - {name: local_search, decomposition: weighted}\n"
      "  - nsga2\n");
  EXPECT_THAT(text, HasSubstr("a.yaml:5:5: algorithm.name = evo_ga, minimises one objective, the "
                              "experiment has 2; set algorithm.decomposition"));
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

TEST_F(ComparisonTest, WhatIsMissingIsSaid) {
  EXPECT_THAT(mistakes(head_ + budget_),
              HasSubstr("a.yaml:1:1: algorithms: is missing, must be a list of algorithms; nas-run "
                        "searches with one"));
  EXPECT_THAT(mistakes(head_ + budget_ + "algorithms: []\n"),
              HasSubstr("algorithms: is missing, must be a list"));
  EXPECT_THAT(mistakes(head_ + budget_ + "algorithms: [local_search]\nalgorithm: local_search\n"),
              HasSubstr("algorithm: must be an item of algorithms"));
  EXPECT_THAT(
      mistakes(head_ + "algorithms: [local_search]\n"),
      HasSubstr("budget.evaluations = 0, must be at least 1: the training runs of a search"));
  EXPECT_THAT(
      mistakes(head_ + "algorithms: [local_search]\nbudget: {evaluations: 9, seconds: 60}\n"),
      HasSubstr("budget.seconds = 60, must be 0: a comparison limits evaluations, asks, "
                "train_seconds and train_steps"));
  EXPECT_THAT(mistakes("problem: none\n" + budget_ + "algorithms: [local_search]\n"),
              HasSubstr("problem.type = none, must be tabular: a comparison trains nothing"));
}

TEST_F(ComparisonTest, WhatTheUserGaveIsNotBlamedOnAnotherFile) {
  write("base.yaml", "semantics: corrected\n" + head_ + "budget: {evaluations: 3, seconds: 60}\n");
  EXPECT_EQ(mistakes("extends: base.yaml\nalgorithm: local_search\n"),
            "a.yaml:1:1: algorithms: is missing, must be a list of algorithms; nas-run searches "
            "with one");
  EXPECT_EQ(
      error_of([this] {
        (void)load("extends: base.yaml\nproblem: tabular\nalgorithms: [local_search]\n",
                   {"budget.evaluations=0"});
      }),
      "a.yaml:2:10: problem.type = tabular, must be one that takes semantics, which "
      "base.yaml:1:12 has\n"
      "base.yaml:4:35: budget.seconds = 60, must be 0: a comparison limits evaluations, asks, "
      "train_seconds and train_steps\n"
      "command line: budget.evaluations = 0, must be at least 1: the training runs of a "
      "search");
}

TEST_F(ComparisonTest, SomeContendersCanBeChosen) {
  auto comparison = load(head_ + budget_ + "algorithms: [random_search, evo_ga, local_search]\n");
  EXPECT_EQ(
      error_of([&] { keep_contenders(comparison, {"evo_gb"}); }),
      "command line: --algorithms = evo_gb, must be among random_search, evo_ga, local_search; did "
      "you mean evo_ga?");
  keep_contenders(comparison, {"local_search", "random_search"});
  Texts names;
  for (const auto& contender : comparison.contenders) names.push_back(contender.name);
  EXPECT_THAT(names, ElementsAre("random_search", "local_search"));
}

TEST_F(ComparisonTest, AKeyChoosesAllOfItsAlgorithm) {
  const auto kept = [this](const Texts& wanted) {
    auto comparison = load(head_ + budget_ +
                           "algorithms: [{name: evo_ga, label: evo_ga (paper)}, local_search, "
                           "{name: evo_ga, label: evo_ga (own)}]\n");
    keep_contenders(comparison, wanted);
    Texts names;
    for (const auto& contender : comparison.contenders) names.push_back(contender.name);
    return names;
  };
  EXPECT_THAT(kept({"evo_ga"}), ElementsAre("evo_ga (paper)", "evo_ga (own)"));
  EXPECT_THAT(kept({"evo_ga (own)", "local_search"}), ElementsAre("local_search", "evo_ga (own)"));
}

}  // namespace
}  // namespace nas
