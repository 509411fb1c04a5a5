// What a search costs besides its training runs: the algorithm, the codec, canonical names, the
// store, progress and indicators.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include <benchmark/benchmark.h>

#include "bench/stand_in_training.hpp"
#include "cli/progress_display.hpp"
#include "core/temporary_folder.hpp"
#include "evaluation/recording_evaluator.hpp"
#include "genotype/mechanism_name.hpp"
#include "genotype/semantics.hpp"
#include "genotype/slots.hpp"
#include "search/algorithm.hpp"
#include "search/search.hpp"
#include "unit/paper_components.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

/// As in configs/quickstart.yaml.
constexpr Integer kAsks = 93;
constexpr Integer kPopulation = 12;
constexpr Integer kGenerations = 10;
constexpr std::uint32_t kSeed = 42;
constexpr auto kSemantics = Semantics::corrected;

/// The attention search, but for the training: a loss made from the candidate's letters stands in
/// for it, and another sum of them for its cost.
class StandInSearch final : public Measurement {
 public:
  [[nodiscard]] Candidate canonical(const Genotype& genotype) const override {
    return candidate_of(mechanism_of(genotype, kSemantics), kSemantics);
  }
  [[nodiscard]] nlohmann::json identity() const override { return stand_in_identity(); }
  void measure(const Task& task, Evaluation& evaluation) override {
    double letters = 0.0;
    for (const char letter : task.candidate.name) letters += static_cast<double>(letter % 17);
    stand_in_training(8e4 + 10.0 * letters, evaluation);
    evaluation.values["cost"] = 1e3 - static_cast<double>(task.candidate.name.size());
  }
};

ChosenObjective objective(const std::string& name, Range range) {
  return {.name = name,
          .key = name,
          .settings = {},
          .objective = {.unit = "1",
                        .trained = [name](const Evaluation& e) { return e.values.at(name); }},
          .range = range};
}

/// What a search needs that no ask costs.
struct Setup {
  explicit Setup(const std::string& algorithm_key, bool several) {
    objectives.objectives.push_back(objective("perplexity", {.best = 50, .worst = 120}));
    if (several) objectives.objectives.push_back(objective("cost", {.best = 900, .worst = 1000}));
    const auto& entry = algorithms().at(algorithm_key);
    const auto kind = entry.make();
    const SearchFacts facts{.num_genes = space.num_varying(),
                            .dimension = space.bounds(kind.encoding).first.size(),
                            .num_objectives = objectives.objectives.size(),
                            .num_combinations = space.num_combinations()};
    Parameters settings(entry.description.settings);
    settings.set("population", kPopulation);
    settings.set("generations", kGenerations);
    if (kind.fit) kind.fit(settings, facts);
    algorithm = kind.make(settings, facts, kSeed);
  }

  SearchSpace space = paper_space();
  ObjectiveSet objectives;
  pagmo::algorithm algorithm;
};

/// Runs a search as nas-run does, in a folder where no earlier one is.
SearchResult search(const Setup& setup, Store& store) {
  std::ostringstream terminal;
  ProgressDisplay display(terminal,
                          {.terminal = true,
                           .expected_asks = kAsks,
                           .several = setup.objectives.objectives.size() > 1,
                           .value = [](const Evaluation& e) { return e.values.at("perplexity"); },
                           .label = [](const std::string& candidate) { return candidate; }});
  const auto evaluator = std::make_shared<RecordingEvaluator>(
      std::make_shared<StandInSearch>(), store,
      [&setup](Objective::Evaluations e) { return setup.objectives.judge(e); },
      RecordingEvaluator::Options{
          .budget = {.asks = kAsks},
          .on_progress = [&display](const Progress& progress) { display.update(progress); }});
  return run_search(setup.space, evaluator, setup.objectives, setup.algorithm,
                    {.population = kPopulation,
                     .seed = kSeed,
                     .indicator_interval = kPopulation,
                     .on_indicator = [&](const Indicator& indicator) {
                       store.add_indicator(indicator);
                       display.indicator(indicator);
                     }});
}

/// @return what is wrong with a search; empty if nothing is.
std::string mistake(const Setup& setup) {
  const TemporaryFolder folder;
  Store store(folder.path() / "store.sqlite");
  const auto result = search(setup, store);
  const auto asks = store.asks();
  if (asks.size() != static_cast<std::size_t>(kAsks)) return "the search must ask for 93";
  std::set<std::string> ids;
  double best = std::numeric_limits<double>::infinity();
  for (const auto& ask : asks) {
    ids.insert(ask.evaluations.begin(), ask.evaluations.end());
    best = std::min(best, setup.objectives.scaled(ask.fitness).front());
  }
  const auto evaluations = store.evaluations();
  if (evaluations.size() != ids.size()) return "every evaluation must be stored once";
  for (const auto& evaluation : evaluations) {
    if (!ids.contains(evaluation.id)) return "what is stored must have been asked for";
  }
  double found = std::numeric_limits<double>::infinity();
  for (const auto& [candidate, point] : result.archive.front()) {
    found = std::min(found, point.front());
  }
  if (found != best) return "the archive must hold the best that was asked for";
  return store.indicators().empty() ? "progress must be recorded" : "";
}

/// From an empty folder to the last commit, the making of the store included.
void whole_search(benchmark::State& state, const std::string& algorithm, bool several) {
  const Setup setup(algorithm, several);
  if (const auto text = mistake(setup); !text.empty()) {
    state.SkipWithError(text.c_str());
    return;
  }
  for (auto _ : state) {
    state.PauseTiming();
    auto folder = std::make_unique<TemporaryFolder>();
    state.ResumeTiming();
    {
      Store store(folder->path() / "store.sqlite");
      benchmark::DoNotOptimize(search(setup, store));
    }
    state.PauseTiming();
    folder.reset();
    state.ResumeTiming();
  }
  state.counters["per_ask"] =
      benchmark::Counter(static_cast<double>(kAsks), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(whole_search, evo_ga, "evo_ga", false)
    ->UseRealTime()  // waiting for the disk is no processor time
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_search, nsga2, "nsga2", true)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

}  // namespace nas
