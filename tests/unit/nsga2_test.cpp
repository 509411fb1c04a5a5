#include "algorithms/nsga2.hpp"

#include <iostream>

#include <pagmo/algorithm.hpp>
#include <pagmo/algorithms/nsga2.hpp>
#include <pagmo/problems/ackley.hpp>
#include <pagmo/problems/zdt.hpp>
#include <pagmo/utils/multi_objective.hpp>

#include "recording_problem.hpp"
#include "search/genetic_variation.hpp"

namespace nas {
namespace {

/// A real gene, one that cannot vary, and categories of 4, 3 and 20 options.
RecordingProblem landscape() {
  return {.lower = {-0.5, 2, 0, 0, -1},
          .upper = {0.5, 2, 3, 2, 18},
          .num_integers = 3,
          .num_objectives = 2,
          .value = [](const Vector& x) {
            const double cost = x[0] + x[2] + x[4];
            return Vector{cost, 30 - cost + (x[3] == 1 ? 0.0 : 2.0)};
          }};
}

TEST(Nsga2, ConvergesOnZdt1AsPagmosDoes) {
  // The hypervolume of the whole front is 1.1^2 - 1/3 = 0.877.
  const pagmo::problem problem{pagmo::zdt(1, 30)};
  const auto quality = [](const pagmo::population& population) {
    return hypervolume(population.get_f(), {1.1, 1.1});
  };
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const auto begin = pagmo::population(problem, 100, seed);
    const double by_pagmo = quality(pagmo::nsga2(249, 0.95, 10, 1.0 / 30, 50, seed).evolve(begin));
    for (const bool active : {true, false}) {
      const auto end = Nsga2({.generations = 250, .active = active}, seed).evolve(begin);
      EXPECT_EQ(end.get_problem().get_fevals(), 25000U);
      const double found = quality(end);
      std::cout << "hypervolume " << found << ", pagmo's " << by_pagmo << '\n';
      EXPECT_GT(found, 0.86);
      EXPECT_GT(found, by_pagmo - 0.005);
    }
  }
}

TEST(Nsga2, AsksGenerationsAsBatchesOfWhatIsInBoundsAndNew) {
  const auto problem = landscape();
  const auto begin = start(problem, 12, 2);
  const auto end = Nsga2({.generations = 30}, 2).evolve(begin);
  ASSERT_EQ(problem.batches->size(), 29U);
  const auto initial = begin.get_x();
  std::set<Vector> asked(initial.begin(), initial.end());
  std::set<double> categories;
  for (const auto& batch : *problem.batches) {
    EXPECT_EQ(batch.size(), 12U);
    for (const auto& x : batch) {
      EXPECT_TRUE(asked.insert(x).second);
      for (std::size_t gene = 0; gene < x.size(); ++gene) {
        EXPECT_GE(x[gene], problem.lower[gene]);
        EXPECT_LE(x[gene], problem.upper[gene]);
        EXPECT_TRUE(gene < 2 || x[gene] == std::round(x[gene]));
      }
      categories.insert(x[4]);
    }
  }
  EXPECT_EQ(categories.size(), 20U);
  EXPECT_EQ(end.size(), 12U);
}

TEST(Nsga2, KeepsTheBestByRankAndCrowdingDistance) {
  const auto problem = landscape();
  const auto begin = start(problem, 40, 6);
  const auto end = Nsga2({.generations = 2}, 6).evolve(begin);
  auto all = begin.get_f();
  for (const auto& x : problem.batches->front()) all.push_back(problem.fitness(x));
  std::multiset<Vector> best;
  for (const auto i : pagmo::select_best_N_mo(all, 40)) best.insert(all[i]);
  const auto kept = end.get_f();
  EXPECT_EQ(std::multiset<Vector>(kept.begin(), kept.end()), best);
}

TEST(CrowdedRanking, CrowdingIsOfTheObjectivesInWhichAFrontDiffers) {
  const CrowdedRanking ranking(
      {{0, 10, 3}, {10, 0, 3}, {5, 5, 3}, {1, 9, 3}, {1.5, 8.5, 3}, {20, 20, 4}});
  std::mt19937 engine(1);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ranking.winner(3, 4, engine), 4U);
    EXPECT_EQ(ranking.winner(2, 4, engine), 2U);
  }
  const CrowdedRanking one_front({{0, 10, 3}, {10, 0, 3}, {5, 5, 3}, {1, 9, 3}, {1.5, 8.5, 3}});
  EXPECT_EQ(one_front.worst(), 3U);
  EXPECT_EQ(CrowdedRanking(std::vector<Vector>(4, Vector{1, 1})).worst(), 3U)
      << "all alike: the last";
}

TEST(Nsga2, RefusesWhatItCannotDo) {
  EXPECT_EQ(refusal<Nsga2>({.generations = 0}), "nsga2: generations = 0, must be >= 1");
  EXPECT_EQ(refusal<Nsga2>({.crossover = 1.5}), "nsga2: crossover = 1.5, must be in [0, 1]");
  EXPECT_EQ(refusal<Nsga2>({.mutation = -0.1}), "nsga2: mutation = -0.1, must be in [0, 1]");
  EXPECT_EQ(refusal<Nsga2>({.eta_c = -1}), "nsga2: eta_c = -1, must be >= 0");
  EXPECT_EQ(refusal<Nsga2>({.eta_m = std::nan("")}), "nsga2: eta_m = nan, must be >= 0");
  EXPECT_EQ(refusal<Nsga2>(pagmo::ackley(2), 12),
            "nsga2: objectives of the problem = 1, must be >= 2");
  EXPECT_EQ(refusal<Nsga2>(pagmo::zdt(1, 30), 10),
            "nsga2: population = 10, must be a multiple of 4");
}

struct Nsga2Registry : RegistryTest {
  Nsga2Registry() : RegistryTest("nsga2", 12, {.num_genes = 4, .num_objectives = 2}) {
    parameters.set("generations", std::int64_t{9});
  }
  pagmo::algorithm made() {
    EXPECT_EQ(misfits(), Texts{});
    return algorithm.make(parameters, facts, 3);
  }
};

TEST_F(Nsga2Registry, VariesAnyGeneByDefault) {
  const auto begin = pagmo::population(pagmo::problem(pagmo::zdt(1, 4)), 12, 1);
  EXPECT_EQ(made().evolve(begin).get_x(),
            Nsga2({.generations = 9, .mutation = 0.25, .active = false}, 3).evolve(begin).get_x());
}

TEST_F(Nsga2Registry, VariesActiveGenesWhereToldTo) {
  parameters.set("variation", std::string("active"));
  parameters.set("eta_m", 30.0);
  const auto algorithm_of_ours = made();
  const auto* nsga2 = algorithm_of_ours.extract<Nsga2>();
  ASSERT_NE(nsga2, nullptr);
  EXPECT_EQ(nsga2->options().generations, 9U);
  EXPECT_EQ(nsga2->options().crossover, 0.95);
  EXPECT_EQ(nsga2->options().eta_c, 10);
  EXPECT_EQ(nsga2->options().mutation, 0.25);
  EXPECT_EQ(nsga2->options().eta_m, 30);
  EXPECT_TRUE(nsga2->options().active);
}

}  // namespace
}  // namespace nas
