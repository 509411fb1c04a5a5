#include "algorithms/evo_ga.hpp"

#include <numeric>

#include <pagmo/algorithm.hpp>
#include <pagmo/problems/ackley.hpp>
#include <pagmo/problems/zdt.hpp>

#include "core/format.hpp"
#include "core/seed.hpp"
#include "recording_problem.hpp"

namespace nas {
namespace {

/// Genes of 4, 4, 4, 3 and 2 options and a real one.
RecordingProblem landscape() {
  return {.lower = Vector(6, 0),
          .upper = {0.3, 3, 3, 3, 2, 1},
          .num_integers = 5,
          .value = [](const Vector& x) {
            // Like the real one: a strong gene, an interaction, a weak real gene.
            double v = 100;
            v -= 3 * (x[3] == 2) + 2 * (x[2] == 1) * (x[1] < 2) + 1.0 * (x[1] == 0) + 0.5 * x[4];
            return Vector{v + 2 * std::abs(x[0] - 0.1)};
          }};
}

TEST(EvoGa, PapersSettingAsksFor93) {
  const auto problem = landscape();
  const auto end = EvoGa({}, 1).evolve(start(problem, 12));
  ASSERT_EQ(problem.batches->size(), 9U);
  for (const auto& batch : *problem.batches) EXPECT_EQ(batch.size(), 9U);
  EXPECT_EQ(end.size(), 12U);
  for (const auto& x : end.get_x()) {
    for (std::size_t gene = 1; gene < x.size(); ++gene) EXPECT_EQ(x[gene], std::round(x[gene]));
  }
}

TEST(EvoGa, ElitesSurviveWithTheirFitness) {
  const auto begin = start(landscape(), 12, 3);
  const auto end = EvoGa({.generations = 2}, 3).evolve(begin);
  auto best = begin.get_f();
  std::sort(best.begin(), best.end());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(end.get_f()[i], best[i]);
}

TEST(EvoGa, ParentsAreTheBestSixAndWithoutMutationChildrenAreMixturesOfThem) {
  const auto problem = landscape();
  const auto begin = start(problem, 40, 5);
  EvoGa({.generations = 2, .elite = 1, .mutation = 0}, 5).evolve(begin);
  std::vector<std::size_t> order(40);
  std::iota(order.begin(), order.end(), 0U);
  const auto f = begin.get_f();
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return f[a] < f[b]; });
  const auto x = begin.get_x();
  for (const auto& child : problem.batches->front()) {
    for (std::size_t gene = 0; gene < child.size(); ++gene) {
      bool inherited = false;
      for (std::size_t parent = 0; parent < 6; ++parent)
        inherited |= x[order[parent]][gene] == child[gene];
      EXPECT_TRUE(inherited) << "gene " << gene;
    }
  }
}

/// Fifty genes of one kind.
RecordingProblem fifty(double upper, bool integers) {
  return {.lower = Vector(50, 0),
          .upper = Vector(50, upper),
          .num_integers = integers ? 50U : 0U,
          .value = [](const Vector&) { return Vector{0}; }};
}

TEST(EvoGa, CrossoverAndMutationHappenAtTheirRates) {
  // Two kinds of parents, all zeros and all ones, in many binary genes: a child's genes tell what happened.
  constexpr unsigned size = 2001;
  auto population = start(fifty(1, true), 0);
  for (std::size_t i = 0; i < size; ++i)
    population.push_back(Vector(50, i % 2 == 0 ? 0.0 : 1.0), {0.0});
  EvoGa::Options how{.generations = 2, .elite = 1, .parents = size, .mutation = 0};
  int mixed = 0;
  const auto crossed = EvoGa(how, 1).evolve(population);
  for (const auto& x : crossed.get_x()) {
    const double ones = std::accumulate(x.begin(), x.end(), 0.0);
    mixed += ones > 0 && ones < 50 ? 1 : 0;
  }
  // Half of the pairs are of two kinds, and 70 % of those are crossed: 0.35, sd 0.011.
  EXPECT_NEAR(mixed / 2000.0, 0.35, 0.05);

  how.crossover = 0;
  how.mutation = 0.3;
  double changed = 0;
  const auto mutated = EvoGa(how, 2).evolve(population);
  for (std::size_t i = 1; i < size; ++i) {
    const auto x = mutated.get_x()[i];
    const double ones = std::accumulate(x.begin(), x.end(), 0.0);
    changed += std::min(ones, 50 - ones) / 50;
  }
  // A redraw of a binary gene changes it half of the time.
  EXPECT_NEAR(changed / 2000.0, 0.15, 0.01);
}

/// Share of genes at their upper bound where the only parent's are all 0, without crossover.
double share_at_upper(double upper, bool integers, bool flip, double mutation) {
  const std::size_t size = 401;
  auto population = start(fifty(upper, integers), 0);
  for (std::size_t i = 0; i < size; ++i) population.push_back(Vector(50, 0), {0.0});
  const EvoGa::Options how{.generations = 2,
                           .elite = 1,
                           .parents = 1,
                           .crossover = 0,
                           .mutation = mutation,
                           .flip_binary = flip};
  const auto end = EvoGa(how, 3).evolve(population);
  double changed = 0;
  for (const auto& x : end.get_x()) {
    for (const double gene : x) {
      EXPECT_GE(gene, 0);
      EXPECT_LE(gene, upper);
      changed += gene == upper ? 1 : 0;
    }
  }
  return changed / (50.0 * static_cast<double>(size - 1));
}

TEST(EvoGa, AFlippedBinaryGeneChangesAtTheWholeRate) {
  EXPECT_EQ(share_at_upper(1, true, true, 1.0), 1.0);
  EXPECT_NEAR(share_at_upper(1, true, true, 0.3), 0.3, 0.015);
  EXPECT_NEAR(share_at_upper(1, true, false, 1.0), 0.5, 0.015);
  EXPECT_NEAR(share_at_upper(1, true, false, 0.3), 0.15, 0.015);
  EXPECT_NEAR(share_at_upper(2, true, true, 1.0), 1.0 / 3, 0.015) << "three options are redrawn";
  EXPECT_EQ(share_at_upper(1, false, true, 1.0), 0.0) << "reals are redrawn";
}

TEST(EvoGa, RandomStreamStaysAsItIs) {
  // Runs in stores are resumed by asking again from the seed: another stream would orphan them.
  const auto problem = landscape();
  auto population = start(problem, 0);
  for (int i = 0; i < 12; ++i) {
    const Vector x{0.02 * i, double(i % 4), double(i / 3), double(i % 3), double(i % 3), 1};
    population.push_back(x, problem.value(x));
  }
  EvoGa({}, 11).evolve(population);
  double sum = 0;
  int place = 0;
  for (const auto& batch : *problem.batches) {
    for (const auto& x : batch) {
      for (const double gene : x) sum += ++place * gene;
    }
  }
  EXPECT_DOUBLE_EQ(sum, 114486.87379497834);
  const auto& last = problem.batches->back().back();
  EXPECT_EQ(Vector(last.begin() + 1, last.end()), (Vector{0, 1, 2, 0, 0}));
}

TEST(EvoGa, AdaptiveRateFalls) {
  const EvoGa ga({.generations = 10, .adaptive_mutation = true}, 1);
  EXPECT_NEAR(ga.mutation_rate(1), 0.5 * std::pow(0.5, 0.1), 1e-15);
  EXPECT_NEAR(ga.mutation_rate(9), 0.5 * std::pow(0.5, 0.9), 1e-15);
  EXPECT_EQ(EvoGa({}, 1).mutation_rate(5), 0.3);
}

TEST(EvoGa, RefusesWhatItCannotDo) {
  EXPECT_EQ(refusal<EvoGa>({.crossover = 1.5}), "evo_ga: crossover = 1.5, must be in [0, 1]");
  EXPECT_EQ(refusal<EvoGa>({.mutation = -0.1}), "evo_ga: mutation = -0.1, must be in [0, 1]");
  EXPECT_EQ(refusal<EvoGa>({.generations = 0}), "evo_ga: generations = 0, must be >= 1");
  EXPECT_EQ(refusal<EvoGa>({.elite = 0}), "evo_ga: elite = 0, must be >= 1");
  EXPECT_EQ(refusal<EvoGa>({.parents = 0}), "evo_ga: parents = 0, must be >= 1");
  const pagmo::ackley ackley(2);
  EXPECT_THAT(refusal<EvoGa>(pagmo::zdt(1), 12),
              HasSubstr("objectives of the problem = 2, must be 1"));
  EXPECT_THAT(refusal<EvoGa>(ackley, 2), HasSubstr("elite = 3, must be at most the population, 2"));
  EXPECT_THAT(refusal<EvoGa>(ackley, 4),
              HasSubstr("parents = 6, must be at most the population, 4"));
}

TEST(EvoGa, RanksNanLastAndTiesByAge) {
  auto population = start(landscape(), 0);
  for (int i = 0; i < 12; ++i) {
    population.push_back({0.1, 0, 0, 0, double(i % 3), double(i % 2)},
                         {i < 4 ? std::nan("") : 5.0});
  }
  const auto end = EvoGa({.generations = 2}, 1).evolve(population);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(end.get_x()[i], population.get_x()[4 + i]);
}

TEST(EvoGa, RegistryBuildsItFromSettings) {
  const auto& entry = algorithms().at("evo_ga");
  Parameters parameters(entry.description.settings);
  parameters.set("mutation_schedule", std::string("adaptive"));
  parameters.set("binary", std::string("flip"));
  const auto algorithm = entry.make().make(parameters, SearchFacts{}, 3);
  EXPECT_TRUE(algorithm.extract<EvoGa>()->mutation_rate(0) == 0.5);
  EXPECT_THAT(algorithm.get_extra_info(),
              HasSubstr("adaptive_mutation: true\nflip_binary: true\nseed: 3"));
}

}  // namespace
}  // namespace nas
