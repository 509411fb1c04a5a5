#include "algorithms/nsga3.hpp"

#include <iostream>
#include <numeric>

#include <pagmo/algorithm.hpp>
#include <pagmo/problems/ackley.hpp>
#include <pagmo/problems/dtlz.hpp>
#include <pagmo/utils/multi_objective.hpp>

#include "recording_problem.hpp"

namespace nas {
namespace {

/// A real gene, one that cannot vary, and categories of 4, 3, 5 and 2 options.
RecordingProblem landscape() {
  return {.lower = {-0.5, 2, 0, 0, -1, 0},
          .upper = {0.5, 2, 3, 2, 3, 1},
          .num_integers = 4,
          .num_objectives = 3,
          .value = [](const Vector& x) {
            const double cost = x[0] + (x[2] == 1 ? 2.0 : 0.0) + (x[3] == 2 ? 1.0 : 0.0) + x[5];
            return Vector{cost, 5 - cost + (x[4] == 3 ? 0.0 : 2.0),
                          1e9 * (x[2] == 0 ? 1.0 : 3.0 + x[0])};
          }};
}

TEST(Nsga3, ReferencePointsDivideTheSimplex) {
  EXPECT_EQ(num_das_dennis_points(3, 12), 91);
  EXPECT_EQ(num_das_dennis_points(2, 99), 100);
  EXPECT_EQ(num_das_dennis_points(5, 6), 210);
  for (const auto& [num_objectives, divisions] :
       {std::pair<std::size_t, std::size_t>{2, 7}, {3, 12}, {4, 5}, {5, 1}}) {
    const auto points = das_dennis_points(num_objectives, divisions);
    EXPECT_EQ(static_cast<double>(points.size()), num_das_dennis_points(num_objectives, divisions));
    EXPECT_EQ(std::set<Vector>(points.begin(), points.end()).size(), points.size());
    for (const auto& point : points) {
      EXPECT_NEAR(std::accumulate(point.begin(), point.end(), 0.0), 1.0, 1e-15);
      for (const double coordinate : point) {
        const double share = coordinate * static_cast<double>(divisions);
        EXPECT_GE(coordinate, 0.0);
        EXPECT_NEAR(share, std::round(share), 1e-12);
      }
    }
  }
  EXPECT_EQ(das_dennis_points(2, 2), (std::vector<Vector>{{0, 1}, {0.5, 0.5}, {1, 0}}));
}

TEST(Nsga3, FittedDivisionsGiveNoMorePointsThanIndividuals) {
  EXPECT_EQ(fitted_divisions(2, 12), 11U);
  EXPECT_EQ(fitted_divisions(3, 91), 12U);
  EXPECT_EQ(fitted_divisions(3, 90), 11U);
  EXPECT_EQ(fitted_divisions(5, 5), 1U);
  EXPECT_EQ(fitted_divisions(5, 4), 0U);
}

TEST(Nsga3, InterceptsAreThoseOfTheExtremePoints) {
  const std::vector<Vector> corners{{2, 0, 0}, {0, 3e9, 0}, {0, 0, 4}};
  const Vector fallback{10, 1e10, 10};
  auto points = corners;
  points.push_back({0.5, 5e9, 3});  // the largest of its objective and yet no extreme point
  const auto cuts = axis_intercepts(points, fallback);
  EXPECT_NEAR(cuts[0], 2, 1e-12);
  EXPECT_NEAR(cuts[1], 3e9, 1e-3);
  EXPECT_NEAR(cuts[2], 4, 1e-12);
  // x / 4 + y / 4 = 1 cuts each axis beyond all points.
  EXPECT_EQ(axis_intercepts({{1, 3}, {3, 1}}, {2, 2}), (Vector{3, 3}));
  // A constant objective, equal points, one that is the extreme of all axes: no hyperplane.
  EXPECT_EQ(axis_intercepts({{1, 0}, {2, 0}}, {2, 1}), (Vector{2, 1}));
  EXPECT_EQ(axis_intercepts({{1, 1, 1}}, {5, 6, 7}), (Vector{5, 6, 7}));
  EXPECT_EQ(axis_intercepts({{1, 2}, {4, 4}}, {1, 1}), (Vector{1, 1}));
  EXPECT_EQ(axis_intercepts({{0, 0}, {0, 0}}, {1, 1}), (Vector{1, 1}));
}

TEST(Nsga3, CoversTheFrontOfDtlz2) {
  // The hypervolume of the whole front is 1.1^3 - pi / 6 = 0.8074, that of where the 91 reference directions meet it 0.745.
  const pagmo::problem problem{pagmo::dtlz(2, 12, 3)};
  auto met = das_dennis_points(3, 12);
  for (auto& point : met) {
    const double length =
        std::sqrt(std::inner_product(point.begin(), point.end(), point.begin(), 0.0));
    for (double& coordinate : point) coordinate /= length;
  }
  const double reachable = hypervolume(met, Vector(3, 1.1));
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const auto end = Nsga3({.generations = 100}, seed).evolve(pagmo::population(problem, 92, seed));
    EXPECT_EQ(end.get_problem().get_fevals(), 92U * 100U);
    const double found = hypervolume(end.get_f(), Vector(3, 1.1));
    const auto random = pagmo::population(problem, 92 * 100, seed);
    const double by_chance = hypervolume(random.get_f(), Vector(3, 1.1));
    std::cout << "hypervolume " << found << " of " << reachable << ", random search " << by_chance
              << '\n';
    EXPECT_GT(found, 0.97 * reachable);
    EXPECT_GT(found, by_chance + 0.3);
  }
}

TEST(Nsga3, UnitsOfTheObjectivesDoNotMatter) {
  // Powers of two, so that scaled fitness is exact and all decisions must be the same.
  const auto scaled = [](double scale) {
    const pagmo::dtlz inner(2, 12, 3);
    const auto bounds = inner.get_bounds();
    return RecordingProblem{.lower = bounds.first,
                            .upper = bounds.second,
                            .num_objectives = 3,
                            .value = [inner, scale](const Vector& x) {
                              const auto f = inner.fitness(x);
                              return Vector{f[0] * scale, f[1], f[2] / scale};
                            }};
  };
  const auto plain = Nsga3({.generations = 20}, 3).evolve(start(scaled(1), 40, 3));
  const auto other = Nsga3({.generations = 20}, 3).evolve(start(scaled(0x1p30), 40, 3));
  EXPECT_EQ(plain.get_x(), other.get_x());
}

TEST(Nsga3, SpreadsOverTheFrontAndKeepsTheExtremes) {
  // f = (t, 1 - t): all is one front, so that only the niches decide.
  const RecordingProblem line{.num_objectives = 2, .value = [](const Vector& x) {
                                return Vector{x[0], 1 - x[0]};
                              }};
  const auto end = Nsga3({.generations = 60}, 5).evolve(start(line, 11, 5));
  Vector x;
  for (const auto& point : end.get_x()) x.push_back(point.front());
  std::sort(x.begin(), x.end());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], 0.1 * double(i), 0.03) << i;
}

TEST(Nsga3, KeepsTheFirstFrontOfWhatWasAskedWhereItFits) {
  const auto problem = landscape();
  const auto begin = start(problem, 40, 6);
  const auto end = Nsga3({.generations = 2}, 6).evolve(begin);
  auto all = begin.get_f();
  for (const auto& x : problem.batches->front()) all.push_back(problem.fitness(x));
  const auto sorted = pagmo::fast_non_dominated_sorting(all);
  const auto kept = end.get_f();
  const auto& front = std::get<0>(sorted).front();
  ASSERT_LT(front.size(), 40U);
  for (const auto i : front) EXPECT_THAT(kept, ::testing::Contains(all[i]));
}

TEST(Nsga3, WhatIsNotFiniteRanksLast) {
  auto problem = landscape();
  problem.value = [finite = problem.value](const Vector& x) {
    auto f = finite(x);
    if (x[2] == 0) f[1] = std::nan("");
    if (x[2] == 1) f[0] = -std::numeric_limits<double>::infinity();
    if (x[2] == 2) f[2] = std::numeric_limits<double>::max();
    return f;
  };
  const auto end = Nsga3({.generations = 20}, 1).evolve(start(problem, 12));
  for (const auto& x : end.get_x()) EXPECT_GE(x[2], 2);

  problem.value = [](const Vector&) { return Vector(3, std::nan("")); };
  EXPECT_EQ(Nsga3({.generations = 5}, 1).evolve(start(problem, 12)).size(), 12U);
}

TEST(Nsga3, RefusesWhatItCannotDo) {
  EXPECT_EQ(refusal<Nsga3>({.generations = 0}), "nsga3: generations = 0, must be >= 1");
  EXPECT_EQ(refusal<Nsga3>({.crossover = 1.5}), "nsga3: crossover = 1.5, must be in [0, 1]");
  EXPECT_EQ(refusal<Nsga3>({.mutation = -0.1}), "nsga3: mutation = -0.1, must be in [0, 1]");
  EXPECT_EQ(refusal<Nsga3>({.eta_c = -1}), "nsga3: eta_c = -1, must be >= 0");
  EXPECT_EQ(refusal<Nsga3>({.eta_m = std::nan("")}), "nsga3: eta_m = nan, must be >= 0");
  const pagmo::dtlz dtlz(2, 12, 3);
  EXPECT_EQ(refusal<Nsga3>(pagmo::ackley(2), 12),
            "nsga3: objectives of the problem = 1, must be >= 2");
  EXPECT_EQ(refusal<Nsga3>(dtlz, 3), "nsga3: population = 3, must be >= 4");
  EXPECT_EQ(refusal<Nsga3>(pagmo::dtlz(2, 12, 5), 4),
            "nsga3: population = 4, must be at least the number of objectives, 5");
  EXPECT_EQ(refusal<Nsga3>(dtlz, 90, {.generations = 3, .divisions = 12}),
            "nsga3: divisions = 12, must be at most 11, which gives 78 reference points for a "
            "population of 90");
  EXPECT_EQ(refusal<Nsga3>(dtlz, 91, {.generations = 3, .divisions = 12}), "nothing was thrown");
}

struct Nsga3Registry : RegistryTest {
  Nsga3Registry() : RegistryTest("nsga3", 92, {.num_genes = 5, .num_objectives = 3}) {}
};

TEST_F(Nsga3Registry, FitsWhatIsLeftOpenAndBuildsIt) {
  EXPECT_EQ(misfits(), Texts{});
  const auto made = algorithm.make(parameters, facts, 3);
  const auto& how = made.extract<Nsga3>()->options();
  EXPECT_EQ(how.generations, 50U);
  EXPECT_EQ(how.mutation, 0.2);
  EXPECT_EQ(how.divisions, 12U);
  EXPECT_EQ(how.crossover, 0.9);
  EXPECT_EQ(how.eta_c, 30);
  EXPECT_EQ(how.eta_m, 20);
  EXPECT_EQ(algorithm.objectives, Algorithm::Objectives::several);
  EXPECT_EQ(algorithm.min_population, 4);
  EXPECT_TRUE(algorithm.batches);
}

TEST_F(Nsga3Registry, SaysWhatDoesNotFit) {
  parameters.set("divisions", std::int64_t{13});
  EXPECT_THAT(misfits(), ElementsAre("divisions must be at most 12: 13 give 105 reference points, "
                                     "more than algorithm.population = 92"));
  facts.num_objectives = 7;
  parameters.set("population", std::int64_t{6});
  EXPECT_THAT(misfits(), ElementsAre("population must be at least the number of objectives, 7"));
}

}  // namespace
}  // namespace nas
