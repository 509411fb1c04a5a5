#include "study/reader/rules.hpp"

#include <ostream>

#include "experiment_fixture.hpp"
#include "prelude.hpp"
#include "search/objective.hpp"
#include "search/problem.hpp"
#include "widths.hpp"

namespace nas {
namespace {

/// A configuration, and what is said of it: all of it where it begins with a place, else a part; nothing where it is right.
struct Case {
  std::string text;
  std::string said;
  Texts overrides{};
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.text; }

/// A problem that trains nothing.
void add_problem(const std::string& key, const Texts& sections) {
  problems().add({.key = key,
                  .summary = "answers by formula",
                  .settings = {{.name = "mode",
                                .default_value = std::string("mean"),
                                .help = "of answers",
                                .choices = {"mean", "noisy"}}},
                  .file = __FILE__},
                 [sections] {
                   return ProblemKind{.sections = sections, .make = [](const ProblemInputs&) {
                                        return std::shared_ptr<Problem>();
                                      }};
                 });
}

[[maybe_unused]] const bool kRegistered = [] {
  add_problem("stand_in_function", {});
  add_problem("stand_in_table", {"baseline"});
  objectives().add(
      {.key = "stand_in_timing", .summary = "seconds", .file = __FILE__}, [](const Parameters&) {
        return Objective{.unit = "s", .measured = [](const Subject&) { return nlohmann::json(); }};
      });
  return true;
}();

const std::string kTwo = "objectives: [perplexity, flops]\n";
const std::string kAsha = "algorithm: {name: nsga2_async}\nobjectives: [perplexity, flops]\n";
const std::string kRungs = "fidelity: {rungs: [50, 150]}\n";
const std::string kHalving = "fidelity: {min: 9, promote: successive_halving}\n";
const std::string kAgeing = "algorithm: {name: regularized_evolution, in_flight: 4";
const std::string kLatency = "objectives: [perplexity, stand_in_timing]\n";

const std::vector<Case>& cases_of_sections() {
  static const std::vector<Case> kCases{
      {"model:\n  width: 50\n  heads: 4\n",
       "a.yaml:2:10: model.width = 50, must be a multiple of model.heads = 4"},
      {"", "model.width = 128, must be a multiple of model.heads = 3", {"model.heads=3"}},
      {"model:\n  width: wide\n  heads: 7\n",
       "a.yaml:2:10: model.width = wide, must be an integer, got text"},
      {"training: {steps: 10, warmup_steps: 11}\n",
       "a.yaml:1:37: training.warmup_steps = 11, must be <= training.steps = 10"},
      {"training: {steps: 10, warmup_steps: 10}\n", ""},
      {"training: {batch_size: 8, micro_batch: 9}\n",
       "training.micro_batch = 9, must be a part of training.batch_size = 8, or 0 for all at once"},
      {"training: {batch_size: 8, micro_batch: 8}\n", "training.micro_batch = 8, must be a part"},
      {"training: {batch_size: 8, micro_batch: 7}\n", ""},
      {"budget: {target: low}\n", "a.yaml:1:18: budget.target = low, must be a number or empty"},
      {kTwo + "budget: {target: 3}\n" + kAny,
       "a.yaml:2:18: budget.target = 3, must be empty where there are several objectives"},
      {"cluster: {engine: dask, command: x}\n",
       "a.yaml:1:34: cluster.command = [x], must be empty where cluster.engine is given"},
      {"cluster: {command: ['']}\n", "must begin with the name of a program"},
      {"cluster: {scheduler: here}\n",
       "cluster.scheduler = here, must be auto or an address: tls://host:port"},
      {"cluster: {listen: 1.2.3.4.5}\n",
       "cluster.listen = 1.2.3.4.5, must be auto, an address of IPv4 or IPv6, or the name of a "
       "machine"},
      {"cluster: {listen: '::1'}\n", ""},
      {"cluster: {engine: dask, device: mixed}\n" + kLatency + kAny,
       "a.yaml:1:33: cluster.device = mixed, must be one model for stand_in_timing, which another "
       "model has otherwise"},
      {"cluster: {engine: dask, grace: 0}\n", "cluster.grace = 0, must be > 0"},
      {"cluster: {silence: 0}\n", "cluster.silence = 0, must be > 0"},
      {"evaluation: {device: cud}\n",
       "a.yaml:1:22: evaluation.device = cud, must be one of auto, cpu, cuda, cuda:N, or several: "
       "cuda:0,cuda:1; did you mean cuda?"},
      {kAny + "objectives: [perplexity, peak_memory]\nevaluation: {array: 4}\n",
       "a.yaml:3:21: evaluation.array = 4, must be auto or 1 for peak_memory, which only a "
       "training "
       "run by itself has"},
      {kAny + "objectives: [perplexity, peak_memory]\nevaluation: {array: auto}\n", ""},
      {"constraints: [train_seconds <= 9]\nevaluation: {array: 4}\n",
       "a.yaml:2:21: evaluation.array = 4, must be auto or 1 for train_seconds, which only a "
       "training run by itself has"},
      {"constraints: [train_seconds <= 9]\nevaluation: {array: 1}\n", ""},
  };
  return kCases;
}

const std::vector<Case>& cases_of_replicates() {
  static const std::vector<Case> kCases{
      {"objectives: [perplexity, seed_sd]\n" + kAny,
       "a.yaml:1:1: evaluation.replicates = 1, must be at least 2 for the objective seed_sd"},
      {"objectives: [perplexity, seed_sd]\nevaluation: {replicates: 3}\n" + kAny, ""},
      {"constraints: [divergence_rate <= 0.4]\n",
       "must be at least 2 for the constraint divergence_rate <= 0.4"},
      {"constraints: [divergence_rate <= 0.4]\nevaluation: {replicates: 2}\n", ""},
      {"constraints: [divergence_rate <= 0.4]\nevaluation: {replicates: 2}\nretest: {replicates: "
       "1}\n",
       "retest.replicates = 1, must be at least 2 for the constraint divergence_rate <= 0.4"},
      {"retest: {replicates: 20, until: 0.03}\n",
       "a.yaml:1:33: retest.until = 0.03, must be 0 unless mechanisms are listed"},
      {"mechanisms: 2*mqa\nretest: {replicates: 0}\n",
       "a.yaml:2:22: retest.replicates = 0, must be at least 1 where mechanisms are listed"},
      {"retest: {replicates: -1, top: 0, confidence: 1}\n",
       "a.yaml:1:22: retest.replicates = -1, must be in [0, 10000]\n"
       "a.yaml:1:31: retest.top = 0, must be in [1, 1e+06]\n"
       "a.yaml:1:46: retest.confidence = 1, must be in (0, 1)"},
      {"problem: stand_in_function\nmechanisms: 2*mqa\n",
       "a.yaml:2:13: mechanisms: must be left out: the problem stand_in_function trains nothing"},
      {"evaluation: {replicates: 2, racing_replicates: 5, racing_elites: 1}\n" + kAny, ""},
      {"evaluation:\n  replicates: 3\n  racing_replicates: 3\n" + kAny,
       "a.yaml:3:22: evaluation.racing_replicates = 3, must be more than evaluation.replicates = "
       "3, "
       "or 0 for no racing"},
      {"evaluation:\n  replicates: 3\n  racing_replicates: 2\n" + kAny,
       "a.yaml:3:22: evaluation.racing_replicates = 2, must be more than evaluation.replicates = "
       "3, "
       "or 0 for no racing"},
      {"evaluation: {racing_replicates: 5, repeated: retrain}\n" + kAny,
       "a.yaml:1:46: evaluation.repeated = retrain, must be reuse where "
       "evaluation.racing_replicates = 5: races decide what is evaluated again"},
      {"evaluation: {racing_replicates: 5, repeated: replicate}\n" + kAny,
       "evaluation.repeated = replicate, must be reuse where"},
      {"evaluation: {replicates: 3, racing_replicates: 5}\nobjectives: [perplexity, seed_sd]\n" +
           kAny,
       "a.yaml:1:48: evaluation.racing_replicates = 5, must be 0 for the objective seed_sd, of "
       "which a single replicate has no value"},
      {"evaluation: {racing_confidence: 1}\n" + kAny,
       "a.yaml:1:33: evaluation.racing_confidence = 1, must be in (0, 1)"},
      {"evaluation: {racing_elites: 0}\n" + kAny,
       "a.yaml:1:29: evaluation.racing_elites = 0, must be >= 1"},
  };
  return kCases;
}

const std::vector<Case>& cases_of_rungs() {
  static const std::vector<Case> kCases{
      {"mechanisms: 2*mqa\nfidelity: {min: 9}\n",
       "a.yaml:2:11: fidelity: must be left out where mechanisms are listed: all are trained"},
      {kAsha + "fidelity: {rungs: [50], min: 20}\n",
       "a.yaml:3:30: fidelity.min = 20, must be 0 where fidelity.rungs is given"},
      {kAsha + "fidelity: {eta: 3}\n",
       "fidelity.min = 0, must be at least 1 where fidelity.rungs is empty"},
      {kAsha + "fidelity: {min: 20, eta: 1}\n", "fidelity.eta = 1, must be 0 or more than 1"},
      {kAsha + "fidelity: {rungs: [50, 50]}\n", "fidelity.rungs = [50, 50], must ascend"},
      {kAsha + "fidelity: {rungz: [5]}\n", "did you mean rungs?"},
      {kAsha + kRungs + "evaluation: {repeated: retrain}\n",
       "evaluation.repeated = retrain, must be reuse with the section fidelity"},
      {kAsha + kRungs + "evaluation: {replicates: 2, racing_replicates: 4}\n",
       "evaluation.replicates = 2, must be 1 with the section fidelity and "
       "evaluation.racing_replicates: races decide what is trained with further seeds"},
      {kAsha + kRungs + "evaluation: {replicates: 3}\n", ""},
      {kAsha + kRungs + "training: {early_stop_after: 9}\n",
       "training.early_stop_after = 9, must be 0 with the section fidelity: rungs decide what is "
       "trained on"},
      {"algorithm: nsga2_async\nobjectives: [perplexity, seed_sd]\nevaluation: {replicates: 2}\n" +
           kRungs,
       "fidelity: must be left out for seed_sd, of which a single replicate has no value"},
      {"problem: {type: stand_in_function, mode: noisy}\nalgorithm: nsga2_async\n" + kRungs,
       "problem.mode = noisy, must be paired or mean with the section fidelity: rungs compare "
       "equal "
       "seeds"},
      {"algorithm: random_search\n" + kHalving, ""},
      {"algorithm: random_search\nevaluation: {racing_replicates: 5}\n" + kHalving, ""},
      {"algorithm: random_search\nfidelity: {min: 9, promote: hyperband}\n", ""},
      {"algorithm: random_search\n" + kRungs,
       "fidelity.promote = asha, must be successive_halving or hyperband unless "
       "algorithm.in_flight > 1: candidates go on while others are out"},
      {kAsha + kHalving,
       "fidelity.promote = successive_halving, must be asha or pasha with algorithm.in_flight: "
       "nothing waits for a batch"},
      {"algorithm: motpe\n" + kHalving,
       "must be asha, with algorithm.in_flight > 1, where candidates are asked for one at a time: "
       "a batch of one has no best candidate"},
      {kAsha + "fidelity: {min: 9, promote: pasha, epsilon: [0.1, 0]}\n", ""},
      {kAsha + "fidelity: {min: 9, promote: pasha, epsilon: [0.1]}\n",
       "fidelity.epsilon = [0.1], must be empty or have a number for each objective"},
      {kLatency + "algorithm: nsga2\n" + kHalving,
       "fidelity: must be left out for stand_in_timing, which is measured while nothing is "
       "trained"},
  };
  return kCases;
}

const std::vector<Case>& cases_of_searches() {
  static const std::vector<Case> kCases{
      {kAgeing + "}\n", ""},
      {kAgeing + ", order: arrival}\nevaluation: {replicates: 2}\n", ""},
      {kAgeing + "}\nevaluation: {racing_replicates: 5}\n",
       "a.yaml:1:53: algorithm.in_flight = 4, must be 1 where evaluation.racing_replicates = 5: a "
       "race is between candidates of a batch"},
      {"algorithm: {name: regularized_evolution}\nevaluation: {racing_replicates: 5}\n", ""},
      {kAgeing + ", batch: 2}\n",
       "a.yaml:1:63: algorithm.batch = 2, must be 1 where algorithm.in_flight > 1: nothing waits "
       "for a batch"},
      {kLatency + "algorithm: {name: nsga2_async}\n",
       "a.yaml:2:12: algorithm.in_flight = 16, must be 1 for stand_in_timing, which is measured "
       "while nothing is trained"},
      {"algorithm: {name: nsga2_async, in_flight: 1}\nobjectives: [perplexity, "
       "flops]\nevaluation: {racing_replicates: 5}\n",
       "evaluation.racing_replicates = 5, must be 0 with nsga2_async, which asks without batches: "
       "a "
       "race is between candidates of one"},
      {"algorithm: {name: local_search, in_flight: 4}\n", "in_flight"},
      {"problem: stand_in_function\nalgorithm: {name: random_search, informed: x}\n",
       "algorithm.informed = [x], must be empty: the problem stand_in_function searches no "
       "mechanisms"},
      {"algorithm: {informed_share: 0.5}\n",
       "a.yaml:1:29: algorithm.informed_share = 0.5, must be 0 where algorithm.informed names no "
       "mechanism"},
      {"algorithm: {informed: [\"dot|softmax|none|fixed|bias|0.1\"]}\n",
       "algorithm.informed_share = 0, must be greater than 0 where algorithm.informed names "
       "mechanisms: the share of the initial population that these are"},
      {kTwo + "algorithm: {name: cmaes, decomposition: bi, weights: [1]}\n",
       "algorithm.weights = [1], must be 2 numbers >= 0, one per objective, not all 0"},
      {"algorithm: {name: cmaes, decomposition: bi}\n",
       "algorithm.decomposition = bi, must be none for one objective"},
      {kTwo + "algorithm: {name: nsga2, decomposition: bi}\n",
       "algorithm.decomposition = bi, must be none: nsga2 needs several objectives"},
      {kTwo + "algorithm: {name: nsga2, weights: [1, 2]}\n",
       "algorithm.weights = [1, 2], must be empty where algorithm.decomposition is none"},
      {kTwo + "algorithm: {name: evo_ga}\n",
       "algorithm.name = evo_ga, minimises one objective, the experiment has 2; set "
       "algorithm.decomposition, or take one of "},
      {"algorithm: {name: nsga2}\n",
       "algorithm.name = nsga2, minimises two objectives or more, the experiment has 1; n"},
  };
  return kCases;
}

/// What algorithms refuse of themselves.
const std::vector<Case>& cases_of_algorithms() {
  static const std::vector<Case> kCases{
      {kTwo + "algorithm: {name: moead, scale: 1.5}\n", "algorithm.scale = 1.5, must be in [0, 1]"},
      {"algorithm: {name: evo_ga, elite: 12}\n",
       "algorithm.elite = 12, must be less than algorithm.population = 12"},
      {"algorithm: {name: evo_ga, elite: 12, generations: 1}\n", ""},
      {kTwo + "algorithm: {name: nsga2_async, evaluations: 2}\n",
       "algorithm.evaluations = 2, must be at least algorithm.population = 4"},
      {kTwo + "algorithm: {name: nsga2, population: 10}\n",
       "a.yaml:2:38: algorithm.population = 10, must be at least 8 and a multiple of 4 for nsga2"},
      {kTwo + "algorithm: {name: nsga2, population: 4}\n",
       "a.yaml:2:38: algorithm.population = 4, must be at least 8 and a multiple of 4 for nsga2"},
      {"algorithm: {population: 4, parents: 5}\n",
       "a.yaml:1:37: algorithm.parents = 5, must be at most algorithm.population = 4"},
      {kTwo + "algorithm: {name: moead, neighbours: 12}\n",
       "a.yaml:2:38: algorithm.neighbours = 12, must be in [2, 11], at most algorithm.population - "
       "1"},
      {"objectives: [perplexity, flops, parameters]\nalgorithm: {name: moead, weight_generation: "
       "grid}\n",
       "a.yaml:2:45: algorithm.weight_generation = grid, must be another, or algorithm.population "
       "10 or 15: a grid of 3 objectives has so many weights"},
  };
  return kCases;
}

/// The same for several values.
std::vector<Case> cases_of_values() {
  std::vector<Case> cases;
  for (const std::string key : {"workers", "array"}) {
    const auto given = [&key](const std::string& count) {
      return "evaluation: {" + key + ": " + count + "}\n";
    };
    for (const std::string count : {"auto", "16"}) cases.push_back({given(count), ""});
    for (const std::string count : {"0", "-1", "1.5", "many", "10000", "''"}) {
      cases.push_back({given(count), "a.yaml:1:" + std::to_string(16 + key.size()) +
                                         ": evaluation." + key + " = " +
                                         (count == "''" ? "" : count) +
                                         ", must be auto or an integer in [1, 9999]"});
    }
  }
  const auto device = [](const std::string& given) {
    return "evaluation: {device: '" + given + "'}\n";
  };
  for (const std::string given :
       {"auto", "cpu", "cuda", "cuda:0", "cuda:12", "cuda:1,cuda:0", "cpu,cpu"}) {
    cases.push_back({device(given), ""});
  }
  for (const std::string given : {"cuda:0,cpu", "auto,auto", "cpu,auto"}) {
    cases.push_back({device(given), "a.yaml:1:22: evaluation.device = " + given +
                                        ", must be devices of one kind, as cuda:0,cuda:1: results "
                                        "differ between kinds"});
  }
  for (const std::string given :
       {"cuda:", "cuda:x", "cpu:0", "gpu", "", "cpu,", "cuda:0, cuda:1"}) {
    cases.push_back({device(given), "evaluation.device = " + given + ", must be one of auto"});
  }
  for (const auto& [key, bound] : std::vector<std::pair<std::string, std::string>>{
           {"model.layers", "[1, 4096]"},
           {"evaluation.threads", "[1, 9999]"},
           {"evaluation.replicates", "[1, 10000]"},
           {"evaluation.racing_replicates", "[0, 10000]"},
           {"evaluation.retry_lost", "[0, 1e+06]"},
           {"retest.replicates", "[0, 10000]"}}) {
    for (const std::string count : {"1000000000", "4294967297"}) {
      cases.push_back({"seed: 1\n",
                       "command line: " + key + " = " + count + ", must be in " + bound,
                       {key + "=" + count}});
    }
  }
  for (const std::string name :
       {"random_search", "local_search", "regularized_evolution", "motpe"}) {
    const auto given = "algorithm: {name: " + name + ", evaluations: 5";
    cases.push_back({given + ", population: 6}\n",
                     "algorithm.evaluations = 5, must be at least algorithm.population = 6"});
    cases.push_back({given + "}\n", ""});  // is fitted
  }
  return cases;
}

std::vector<Case> all_cases() {
  auto all = cases_of_values();
  for (const auto& cases : {cases_of_sections(), cases_of_replicates(), cases_of_rungs(),
                            cases_of_searches(), cases_of_algorithms()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

class Rules : public ExperimentTest, public ::testing::WithParamInterface<Case> {};

INSTANTIATE_TEST_SUITE_P(, Rules, ::testing::ValuesIn(all_cases()));

TEST_P(Rules, SayWhereWhatWasGivenAndWhatIsAllowed) {
  const auto& [text, said, overrides] = GetParam();
  const bool whole = said.empty() || said.starts_with("a.yaml:") || said.starts_with("command ");
  if (whole) {
    EXPECT_EQ(mistakes(text, overrides), said) << text;
  } else {
    EXPECT_THAT(mistakes(text, overrides), HasSubstr(said)) << text;
  }
}

/// What a rule says without what it fills in.
Texts pieces_of(std::string_view text) {
  Texts pieces;
  while (!text.empty()) {
    const auto open = std::min(text.find('{'), text.size());
    pieces.emplace_back(text.substr(0, open));
    text.remove_prefix(std::min(text.find('}', open), text.size() - 1) + 1);
  }
  return pieces;
}

class RuleTable : public ExperimentTest {
 protected:
  static std::size_t number_of(RuleStage stage) {
    return static_cast<std::size_t>(std::count_if(
        rules().begin(), rules().end(), [stage](const auto& rule) { return rule.stage == stage; }));
  }
  static Texts said(RuleStage stage, const RuleFacts& facts) {
    Texts texts;
    for (const auto& breach : breaches(stage, facts)) texts.push_back(breach.text());
    return texts;
  }
};

TEST_F(RuleTable, HasWhatAComparisonRefuses) {
  auto experiment = load(kAgeing + ", order: arrival}\n");
  experiment.evaluation.set("racing_replicates", Integer{5});
  experiment.budget.set("evaluations", Integer{0});
  experiment.budget.set("seconds", 60.0);
  experiment.budget.set("gpu_seconds", 60.0);
  const std::string limits =
      "must be 0: a comparison limits evaluations, asks, train_seconds and train_steps";
  const Texts all{
      "problem.type = attention_search, must be tabular: a comparison trains nothing",
      "algorithms.order = arrival, must be virtual in a comparison: a table's answers take no time",
      "evaluation.racing_replicates = 5, must be 0 in a comparison: a table answers without races",
      "budget.evaluations = 0, must be at least 1: the training runs of a search",
      "budget.seconds = 60, " + limits,
      "budget.gpu_seconds = 60, " + limits};
  EXPECT_EQ(said(RuleStage::comparison, {.experiment = experiment}), all);
  EXPECT_EQ(all.size(), number_of(RuleStage::comparison));
}

TEST_F(RuleTable, HasWhatAProblemRefusesOnceItIsMade) {
  auto experiment = load("problem: stand_in_function\n" + kAny);
  experiment.retest.set("replicates", Integer{2});
  experiment.budget.set("gpu_seconds", 60.0);
  experiment.budget.set("train_steps", Integer{60});
  experiment.budget.set("train_seconds", 60.0);
  struct TrainsNothing : testing::Widths {
    [[nodiscard]] bool expensive() const override { return false; }
  };
  const TrainsNothing trains_nothing;
  const std::string problem = "the problem stand_in_function";
  const Texts all{"retest.replicates = 2, must be 0: " + problem + " trains nothing",
                  "budget.gpu_seconds = 60, must be 0 on the device cpu: it spends none",
                  "budget.train_steps = 60, must be 0 for " + problem + ": it takes none",
                  "budget.train_seconds = 60, must be 0 for " + problem + ": it takes none"};
  EXPECT_EQ(said(RuleStage::set_up, {.experiment = experiment, .problem = &trains_nothing}), all);
  EXPECT_EQ(all.size(), number_of(RuleStage::set_up));
}

TEST_F(RuleTable, EachRuleOfAConfigurationHasACase) {
  const auto cases = all_cases();
  for (const auto& rule : rules()) {
    if (rule.stage != RuleStage::configuration && rule.stage != RuleStage::algorithm) continue;
    const auto pieces = pieces_of(rule.must);
    const auto is_said = [&](const Case& one) {
      return std::all_of(pieces.begin(), pieces.end(), [&one](const auto& piece) {
        return one.said.find(piece) != std::string::npos;
      });
    };
    EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), is_said)) << rule.setting << rule.must;
  }
}

TEST_F(RuleTable, SaysWhatHasNoEffectBesideAnother) {
  EXPECT_EQ(load("cluster: {device: lsh}\ntraining: {early_stop_factor: 3}\n").notes,
            (std::vector<std::string>{
                "training.early_stop_factor = 3 has no effect where training.early_stop_after is 0",
                "cluster.device = lsh has no effect where cluster.engine is not given"}));
  EXPECT_TRUE(load("cluster: {device: lsh, command: x}\n").notes.empty());
}

TEST_F(RuleTable, DescribesWhatASettingMustBe) {
  EXPECT_THAT(rules_of("model.width"), ElementsAre("must be a multiple of model.heads"));
  EXPECT_THAT(rules_of("evaluation.repeated"),
              ::testing::Contains("must be reuse where evaluation.racing_replicates: races decide "
                                  "what is evaluated again"));
  EXPECT_TRUE(rules_of("evaluation.threads").empty());
}

}  // namespace
}  // namespace nas
