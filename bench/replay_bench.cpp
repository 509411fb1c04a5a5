// What an ask of NSGA-II costs where a table in memory answers it, and the limit: pagmo's NSGA-II
// alone, on a problem of the same size whose fitness is a sum.

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <pagmo/algorithms/nsga2.hpp>
#include <pagmo/bfe.hpp>
#include <pagmo/population.hpp>
#include <pagmo/problem.hpp>

#include "genotype/semantics.hpp"
#include "genotype/slots.hpp"
#include "search/search.hpp"
#include "table/table_evaluator.hpp"
#include "unit/small_study.hpp"

namespace nas {

namespace {

constexpr std::uint32_t kSeed = 42;
constexpr unsigned kGenerations = 500;

/// The paper's mechanisms at attention dropout 0.
SearchSpace space_of_keys() {
  std::vector<Gene> genes;
  for (const auto* slot : paper_slots()) {
    auto& gene = genes.emplace_back(searched(*slot));
    gene.max = 0.0;
    if (!slot->is_component()) continue;
    for (auto& option : gene.options) {
      option = component_key(Semantics::corrected, gene.name, option);
    }
  }
  return SearchSpace(std::move(genes));
}

/// All functions of the space with made-up training runs: perplexity and parameters.
StudyTable study_table() {
  const auto space = space_of_keys();
  std::set<std::string> names;
  RandomEngine random(1);
  while (names.size() < 320) names.insert(testing::small_name(space.draw(random)));
  std::vector<Evaluation> cells;
  for (const auto& name : names) {
    for (std::int64_t replicate = 0; replicate < 12; ++replicate) {
      cells.push_back(testing::small_evaluation(name, replicate));
    }
  }
  return testing::small_study(ReplayMode::noisy, true, testing::small_table(cells), space);
}

pagmo::algorithm nsga2() {
  pagmo::nsga2 algorithm(kGenerations - 1, 0.9, 10.0, 0.2, 50.0, kSeed);
  algorithm.set_bfe(pagmo::bfe());
  return pagmo::algorithm(std::move(algorithm));
}

void count_asks(benchmark::State& state, std::int64_t population) {
  state.counters["asks/s"] = benchmark::Counter(static_cast<double>(population * kGenerations),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

/// Searches through the table, as nas-compare does.
void table(benchmark::State& state) {
  static const auto kTable = study_table();
  const auto population = state.range(0);
  const auto search = [population](const std::shared_ptr<TableEvaluator>& evaluator) {
    return run_search(kTable.space(), evaluator, kTable.objectives(), nsga2(),
                      {.population = population,
                       .seed = kSeed,
                       .indicator_interval = std::numeric_limits<std::int64_t>::max()});
  };
  const auto checked = std::make_shared<TableEvaluator>(kTable, kSeed, TableEvaluator::Options{});
  const auto result = search(checked);
  const auto trajectory = checked->take_trajectory();
  if (trajectory.candidates.size() != static_cast<std::size_t>(population * kGenerations) ||
      result.archive.size() != static_cast<std::size_t>(trajectory.trained.back())) {
    state.SkipWithError("the search must ask for all generations, and train each candidate once");
    return;
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        search(std::make_shared<TableEvaluator>(kTable, kSeed, TableEvaluator::Options{})));
  }
  count_asks(state, population);
}
BENCHMARK(table)->Arg(12)->Arg(40)->Arg(100)->Unit(benchmark::kMillisecond);

/// As many genes and options, and two objectives that contradict each other.
struct Sum {
  static constexpr std::size_t kGenes = 5;

  [[nodiscard]] std::vector<double> fitness(const std::vector<double>& x) const {
    return batch_fitness(x);
  }
  [[nodiscard]] std::vector<double> batch_fitness(const std::vector<double>& xs) const {
    std::vector<double> fitness;
    for (std::size_t i = 0; i < xs.size(); i += kGenes) {
      double sum = 0.0;
      for (std::size_t gene = 0; gene < kGenes; ++gene) sum += xs[i + gene];
      fitness.insert(fitness.end(), {sum, 12.0 - sum + 0.1 * xs[i]});
    }
    return fitness;
  }
  [[nodiscard]] std::pair<std::vector<double>, std::vector<double>> get_bounds() const {
    return space_of_keys().bounds();
  }
  [[nodiscard]] std::size_t get_nobj() const { return 2; }
  [[nodiscard]] std::size_t get_nix() const { return kGenes; }
  template <class Archive>
  void serialize(Archive& /*archive*/, unsigned /*version*/) {}
};

void pagmo_alone(benchmark::State& state) {
  const auto size = static_cast<pagmo::population::size_type>(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(nsga2().evolve(pagmo::population(pagmo::problem(Sum()), size, kSeed)));
  }
  count_asks(state, state.range(0));
}
BENCHMARK(pagmo_alone)->Arg(12)->Arg(40)->Arg(100)->Unit(benchmark::kMillisecond);

}  // namespace

}  // namespace nas
