#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "evaluation/recording_evaluator.hpp"
#include "evaluation/settings.hpp"
#include "genotype/costs.hpp"
#include "paper_components.hpp"
#include "prelude.hpp"
#include "search/algorithm.hpp"
#include "search/problem.hpp"
#include "search/search.hpp"
#include "small_table.hpp"
#include "study/reader/experiment.hpp"
#include "study/session/ranges.hpp"
#include "table/answer.hpp"
#include "table/replay.hpp"

namespace nas {
namespace {

using ::testing::Each;

/// The plug-in that measures latency links Torch; none may be asked to measure here.
[[maybe_unused]] const bool latency_registered = objectives().add(
    {.key = "latency",
     .summary = "time of a forward pass",
     .settings = {{.name = "device", .default_value = std::string("cpu"), .help = "where"}},
     .file = __FILE__},
    [](const Parameters&) {
      return Objective{.unit = "ms",
                       .measured = [](const Subject&) -> nlohmann::json {
                         throw std::logic_error("a table measures nothing");
                       },
                       .range =
                           [](const nlohmann::json&) {
                             return std::optional<Range>({.best = 0.0, .worst = 4.0});
                           }};
    });

ChosenObjective chosen(const std::string& key) {
  const auto& entry = objectives().at(key);
  ChosenObjective objective{.name = key,
                            .key = key,
                            .settings = Parameters(entry.description.settings),
                            .objective = entry.make(Parameters(entry.description.settings))};
  objective.maximise = objective.objective.maximise;
  objective.range =
      objective.maximise ? Range{.best = 1.0, .worst = 0.0} : Range{.best = 0.0, .worst = 60.0};
  return objective;
}

ObjectiveSet chosen_objectives(const Texts& keys) {
  ObjectiveSet set;
  for (const auto& key : keys) set.objectives.push_back(chosen(key));
  return set;
}

class TabularTest : public ::testing::Test {
 protected:
  TabularTest() { write(testing::small_cells()); }

  void write(std::vector<Evaluation> cells) const {
    write_table(testing::small_content(std::move(cells)), file_);
  }
  [[nodiscard]] Parameters settings(const std::string& mode, Integer step) const {
    auto settings = Parameters(problems().at("tabular").description.settings);
    settings.set("table", file_.string());
    settings.set("mode", mode);
    settings.set("step", step);
    return settings;
  }
  std::shared_ptr<Problem> make(const std::string& mode = "noisy", Integer step = 0,
                                std::uint64_t seed = 42) const {
    ProblemInputs inputs;
    inputs.seed = seed;
    inputs.settings = settings(mode, step);
    inputs.evaluation = Parameters(evaluation_settings());
    inputs.objectives = &objectives_;
    return kind().make(inputs);
  }
  static ProblemKind kind() { return problems().at("tabular").make(); }
  [[nodiscard]] SearchSpace space() const { return kind().space(settings("noisy", 0)); }

  /// The n-th answer of a problem to a question for a candidate.
  static Evaluation ask(Problem& problem, const std::string& candidate, Integer n,
                        Integer until = 0) {
    const Task task{.candidate = problem.parse(candidate),
                    .replicate = n,
                    .id = "",
                    .identity = {},
                    .until = until};
    Evaluation evaluation;
    evaluation.candidate = candidate;
    evaluation.measured = nlohmann::json::object();
    evaluation.status = Status::ok;
    problem.screen(task, evaluation);
    if (evaluation.status == Status::ok) problem.measure(task, evaluation);
    return evaluation;
  }
  [[nodiscard]] std::string refusal(const std::string& mode = "noisy", Integer step = 0) const {
    return message_of<InputError>([&] { (void)make(mode, step); });
  }
  /// A genotype of labels: similarity|normalization|gating|temperature|bias.
  static Genotype genotype(const Texts& options) {
    const Texts genes{"similarity", "normalization", "gating", "temperature", "bias"};
    std::vector<std::pair<std::string, GeneValue>> values;
    for (std::size_t i = 0; i < genes.size(); ++i) values.emplace_back(genes[i], options[i]);
    return Genotype(std::move(values));
  }

  TemporaryFolder folder_;
  fs::path file_ = folder_.path() / "small.table";
  ObjectiveSet objectives_ = chosen_objectives({"perplexity"});
};

const std::string kDot = "dot|softmax|none|fixed|bias|0";

TEST_F(TabularTest, TheSpaceIsTheTablesInThePapersLabels) {
  const auto space = this->space();
  EXPECT_EQ(space.gene("similarity").options, (Texts{"dot", "additive"}));
  EXPECT_EQ(space.gene("normalization").options, (Texts{"softmax", "relu_norm"}));
  EXPECT_EQ(space.gene("gating").options, Texts{"none"});
  EXPECT_EQ(space.gene("temperature").options, (Texts{"fixed", "learned"}));
  EXPECT_EQ(space.gene("bias").options, (Texts{"bias", "no_bias"}));
  EXPECT_EQ(space.genes().size(), 5U);
  EXPECT_EQ(kind().semantics(settings("noisy", 0)), Semantics::corrected);
}

TEST_F(TabularTest, EveryCombinationIsAFunctionOfTheTable) {
  const auto problem = make();
  const Table table(file_);
  std::set<std::string> functions;
  RandomEngine random(3);
  for (int i = 0; i < 200; ++i) functions.insert(problem->canonical(space().draw(random)).name);
  EXPECT_EQ(functions.size(), 12U);
  for (const auto& function : functions) EXPECT_TRUE(table.find(function)) << function;
}

TEST_F(TabularTest, NamesAreTakenWithoutDropout) {
  const auto problem = make();
  EXPECT_EQ(problem->parse("dot|softmax|none|fixed|bias|0.1").name, kDot);
  EXPECT_EQ(problem->label(kDot), kDot);
}

TEST_F(TabularTest, AnswersAreTheRecordedTrainingRuns) {
  const auto problem = make("noisy", 0, 7);
  const Table table(file_);
  const Replay replay(table, ReplayMode::noisy, 7);
  const auto mechanism = *table.find(kDot);
  for (Integer n = 0; n < 4; ++n) {
    const auto recorded = table.evaluation(mechanism, replay.replicate(mechanism, n));
    const auto answer = ask(*problem, kDot, n);
    EXPECT_EQ(answer.status, Status::ok);
    EXPECT_EQ(objectives_.judge(Objective::Evaluations{std::array{&answer}}).fitness,
              objectives_.judge(Objective::Evaluations{std::array{&recorded}}).fitness);
    EXPECT_EQ(answer.measured.at("train_seconds"), recorded.measured.at("cpu_seconds"));
    EXPECT_EQ(answer.values.at("parameters"), 1000.0);
  }
}

TEST_F(TabularTest, NothingOfTheTestSplitReachesTheSearch) {
  const auto problem = make();
  for (const auto& [name, value] : ask(*problem, kDot, 0).values) {
    EXPECT_FALSE(name.starts_with("test_")) << name;
  }
}

TEST_F(TabularTest, AnEarlierStepIsCheaperAndWorse) {
  const auto early = ask(*make("paired", 10), kDot, 0);
  const auto whole = ask(*make("paired", 40), kDot, 0);
  EXPECT_EQ(early.curve.size(), 1U);
  EXPECT_GT(early.values.at("perplexity"), whole.values.at("perplexity"));
  EXPECT_LT(early.measured.at("train_seconds").get<double>(),
            0.5 * whole.measured.at("train_seconds").get<double>());
  EXPECT_NE(make("paired", 10)->identity(), make("paired", 40)->identity());
  EXPECT_EQ(make("paired", 0)->identity(), make("paired", 40)->identity());
  EXPECT_EQ(refusal("noisy", 15), "problem.step = 15, must be one of 0, 10, 20, 40");
}

TEST_F(TabularTest, RungsAreAnsweredFromTheCurves) {
  objectives_ = chosen_objectives({"perplexity", "flops"});
  for (const auto* mode : {"paired", "mean"}) {
    const auto whole = make(mode);
    EXPECT_EQ(whole->rungs(), (std::vector<Integer>{10, 20, 40}));
    EXPECT_EQ(make(mode, 20)->rungs(), (std::vector<Integer>{10, 20}));
    for (const Integer rung : {10, 20}) {
      auto short_run = ask(*make(mode, rung), kDot, 0);
      short_run.status = Status::paused;
      const auto answer = ask(*whole, kDot, 0, rung);
      EXPECT_EQ(canonical_json(answer), canonical_json(short_run)) << mode << rung;
      EXPECT_EQ(answer.measured, short_run.measured);
      EXPECT_EQ(answer.values.at("flops"), ask(*whole, kDot, 0).values.at("flops"));
    }
    EXPECT_EQ(ask(*whole, kDot, 0, 40).status, Status::ok);
  }
}

/// What the mode `mean` answers, what several replicates answer together, and what ground truth is made of: one mean.
TEST_F(TabularTest, TheMeanOfAnObjectiveIsOneEverywhere) {
  auto cells = testing::small_cells();
  for (auto& cell : cells) {  // of the test split, the validation split's scores
    set_test_values(cell, cell.curve.back().valid);
  }
  write(cells);
  objectives_ = chosen_objectives({"perplexity", "published_perplexity", "accuracy"});
  const auto answer = ask(*make("mean"), kDot, 0);
  const auto mean = objectives_.judge(std::vector<const Evaluation*>{&answer}).fitness;
  std::vector<Evaluation> replicates;
  for (Integer n = 0; n < 3; ++n) replicates.push_back(ask(*make("noisy"), kDot, n));
  const auto together =
      objectives_
          .judge(std::vector<const Evaluation*>{&replicates[0], &replicates[1], &replicates[2]})
          .fitness;
  const auto truth = make("noisy")->truth().values.at(kDot);
  for (std::size_t i = 0; i < mean.size(); ++i) {
    EXPECT_NEAR(mean[i], together[i], 1e-12);
    EXPECT_NEAR(mean[i], truth[i], 1e-12);
  }
}

TEST_F(TabularTest, IdentityIsAllThatDecidesAnAnswer) {
  const auto identity = make()->identity();
  EXPECT_EQ(identity, (nlohmann::json{{"problem", "tabular"},
                                      {"table", Table(file_).sha256()},
                                      {"mode", "noisy"},
                                      {"step", 40},
                                      {"search_seed", 42}}));
  EXPECT_NE(make("paired")->identity(), identity);
  EXPECT_NE(make("noisy", 0, 43)->identity(), identity);
}

TEST_F(TabularTest, AnalyticAndMeasuredObjectivesAreAnsweredWithoutMeasuring) {
  objectives_ = chosen_objectives({"perplexity", "non_embedding_parameters", "latency"});
  const auto problem = make();
  const auto answer = ask(*problem, "additive|softmax|none|fixed|bias|0", 0);
  EXPECT_EQ(
      answer.values.at("non_embedding_parameters"),
      static_cast<double>(num_non_embedding_parameters(
          problem->subject(problem->parse("additive|softmax|none|fixed|bias|0"))->architecture)));
  EXPECT_EQ(answer.measured.at("latency").at("value"), 2.1);
  const auto architecture = problem->subject(problem->parse(kDot))->architecture;
  EXPECT_EQ(architecture.width, 16);
  EXPECT_EQ(architecture.vocabulary, 50);
  EXPECT_EQ(architecture.layers, 1);
}

TEST_F(TabularTest, ModelsMatchInParametersWhereTheTablesDo) {
  auto content = testing::small_content();
  content.identity["model"]["match_parameters"] = true;
  write_table(content, file_);
  const std::string additive = "additive|softmax|none|fixed|bias|0";
  const auto problem = make();
  const auto architecture = problem->subject(problem->parse(additive))->architecture;
  EXPECT_EQ(architecture.hidden, matched_hidden(architecture));
  EXPECT_LT(architecture.hidden, 32) << "additive scores have parameters of their own";
  EXPECT_EQ(problem->subject(problem->parse(kDot))->architecture.hidden, 32);

  content.identity["model"]["feed_forward"] = 1;
  write_table(content, file_);
  EXPECT_THAT(make()->parse("additive|softmax|highway|fixed|bias|0").refusal,
              HasSubstr("narrower than half of width = 16"));
}

TEST_F(TabularTest, ObjectivesThatWereNotMeasuredAreRefused) {
  auto cells = testing::small_cells();
  for (auto& cell : cells) {
    cell.measured["energy"] = {{"value", 1.0}};
    cell.measured.erase("latency");
  }
  objectives_ = chosen_objectives({"perplexity", "latency"});
  write(cells);
  EXPECT_EQ(refusal(), "objectives: latency was not measured for this table, measured: energy");
  for (auto& cell : cells) cell.measured.erase("energy");
  write(cells);
  EXPECT_THAT(refusal(), HasSubstr("measured: nothing"));
  write(testing::small_cells());
  objectives_.objectives[1].settings.set("device", std::string("cuda"));
  EXPECT_EQ(refusal(),
            "objectives.latency.device = \"cuda\", must be \"cpu\", as measured for this table");
}

TEST_F(TabularTest, WhatWasMeasuredIsTakenForNoOtherObjective) {
  auto cells = testing::small_cells();
  for (auto& cell : cells) {
    cell.measured["speed"] = {{"value", 1.0}, {"objective", "decode_latency"}};
  }
  objectives_ = chosen_objectives({"perplexity", "latency"});
  objectives_.objectives[1].name = "speed";
  write(cells);
  EXPECT_EQ(refusal(), "objectives: speed of this table is decode_latency, must not be latency");
  for (auto& cell : cells) cell.measured["speed"]["objective"] = "latency";
  write(cells);
  EXPECT_EQ(ask(*make(), kDot, 0).measured.at("speed").at("value"), 1.0);
}

TEST_F(TabularTest, WhatAMechanismLacksIsSaid) {
  auto cells = testing::small_cells();
  cells.erase(cells.begin(), cells.begin() + 3);  // all of the first mechanism
  const auto gone = testing::small_mechanisms().front();
  cells.erase(cells.begin() + 1);  // and a replicate of the second
  const auto torn = testing::small_mechanisms()[1];
  for (auto& cell : cells) {
    if (cell.candidate == kDot) cell.measured.erase("latency");
  }
  write(cells);
  EXPECT_THAT([&] { (void)ask(*make(), gone, 0); },
              ::testing::ThrowsMessage<InputError>("the table has no " + gone));
  int failed = 0;
  for (Integer n = 0; n < 3; ++n) {
    try {
      (void)ask(*make(), torn, n);
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()), "the table has no replicate 1 of " + torn);
      ++failed;
    }
  }
  EXPECT_EQ(failed, 1);
  objectives_ = chosen_objectives({"perplexity", "latency"});
  EXPECT_THAT([&] { (void)ask(*make(), kDot, 0); },
              ::testing::ThrowsMessage<InputError>("the table has no latency of " + kDot));
}

TEST_F(TabularTest, FailedTrainingRunsAnswerAsRecorded) {
  auto cells = testing::small_cells();
  for (auto& cell : cells) {
    if (cell.candidate != kDot) continue;
    cell.status = Status::diverged;
    cell.reason = "validation loss is not finite at step 40";
    cell.curve[2].valid.nll = std::numeric_limits<double>::quiet_NaN();
  }
  write(cells);
  EXPECT_EQ(ask(*make(), kDot, 0).status, Status::diverged);
  EXPECT_EQ(ask(*make("mean"), kDot, 0).reason,
            "3 of 3 replicates failed, replicate 0 diverged: validation loss is not finite at step "
            "40");
  EXPECT_EQ(ask(*make("noisy", 20), kDot, 0).status, Status::ok);
}

TEST_F(TabularTest, ConstraintsReject) {
  objectives_.constraints.push_back(
      {.quantity = chosen("parameters"), .at_most = true, .bound = 1.0});
  const auto answer = ask(*make(), kDot, 0);
  EXPECT_EQ(answer.status, Status::rejected);
  EXPECT_THAT(answer.reason, HasSubstr("must be <= 1"));
  EXPECT_EQ(make()->truth().values.at(kDot).at(0), objectives_.failure().front());
}

TEST_F(TabularTest, TruthIsTheMeanOnTheTestSplit) {
  objectives_ = chosen_objectives({"perplexity", "parameters", "latency"});
  const auto problem = make("noisy", 10);
  const auto truth = problem->truth().values;
  EXPECT_EQ(truth.size(), 12U);
  double perplexity = 0.0;
  for (Integer r = 0; r < 3; ++r) {
    perplexity += testing::small_evaluation(kDot, r).values.at("test_perplexity") / 3.0;
  }
  EXPECT_NEAR(truth.at(kDot).at(0), perplexity, 1e-9);
  EXPECT_EQ(
      truth.at(kDot).at(1),
      static_cast<double>(num_parameters(problem->subject(problem->parse(kDot))->architecture)));
  EXPECT_EQ(truth.at(kDot).at(2), 1.1);
}

TEST_F(TabularTest, TruthOfEveryScoreIsOfTheTestSplit) {
  auto cells = testing::small_cells();
  for (auto& cell : cells) cell = testing::fully_tested(cell);
  auto content = testing::small_content(cells);
  content.facts["test_bytes_per_token"] = 4.0;
  write_table(content, file_);
  objectives_ = chosen_objectives({"accuracy", "published_perplexity", "bits_per_byte", "seed_sd",
                                   "divergence_rate", "train_seconds", "parameters"});
  const auto truth = make()->truth();
  EXPECT_EQ(truth.splits, (std::map<std::string, std::string>{{"accuracy", "test"},
                                                              {"published_perplexity", "test"},
                                                              {"bits_per_byte", "test"},
                                                              {"seed_sd", "test"}}))
      << "the others have no split";
  double accuracy = 0.0;
  double published = 0.0;
  double bits = 0.0;
  for (const auto& cell : cells) {
    if (cell.candidate != kDot) continue;
    const auto test = test_scores(cell);
    accuracy += test.accuracy() / 3.0;
    published += test.published_perplexity() / 3.0;
    bits += std::log2(test.perplexity()) / 4.0 / 3.0;
  }
  EXPECT_NEAR(truth.values.at(kDot).at(0), -accuracy, 1e-12);
  EXPECT_NEAR(truth.values.at(kDot).at(1), published, 1e-9);
  EXPECT_NEAR(truth.values.at(kDot).at(2), bits, 1e-12);
}

TEST_F(TabularTest, TruthThatTheTableLacksIsTheValidationSplitsAndSaysSo) {
  objectives_ = chosen_objectives({"perplexity", "accuracy"});
  const auto truth = make()->truth();
  EXPECT_EQ(truth.splits, (std::map<std::string, std::string>{{"perplexity", "test"},
                                                              {"accuracy", "validation"}}));
  double accuracy = 0.0;
  for (Integer r = 0; r < 3; ++r) {
    accuracy += testing::small_evaluation(kDot, r).curve.back().valid.accuracy() / 3.0;
  }
  EXPECT_NEAR(truth.values.at(kDot).at(1), -accuracy, 1e-12);
  auto cells = testing::small_cells();
  cells[7].values.erase("test_nll");
  write(cells);
  EXPECT_EQ(make()->truth().splits.at("perplexity"), "validation")
      << "one training without it, and no two splits may be ranked together";
}

/// By the means over replicates: single trainings are lucky.
TEST_F(TabularTest, WhatBreaksAConstraintOnTrainedQuantitiesIsNoTruth) {
  auto cells = testing::small_cells();
  for (auto& cell : cells) cell = testing::fully_tested(cell);
  write(cells);
  std::map<std::string, double> accuracies;
  std::vector<double> sorted;
  for (const auto& cell : cells) {
    accuracies[cell.candidate] += test_scores(cell).accuracy() / 3.0;
  }
  for (const auto& [name, accuracy] : accuracies) sorted.push_back(accuracy);
  std::sort(sorted.begin(), sorted.end());
  const double bound = (sorted[5] + sorted[6]) / 2.0;
  objectives_.constraints.push_back(
      {.quantity = chosen("accuracy"), .at_most = true, .bound = bound});
  const auto truth = make()->truth();
  EXPECT_EQ(truth.splits.at("accuracy"), "test");
  for (const auto& [name, accuracy] : accuracies) {
    EXPECT_EQ(truth.values.at(name) == objectives_.failure(), accuracy > bound) << name;
  }
}

TEST_F(TabularTest, AConstraintOnWhatTheTestSplitLacksIsJudgedOnTheValidationSplit) {
  std::map<std::string, double> accuracies;
  for (const auto& cell : testing::small_cells()) {
    accuracies[cell.candidate] += cell.curve.back().valid.accuracy() / 3.0;
  }
  const double bound = accuracies.at(kDot);
  objectives_.constraints.push_back(
      {.quantity = chosen("accuracy"), .at_most = true, .bound = bound + 1e-9});
  const auto truth = make()->truth();
  EXPECT_EQ(truth.splits, (std::map<std::string, std::string>{{"perplexity", "test"},
                                                              {"accuracy", "validation"}}));
  std::size_t rejected = 0;
  for (const auto& [name, accuracy] : accuracies) {
    const bool breaks = truth.values.at(name) == objectives_.failure();
    EXPECT_EQ(breaks, accuracy > bound + 1e-9) << name;
    rejected += breaks ? 1 : 0;
  }
  EXPECT_GT(rejected, 0U);
  EXPECT_LT(rejected, accuracies.size());
}

TEST_F(TabularTest, UnknownWordsOfATableRefuseBitsPerByte) {
  objectives_ = chosen_objectives({"bits_per_byte"});
  const auto problem = make();
  EXPECT_THAT([&] { set_expected_ranges(objectives_, {}, *problem, problem->facts()); },
              ::testing::ThrowsMessage<InputError>(
                  HasSubstr("objectives: bits_per_byte is unavailable: 1 % of the validation "
                            "targets are <unk> (10)")));
}

TEST_F(TabularTest, FactsAreThoseOfTheTrainingRuns) {
  const auto facts = make()->facts();
  EXPECT_EQ(facts.at("unigram_perplexity"), 40.0);
  EXPECT_EQ(facts.at("device"), "cpu");
  EXPECT_EQ(facts.at("table").at("name"), "small");
  EXPECT_EQ(facts.at("table").at("mode"), "noisy");
}

/// Searches on the table as a configuration has them, recorded in a store.
class TabularSearchTest : public TabularTest {
 protected:
  struct Outcome {
    std::vector<Ask> asks;
    std::vector<Evaluation> evaluations;
    std::string spent;
  };

  /// A configuration of a search on the table.
  [[nodiscard]] Experiment load(const std::string& text) const {
    folder_.write("a.yaml", "problem: {type: tabular, table: " + file_.string() + "}\n" + text);
    return load_experiment(folder_.path() / "a.yaml", {});
  }

  Outcome search(const std::string& text, RecordingEvaluator::Options options = {}) {
    const auto experiment = load(text);
    for (std::size_t i = 0; i < experiment.objectives.objectives.size(); ++i) {
      objectives_.objectives.resize(i + 1);
      objectives_.objectives[i] = chosen(experiment.objectives.objectives[i].key);
    }
    const auto folder = folder_.path() / std::to_string(runs_++);
    fs::create_directories(folder);
    Store store(folder / "store.sqlite", Store::Mode::write_cheap);
    const auto evaluator = std::make_shared<RecordingEvaluator>(
        make("noisy", 0, experiment.seed), store,
        [this](Objective::Evaluations evaluations) { return objectives_.judge(evaluations); },
        std::move(options));
    const auto algorithm = algorithms().at(experiment.algorithm).make();
    run_search(experiment.space, evaluator, objectives_,
               algorithm.make(experiment.algorithm_settings, experiment.search_facts, 5),
               {.population = experiment.population, .seed = 5, .encoding = algorithm.encoding});
    return {store.asks(), store.evaluations(), evaluator->spent()};
  }

  int runs_ = 0;
};

TEST_F(TabularSearchTest, SeveralAlgorithmsFindWhatIsBest) {
  for (const std::string algorithm :
       {"evo_ga", "random_search", "regularized_evolution", "local_search", "exhaustive"}) {
    const auto outcome = search("algorithm: " + algorithm + "\n", {.budget = {.asks = 60}});
    ASSERT_FALSE(outcome.asks.empty()) << algorithm;
    const auto best = std::min_element(
        outcome.asks.begin(), outcome.asks.end(),
        [](const Ask& a, const Ask& b) { return a.fitness.front() < b.fitness.front(); });
    EXPECT_THAT(best->genotype, StartsWith("dot|softmax|none|learned")) << algorithm;
    for (const auto& evaluation : outcome.evaluations) {
      EXPECT_EQ(evaluation.status, Status::ok) << evaluation.reason;
    }
  }
}

TEST_F(TabularSearchTest, EqualFunctionsShareTheirReplicates) {
  Store store(folder_.path() / "store.sqlite", Store::Mode::write_cheap);
  RecordingEvaluator evaluator(
      make(), store,
      [this](Objective::Evaluations evaluations) { return objectives_.judge(evaluations); },
      {.repeated = Repeated::retrain});
  // relu_norm voids the temperature: one function asked for by two names.
  const auto answers = evaluator.ask({genotype({"dot", "relu_norm", "none", "fixed", "bias"}),
                                      genotype({"dot", "relu_norm", "none", "learned", "bias"}),
                                      genotype({"dot", "relu_norm", "none", "learned", "bias"}),
                                      genotype({"dot", "relu_norm", "none", "fixed", "bias"})});
  std::set<double> values;
  for (const auto& answer : answers) {
    EXPECT_EQ(answer.candidate, "dot|relu_norm|none|fixed|bias|0");
    values.insert(answer.fitness.front());
  }
  EXPECT_EQ(values.size(), 3U) << "without replacement";
  EXPECT_EQ(answers[3].fitness, answers[0].fitness) << "and then from the beginning";
}

TEST_F(TabularSearchTest, TheBudgetOfTrainingSecondsIsRecordedTime) {
  // A training takes about 31 seconds of the processor's time.
  const auto outcome = search("algorithm: random_search\n", {.budget = {.train_seconds = 100.0}});
  EXPECT_EQ(outcome.evaluations.size(), 4U);
  EXPECT_EQ(outcome.spent, "1 min 40 s of training");
}

TEST_F(TabularSearchTest, MissingMechanismsFailAndTheSearchGoesOn) {
  auto cells = testing::small_cells();
  cells.erase(cells.begin(), cells.begin() + 3);
  write(cells);
  const auto gone = testing::small_mechanisms().front();
  const auto outcome = search("algorithm: exhaustive\n");
  EXPECT_EQ(outcome.evaluations.size(), 12U);
  int failed = 0;
  for (const auto& evaluation : outcome.evaluations) {
    if (evaluation.status == Status::ok) continue;
    EXPECT_EQ(evaluation.status, Status::failed);
    EXPECT_EQ(evaluation.reason, "the table has no " + gone);
    ++failed;
  }
  EXPECT_EQ(failed, 1);
}

TEST_F(TabularSearchTest, ConfigurationsAreChecked) {
  const auto mistakes = [this](const std::string& text) {
    try {
      (void)load(text);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string informed = "algorithm: {informed_share: 0.5, informed: [";
  EXPECT_EQ(mistakes(informed + "\"dot|relu_norm|none|fixed|bias|0\"]}\n"), "");
  EXPECT_THAT(mistakes(informed + "\"cosine|softmax|none|fixed|bias|0\"]}\n"),
              HasSubstr("similarity must be one of dot, additive, as the space is"));
  EXPECT_THAT(mistakes("space: {}\n"), HasSubstr("space: the problem tabular has none"));
  EXPECT_THAT(mistakes("semantics: corrected\n"), HasSubstr("the problem tabular has none"));
  EXPECT_EQ(load("").baseline, "dot|softmax|none|fixed|bias|0.1");
  fs::remove(file_);
  EXPECT_THAT(mistakes(""), HasSubstr("small.table, must be a table, there is none"));
}

TEST_F(TabularSearchTest, SemanticsAreTheTables) {
  auto content = testing::small_content();
  content.identity["semantics"] = "published";
  EXPECT_EQ(load("").semantics, Semantics::corrected);
  for (auto& cell : content.cells) {
    const auto fixed = cell.candidate.find("|fixed|");
    const auto learned = cell.candidate.find("|learned|");
    if (fixed != std::string::npos) cell.candidate.replace(fixed, 7, "|sqrt_d|");
    if (learned != std::string::npos) cell.candidate.replace(learned, 9, "|shifted_abs|");
  }
  write_table(content, file_);
  EXPECT_EQ(load("").semantics, Semantics::published);
  EXPECT_EQ(load("").space.gene("temperature").options, (Texts{"fixed", "learned"}));
}

}  // namespace
}  // namespace nas
