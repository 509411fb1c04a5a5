#include "algorithms/nsga2.hpp"

#include <iostream>

#include <pagmo/algorithm.hpp>
#include <pagmo/algorithms/nsga2.hpp>
#include <pagmo/problem.hpp>
#include <pagmo/problems/ackley.hpp>
#include <pagmo/problems/zdt.hpp>
#include <pagmo/utils/hypervolume.hpp>
#include <pagmo/utils/multi_objective.hpp>

#include "asked_batches.hpp"
#include "prelude.hpp"
#include "search/algorithm.hpp"
#include "search/genetic_variation.hpp"

namespace nas {
namespace {

using Vector = std::vector<double>;

/// A real gene, one that cannot vary, and categories of 4, 3 and 20 options; what is asked is recorded in batches.
struct Landscape {
  static constexpr std::size_t kLength = 5;

  std::shared_ptr<AskedBatches> batches = std::make_shared<AskedBatches>();

  [[nodiscard]] std::size_t get_nobj() const { return 2; }
  [[nodiscard]] std::pair<Vector, Vector> get_bounds() const {
    return {{-0.5, 2, 0, 0, -1}, {0.5, 2, 3, 2, 18}};
  }
  [[nodiscard]] std::size_t get_nix() const { return 3; }
  [[nodiscard]] Vector fitness(const Vector& x) const {
    const double cost = x[0] + x[2] + x[4];
    return {cost, 30 - cost + (x[3] == 1 ? 0.0 : 2.0)};
  }
  [[nodiscard]] Vector batch_fitness(const Vector& joined) const {
    return answer(*batches, joined, kLength, [&](const Vector& x) { return fitness(x); });
  }
};

Nsga2::Options options(unsigned generations) {
  Nsga2::Options result;
  result.generations = generations;
  return result;
}

TEST(Nsga2, ConvergesOnZdt1AsPagmosDoes) {
  // The hypervolume of the whole front is 1.1^2 - 1/3 = 0.877.
  const pagmo::problem problem{pagmo::zdt(1, 30)};
  const auto quality = [](const pagmo::population& population) {
    std::vector<Vector> inside;
    for (const auto& f : population.get_f()) {
      if (f[0] < 1.1 && f[1] < 1.1) inside.push_back(f);
    }
    return inside.empty() ? 0.0 : pagmo::hypervolume(inside).compute({1.1, 1.1});
  };
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const auto begin = pagmo::population(problem, 100, seed);
    const double by_pagmo = quality(pagmo::nsga2(249, 0.95, 10, 1.0 / 30, 50, seed).evolve(begin));
    for (const bool active : {true, false}) {
      auto all = options(250);
      all.active = active;
      const Nsga2 nsga2(all, seed);
      const auto end = nsga2.evolve(begin);
      EXPECT_EQ(end.get_problem().get_fevals(), 25000U);
      const double found = quality(end);
      std::cout << "hypervolume " << found << ", pagmo's " << by_pagmo << '\n';
      EXPECT_GT(found, 0.86);
      EXPECT_GT(found, by_pagmo - 0.005);
    }
  }
}

TEST(Nsga2, AsksGenerationsAsBatchesOfWhatIsInBoundsAndNew) {
  const Landscape landscape;
  const auto [lower, upper] = landscape.get_bounds();
  const auto begin = pagmo::population(landscape, 12, 2);
  const auto end = Nsga2(options(30), 2).evolve(begin);
  ASSERT_EQ(landscape.batches->size(), 29U);
  const auto initial = begin.get_x();
  std::set<Vector> asked(initial.begin(), initial.end());
  std::set<double> categories;
  for (const auto& batch : *landscape.batches) {
    EXPECT_EQ(batch.size(), 12U);
    for (const auto& x : batch) {
      EXPECT_TRUE(asked.insert(x).second);
      for (std::size_t gene = 0; gene < x.size(); ++gene) {
        EXPECT_GE(x[gene], lower[gene]);
        EXPECT_LE(x[gene], upper[gene]);
        EXPECT_TRUE(gene < 2 || x[gene] == std::round(x[gene]));
      }
      categories.insert(x[4]);
    }
  }
  EXPECT_EQ(categories.size(), 20U);
  EXPECT_EQ(end.size(), 12U);
}

TEST(Nsga2, KeepsTheBestByRankAndCrowdingDistance) {
  const Landscape landscape;
  const auto begin = pagmo::population(landscape, 40, 6);
  const auto end = Nsga2(options(2), 6).evolve(begin);
  auto all = begin.get_f();
  for (const auto& x : landscape.batches->front()) all.push_back(landscape.fitness(x));
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
  const auto with = [](auto change) {
    Nsga2::Options how;
    change(how);
    return message_of([&] { Nsga2(how, 1); });
  };
  EXPECT_EQ(with([](auto& o) { o.generations = 0; }), "nsga2: generations = 0, must be >= 1");
  EXPECT_EQ(with([](auto& o) { o.crossover = 1.5; }), "nsga2: crossover = 1.5, must be in [0, 1]");
  EXPECT_EQ(with([](auto& o) { o.mutation = -0.1; }), "nsga2: mutation = -0.1, must be in [0, 1]");
  EXPECT_EQ(with([](auto& o) { o.eta_c = -1; }), "nsga2: eta_c = -1, must be >= 0");
  EXPECT_EQ(with([](auto& o) { o.eta_m = std::nan(""); }), "nsga2: eta_m = nan, must be >= 0");

  const auto evolving = [](const pagmo::problem& problem, std::size_t size) {
    return message_of([&] { Nsga2({}, 1).evolve(pagmo::population(problem, size, 1)); });
  };
  EXPECT_EQ(evolving(pagmo::problem(pagmo::ackley(2)), 12),
            "nsga2: objectives of the problem = 1, must be >= 2");
  const pagmo::problem zdt{pagmo::zdt(1, 30)};
  EXPECT_EQ(evolving(zdt, 10), "nsga2: population = 10, must be a multiple of 4");
}

class Nsga2Registry : public ::testing::Test {
 protected:
  Nsga2Registry() : parameters(algorithms().at("nsga2").description.settings) {
    parameters.set("population", std::int64_t{12});
    parameters.set("generations", std::int64_t{9});
    facts.num_genes = 4;
    facts.num_objectives = 2;
  }
  pagmo::algorithm made() {
    EXPECT_TRUE(algorithm.fit(parameters, facts).empty());
    return algorithm.make(parameters, facts, 3);
  }
  Algorithm algorithm = algorithms().at("nsga2").make();
  Parameters parameters;
  SearchFacts facts;
};

TEST_F(Nsga2Registry, VariesAnyGeneByDefault) {
  auto expected = options(9);
  expected.active = false;
  expected.mutation = 0.25;
  const auto begin = pagmo::population(pagmo::problem(pagmo::zdt(1, 4)), 12, 1);
  EXPECT_EQ(made().evolve(begin).get_x(), Nsga2(expected, 3).evolve(begin).get_x());
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
