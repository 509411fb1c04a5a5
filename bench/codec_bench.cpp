// What one candidate costs before it is trained or found in the store: decision vector -> genotype
// -> canonical name.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "genotype/mechanism.hpp"
#include "genotype/mechanism_name.hpp"
#include "genotype/search_space.hpp"
#include "genotype/semantics.hpp"
#include "genotype/slots.hpp"

namespace nas {

namespace {

constexpr auto kSemantics = Semantics::corrected;

/// The paper's space: 4 * 4 * 4 * 3 labels with and without bias, 384 mechanisms, 320 functions.
constexpr std::int64_t kNumMechanisms = 384;
constexpr std::size_t kNumFunctions = 320;

SearchSpace options_of_paper() {
  std::vector<Gene> genes;
  for (const auto* slot : paper_slots()) {
    if (!slot->is_number()) genes.push_back(searched(*slot));
  }
  return SearchSpace(genes);
}

/// Every decision vector of a space without real genes, the last gene fastest.
std::vector<std::vector<double>> all_decision_vectors(const SearchSpace& space) {
  std::vector<std::vector<double>> vectors{{}};
  for (const auto& gene : space.genes()) {
    std::vector<std::vector<double>> longer;
    for (const auto& vector : vectors) {
      for (std::size_t option = 0; option < gene.options.size(); ++option) {
        longer.push_back(vector);
        longer.back().push_back(static_cast<double>(option));
      }
    }
    vectors = std::move(longer);
  }
  return vectors;
}

/// The space with all its points in both forms, built once.
struct Candidates {
  SearchSpace space = options_of_paper();
  std::vector<std::vector<double>> vectors = all_decision_vectors(space);
  std::vector<Genotype> genotypes;
  std::vector<Mechanism> mechanisms;

  Candidates() {
    for (const auto& vector : vectors) genotypes.push_back(space.decode(vector));
    for (const auto& genotype : genotypes) mechanisms.push_back(mechanism_of(genotype, kSemantics));
  }
};

const Candidates& candidates() {
  static const Candidates instance;
  return instance;
}

void decode(benchmark::State& state) {
  const auto& [space, vectors, genotypes, mechanisms] = candidates();
  if (space.num_combinations() != kNumMechanisms ||
      std::set<std::vector<double>>(vectors.begin(), vectors.end()).size() != kNumMechanisms) {
    state.SkipWithError("the paper's space must have 384 mechanisms");
    return;
  }
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(space.decode(vectors[i++ % vectors.size()]));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(decode);

void encode(benchmark::State& state) {
  const auto& [space, vectors, genotypes, mechanisms] = candidates();
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    if (space.encode(genotypes[i]) != vectors[i]) {
      state.SkipWithError("encode must be the inverse of decode");
      return;
    }
  }
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(space.encode(genotypes[i++ % genotypes.size()]));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(encode);

void canonical_name(benchmark::State& state) {
  const auto& mechanisms = candidates().mechanisms;
  std::set<std::string> names;
  for (const auto& each : mechanisms) names.insert(to_string(canonical(each, kSemantics)));
  if (names.size() != kNumFunctions) {
    state.SkipWithError("the paper's mechanisms must be 320 functions");
    return;
  }
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(to_string(canonical(mechanisms[i++ % mechanisms.size()], kSemantics)));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(canonical_name);

}  // namespace

}  // namespace nas
