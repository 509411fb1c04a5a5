#include "algorithms/nsga3.hpp"

#include <iostream>
#include <numeric>

#include <pagmo/algorithm.hpp>
#include <pagmo/problem.hpp>
#include <pagmo/problems/ackley.hpp>
#include <pagmo/problems/dtlz.hpp>
#include <pagmo/utils/hypervolume.hpp>
#include <pagmo/utils/multi_objective.hpp>

#include "asked_batches.hpp"
#include "prelude.hpp"
#include "search/algorithm.hpp"

namespace nas {
namespace {

using Vector = std::vector<double>;

/// A real gene, one that cannot vary, and categories of 4, 3, 5 and 2 options; what is asked is
/// recorded in batches. `value` says what the fitness is.
struct Landscape {
  using Value = Vector (*)(const Vector&);
  static constexpr std::size_t kLength = 6;

  Value value = conflict;
  std::shared_ptr<AskedBatches> batches = std::make_shared<AskedBatches>();

  static Vector conflict(const Vector& x) {
    const double cost = x[0] + (x[2] == 1 ? 2.0 : 0.0) + (x[3] == 2 ? 1.0 : 0.0) + x[5];
    return {cost, 5 - cost + (x[4] == 3 ? 0.0 : 2.0), 1e9 * (x[2] == 0 ? 1.0 : 3.0 + x[0])};
  }
  [[nodiscard]] std::size_t get_nobj() const { return 3; }
  [[nodiscard]] std::pair<Vector, Vector> get_bounds() const {
    return {{-0.5, 2, 0, 0, -1, 0}, {0.5, 2, 3, 2, 3, 1}};
  }
  [[nodiscard]] std::size_t get_nix() const { return 4; }
  [[nodiscard]] Vector fitness(const Vector& x) const { return value(x); }
  [[nodiscard]] Vector batch_fitness(const Vector& joined) const {
    return answer(*batches, joined, kLength, value);
  }
};

Nsga3::Options options(unsigned generations) {
  Nsga3::Options result;
  result.generations = generations;
  return result;
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

double hypervolume(const std::vector<Vector>& fitness, const Vector& reference) {
  std::vector<Vector> inside;
  for (const auto& f : fitness) {
    bool dominates = true;
    for (std::size_t i = 0; i < f.size(); ++i) dominates = dominates && f[i] < reference[i];
    if (dominates) inside.push_back(f);
  }
  return inside.empty() ? 0.0 : pagmo::hypervolume(inside).compute(reference);
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
    const Nsga3 nsga3(options(100), seed);
    const auto end = nsga3.evolve(pagmo::population(problem, 92, seed));
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
  struct Scaled {
    pagmo::dtlz inner{2, 12, 3};
    double scale = 1;
    [[nodiscard]] std::size_t get_nobj() const { return 3; }
    [[nodiscard]] std::pair<Vector, Vector> get_bounds() const { return inner.get_bounds(); }
    [[nodiscard]] Vector fitness(const Vector& x) const {
      auto f = inner.fitness(x);
      f[0] *= scale;
      f[2] /= scale;
      return f;
    }
  };
  Scaled scaled;
  scaled.scale = 0x1p30;
  const auto plain =
      Nsga3(options(20), 3).evolve(pagmo::population(pagmo::problem(Scaled{}), 40, 3));
  const auto other = Nsga3(options(20), 3).evolve(pagmo::population(scaled, 40, 3));
  EXPECT_EQ(plain.get_x(), other.get_x());
}

TEST(Nsga3, SpreadsOverTheFrontAndKeepsTheExtremes) {
  // f = (t, 1 - t): all is one front, so that only the niches decide.
  struct Line {
    [[nodiscard]] std::size_t get_nobj() const { return 2; }
    [[nodiscard]] std::pair<Vector, Vector> get_bounds() const { return {{0}, {1}}; }
    [[nodiscard]] Vector fitness(const Vector& x) const { return {x[0], 1 - x[0]}; }
  };
  const auto end = Nsga3(options(60), 5).evolve(pagmo::population(pagmo::problem(Line{}), 11, 5));
  Vector x;
  for (const auto& point : end.get_x()) x.push_back(point.front());
  std::sort(x.begin(), x.end());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], 0.1 * double(i), 0.03) << i;
}

TEST(Nsga3, KeepsTheFirstFrontOfWhatWasAskedWhereItFits) {
  const Landscape landscape;
  const auto begin = pagmo::population(landscape, 40, 6);
  const auto end = Nsga3(options(2), 6).evolve(begin);
  auto all = begin.get_f();
  for (const auto& x : landscape.batches->front()) all.push_back(landscape.fitness(x));
  const auto sorted = pagmo::fast_non_dominated_sorting(all);
  std::set<Vector> kept;
  for (const auto& f : end.get_f()) kept.insert(f);
  const auto& front = std::get<0>(sorted).front();
  ASSERT_LT(front.size(), 40U);
  for (const auto i : front) EXPECT_EQ(kept.count(all[i]), 1U);
}

TEST(Nsga3, WhatIsNotFiniteRanksLast) {
  Landscape landscape;
  landscape.value = [](const Vector& x) {
    auto f = Landscape::conflict(x);
    if (x[2] == 0) f[1] = std::nan("");
    if (x[2] == 1) f[0] = -std::numeric_limits<double>::infinity();
    if (x[2] == 2) f[2] = std::numeric_limits<double>::max();
    return f;
  };
  const auto end = Nsga3(options(20), 1).evolve(pagmo::population(landscape, 12, 1));
  for (const auto& x : end.get_x()) EXPECT_GE(x[2], 2);

  landscape.value = [](const Vector&) { return Vector(3, std::nan("")); };
  EXPECT_EQ(Nsga3(options(5), 1).evolve(pagmo::population(landscape, 12, 1)).size(), 12U);
}

TEST(Nsga3, RefusesWhatItCannotDo) {
  const auto with = [](auto change) {
    Nsga3::Options how;
    change(how);
    return message_of([&] { Nsga3(how, 1); });
  };
  EXPECT_EQ(with([](auto& o) { o.generations = 0; }), "nsga3: generations = 0, must be >= 1");
  EXPECT_EQ(with([](auto& o) { o.crossover = 1.5; }), "nsga3: crossover = 1.5, must be in [0, 1]");
  EXPECT_EQ(with([](auto& o) { o.mutation = -0.1; }), "nsga3: mutation = -0.1, must be in [0, 1]");
  EXPECT_EQ(with([](auto& o) { o.eta_c = -1; }), "nsga3: eta_c = -1, must be >= 0");
  EXPECT_EQ(with([](auto& o) { o.eta_m = std::nan(""); }), "nsga3: eta_m = nan, must be >= 0");

  const auto evolving = [](const pagmo::problem& problem, std::size_t size,
                           const Nsga3::Options& how = {}) {
    return message_of([&] { Nsga3(how, 1).evolve(pagmo::population(problem, size, 1)); });
  };
  const pagmo::problem dtlz{pagmo::dtlz(2, 12, 3)};
  EXPECT_EQ(evolving(pagmo::problem(pagmo::ackley(2)), 12),
            "nsga3: objectives of the problem = 1, must be >= 2");
  EXPECT_EQ(evolving(dtlz, 3), "nsga3: population = 3, must be >= 4");
  EXPECT_EQ(evolving(pagmo::problem(pagmo::dtlz(2, 12, 5)), 4),
            "nsga3: population = 4, must be at least the number of objectives, 5");
  auto how = options(3);
  how.divisions = 12;
  EXPECT_EQ(evolving(dtlz, 90, how),
            "nsga3: divisions = 12, must be at most 11, which gives 78 reference points for a "
            "population of 90");
  EXPECT_EQ(evolving(dtlz, 91, how), "nothing was thrown");
}

class Nsga3Registry : public ::testing::Test {
 protected:
  Nsga3Registry() : parameters(algorithms().at("nsga3").description.settings) {
    parameters.set("population", std::int64_t{92});
    facts.num_genes = 5;
    facts.num_objectives = 3;
  }
  Algorithm algorithm = algorithms().at("nsga3").make();
  Parameters parameters;
  SearchFacts facts;
};

TEST_F(Nsga3Registry, FitsWhatIsLeftOpenAndBuildsIt) {
  EXPECT_TRUE(algorithm.fit(parameters, facts).empty());
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
  auto misfits = algorithm.fit(parameters, facts);
  ASSERT_EQ(misfits.size(), 1U);
  EXPECT_EQ(misfits.front().setting, "divisions");
  EXPECT_EQ(misfits.front().message,
            "must be at most 12: 13 give 105 reference points, more than algorithm.population = "
            "92");
  facts.num_objectives = 7;
  parameters.set("population", std::int64_t{6});
  misfits = algorithm.fit(parameters, facts);
  ASSERT_EQ(misfits.size(), 1U);
  EXPECT_EQ(misfits.front().setting, "population");
  EXPECT_EQ(misfits.front().message, "must be at least the number of objectives, 7");
}

}  // namespace
}  // namespace nas
