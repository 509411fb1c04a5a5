#include "algorithms/motpe.hpp"

#include <iostream>
#include <numeric>

#include <pagmo/algorithm.hpp>
#include <pagmo/problems/ackley.hpp>
#include <pagmo/problems/dtlz.hpp>
#include <pagmo/problems/zdt.hpp>
#include <pagmo/utils/multi_objective.hpp>

#include "core/seed.hpp"
#include "recording_problem.hpp"
#include "search/variation.hpp"
#include "statistics/statistics.hpp"

namespace nas {
namespace {

using ::testing::Pointwise;

/// 5 x 4 x 4 x 5 x 3 x 4 = 4800 mechanisms; what the third and the fourth gene do depends on the
/// first, so that no gene can be judged by itself.
RecordingProblem categories() {
  return {.lower = Vector(6, 0),
          .upper = {4, 3, 3, 4, 2, 3},
          .num_integers = 6,
          .value = [](const Vector& x) {
            double f = 100 - 2 * (x[1] == 2) - 0.5 * x[4] - 0.7 * (x[5] == 1);
            f -=
                x[0] == 3 ? 4 * (x[2] == 1) + 3 * (x[3] == 4) : 2 * (x[2] == 0) + 1.0 * (x[3] == 0);
            return Vector{f};
          }};
}

TEST(ParzenEstimator, CategoricalDensityIsTheFormula) {
  // Options 3 and 2, observations (0, 1) and (2, 0); b = 0.3 and 0.3; shares 1/3 each.
  const ParzenDomain domain{{0, 0}, {2, 1}, 2};
  const ParzenEstimator estimator(domain, {{0, 1}, {2, 0}}, {}, 0.3);
  const double uniform = 1.0 / 6;
  EXPECT_NEAR(std::exp(estimator.log_density({0, 1})), (0.7 * 0.7 + 0.15 * 0.3 + uniform) / 3,
              1e-12);
  EXPECT_NEAR(std::exp(estimator.log_density({0, 0})), (0.7 * 0.3 + 0.15 * 0.7 + uniform) / 3,
              1e-12);
  EXPECT_NEAR(std::exp(estimator.log_density({1, 0})), (0.15 * 0.3 + 0.15 * 0.7 + uniform) / 3,
              1e-12);
  // Fitted, b = 2 / (2 + 1 + 3) and 1 / (2 + 1 + 2); weights 3 : 1 share the two thirds.
  const ParzenEstimator weighted(domain, {{0, 1}, {2, 0}}, {6, 2}, 0);
  EXPECT_NEAR(std::exp(weighted.log_density({0, 1})),
              0.5 * (2.0 / 3 * 0.8) + 1.0 / 6 * (1.0 / 6 * 0.2) + uniform / 3, 1e-12);
  // No bandwidth makes what was observed less likely than the rest.
  const ParzenEstimator flat(domain, {{0, 1}}, {}, 0.9);
  EXPECT_NEAR(std::exp(flat.log_density({0, 1})), uniform, 1e-12);
  EXPECT_NEAR(std::exp(ParzenEstimator(domain, {}, {}, 0).log_density({1, 1})), uniform, 1e-12);
}

TEST(ParzenEstimator, DensityIsOneInAllAndWhatIsSampled) {
  // One real in [0, 2] with observations at its bound, one category, one gene of one value.
  const ParzenDomain domain{{0, 5, -1}, {2, 5, 1}, 1};
  const ParzenEstimator estimator(domain, {{0, 5, 1}, {0.4, 5, 0}, {1.9, 5, 0}}, {1, 2, 3}, 0);
  constexpr int kCells = 10;
  constexpr int kSteps = 2000;  // of the integral, for each cell
  std::vector<Vector> mass(3, Vector(kCells, 0));
  for (int option = 0; option < 3; ++option) {
    for (int i = 0; i < kCells * kSteps; ++i) {
      const double x = 2 * (i + 0.5) / (kCells * kSteps);
      mass[std::size_t(option)][std::size_t(i / kSteps)] +=
          std::exp(estimator.log_density({x, 5, option - 1.0})) * 2 / (kCells * kSteps);
    }
  }
  double sum = 0;
  for (const auto& row : mass) sum = std::accumulate(row.begin(), row.end(), sum);
  EXPECT_NEAR(sum, 1, 1e-6);

  constexpr int kSamples = 200000;
  std::vector<Vector> share(3, Vector(kCells, 0));
  std::mt19937 engine(1);
  for (int i = 0; i < kSamples; ++i) {
    const auto x = estimator.sample(engine);
    ASSERT_TRUE(x[0] >= 0 && x[0] <= 2 && x[1] == 5 && x[2] >= -1 && x[2] <= 1);
    ASSERT_EQ(x[2], std::round(x[2]));
    const auto cell = std::min<std::size_t>(kCells - 1, std::size_t(x[0] / 2 * kCells));
    share[std::size_t(x[2] + 1)][cell] += 1.0 / kSamples;
  }
  // The standard deviation of a share of 0.1 is 0.0007.
  for (std::size_t option = 0; option < 3; ++option) {
    EXPECT_THAT(share[option], Pointwise(DoubleNear(0.004), mass[option]));
  }
}

TEST(ParzenEstimator, BandwidthOfARealHasAFloor) {
  // Equal observations have no spread: the standard deviation is range / (n + 1) = 0.5.
  const ParzenEstimator estimator({{0}, {2}, 0}, {{1}, {1}, {1}}, {}, 0);
  const double kernel =
      std::exp(-0.5 * 4 * 0.25) / (0.5 * std::sqrt(2 * M_PI)) / std::erf(2 / std::sqrt(2.0));
  EXPECT_NEAR(std::exp(estimator.log_density({1.5})), 0.75 * kernel + 0.25 * 0.5, 1e-12);
}

TEST(MotpeSplit, IsByValueThenByAge) {
  std::mt19937 engine(1);
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(best_first({{3}, {nan}, {1}, {-inf}, {1}, {2}}, 6, engine),
              ElementsAre(2, 4, 5, 0, 1, 3));
  EXPECT_THAT(best_first({{3}, {1}}, 1, engine), ElementsAre(1));
  EXPECT_THAT(best_first({{nan}, {1}}, 5, engine), ElementsAre(1, 0));
  EXPECT_TRUE(best_first({}, 3, engine).empty());
}

TEST(MotpeSplit, IsByFrontThenByHypervolume) {
  std::mt19937 engine(1);
  // 1, 2, 4, 5 are one front, 0 and 6 behind it; 2 is the knee, 4 nearly the same.
  const std::vector<Vector> fitness{{2, 9},      {0, 8}, {1, 1}, {0, std::nan("")},
                                    {1.1, 0.99}, {8, 0}, {9, 9}};
  EXPECT_THAT(best_first(fitness, 1, engine), ElementsAre(2));
  EXPECT_THAT(best_first(fitness, 3, engine), ElementsAre(2, 1, 5));
  EXPECT_THAT(best_first(fitness, 5, engine), ElementsAre(1, 2, 4, 5, 0));
  EXPECT_THAT(best_first(fitness, 7, engine), ElementsAre(1, 2, 4, 5, 0, 6, 3));
}

TEST(MotpeSplit, FrontsAreThoseOfPagmo) {
  std::mt19937 engine(5);
  for (const std::size_t m : {2U, 3U, 5U}) {
    for (const std::size_t options : {3U, 9U, 1000U}) {  // with few, points are equal
      std::vector<Vector> fitness(120, Vector(m));
      for (auto& point : fitness) {
        for (auto& value : point) value = static_cast<double>(below(engine, options));
      }
      std::vector<std::size_t> expected;
      const auto sorted = pagmo::fast_non_dominated_sorting(fitness);
      for (auto front : std::get<0>(sorted)) {
        std::sort(front.begin(), front.end());
        expected.insert(expected.end(), front.begin(), front.end());
      }
      EXPECT_EQ(best_first(fitness, fitness.size(), engine), expected) << m << ' ' << options;
    }
  }
}

TEST(MotpeSplit, LazyGreedyChoiceIsTheGreedyOne) {
  RandomEngine random(3);
  std::vector<Vector> front;
  for (int i = 0; i < 30; ++i) {
    // On a plane, so that none dominates another; the third spans [0, 1] with the two extremes.
    const double a = random.uniform();
    const double b = random.uniform() * (1 - a);
    front.push_back({a, b, 1 - a - b});
  }
  front.push_back({1, 0, 0});
  front.push_back({0, 1, 0});
  front.push_back({0, 0, 1});
  std::vector<std::size_t> expected;
  std::vector<Vector> chosen;
  for (int pick = 0; pick < 10; ++pick) {
    double best = -1;
    std::size_t best_index = 0;
    for (std::size_t i = 0; i < front.size(); ++i) {
      auto with = chosen;
      with.push_back(front[i]);
      const double volume = pagmo::hypervolume(with, false).compute(Vector(3, 1.1));
      if (volume > best + 1e-12) {
        best = volume;
        best_index = i;
      }
    }
    expected.push_back(best_index);
    chosen.push_back(front[best_index]);
  }
  std::mt19937 engine(1);
  EXPECT_EQ(best_first(front, 10, engine), expected);
}

TEST(MotpeSplit, ManyObjectivesAreSplitAtRandomWithinAFront) {
  std::vector<Vector> front(8, Vector(5, 0));
  for (std::size_t i = 0; i < 8; ++i) front[i] = {double(i), -double(i), 0, 0, 0};
  std::mt19937 one(1);
  std::mt19937 same(1);
  std::mt19937 other(2);
  const auto chosen = best_first(front, 4, one);
  EXPECT_EQ(std::set<std::size_t>(chosen.begin(), chosen.end()).size(), 4U);
  EXPECT_EQ(chosen, best_first(front, 4, same));
  EXPECT_NE(chosen, best_first(front, 4, other));
}

TEST(MotpeSplit, WeightsAreContributions) {
  EXPECT_EQ(contribution_weights({{1}, {2}}), Vector(2, 1));
  EXPECT_EQ(contribution_weights({{1, 1}, {1, 1}}), Vector(2, 1));
  EXPECT_EQ(contribution_weights({{7, 3}}), Vector(1, 1));
  EXPECT_TRUE(contribution_weights({}).empty());
  // (0, 10), (5, 5), (10, 0) and the dominated (10, 10) with reference (11, 11): 5, 25, 5, 0.
  EXPECT_THAT(contribution_weights({{0, 10}, {5, 5}, {10, 0}, {10, 10}}),
              Pointwise(DoubleNear(1e-12), Vector{20.0 / 35, 100.0 / 35, 20.0 / 35, 0}));
  EXPECT_EQ(contribution_weights(std::vector<Vector>(3, Vector{1, 2, 3, 4, 5})), Vector(3, 1));
}

/// Medians over seeds of the best value found, and of that of a startup of all evaluations, which
/// is random search without repetition.
std::pair<double, double> medians(const RecordingProblem& landscape, unsigned evaluations,
                                  unsigned seeds) {
  Vector found;
  Vector by_chance;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    const auto begin = start(landscape, 12, seed);
    const auto best = [&](unsigned startup) {
      return Motpe({.evaluations = evaluations, .startup = startup}, seed)
          .evolve(begin)
          .champion_f()
          .front();
    };
    found.push_back(best(0));
    by_chance.push_back(best(evaluations));
  }
  std::cout << "median of the best: " << median(found) << ", random search " << median(by_chance)
            << '\n';
  return {median(found), median(by_chance)};
}

TEST(Motpe, BeatsRandomSearchWhereGenesInteract) {
  // The best of all is 100 - 2 - 1 - 0.7 - 7 = 89.3.
  const auto [found, by_chance] = medians(categories(), 100, 21);
  EXPECT_LT(found, by_chance - 1.0);
  EXPECT_LE(found, 90.0);
}

TEST(Motpe, GetsNearTheOptimumOfReals) {
  const auto value = [](const Vector& x) {
    return Vector{(x[0] - 1) * (x[0] - 1) + (x[1] + 2) * (x[1] + 2) + (x[2] == 2 ? 0.0 : 5.0)};
  };
  const auto [found, by_chance] = medians(
      {.lower = {-5, -5, 0}, .upper = {5, 5, 3}, .num_integers = 1, .value = value}, 150, 11);
  EXPECT_LT(found, 0.5 * by_chance);
}

TEST(Motpe, AsksNothingTwiceAndEndsWithTheSpace) {
  // 12 points, one gene of which has one value.
  const RecordingProblem landscape{
      .lower = {0, 7, -1, 2},
      .upper = {1, 7, 1, 3},
      .num_integers = 4,
      .value = [](const Vector& x) { return Vector{x[0] + x[2] * x[3]}; }};
  for (const unsigned batch : {1U, 5U, 100U}) {
    landscape.batches->clear();
    const auto begin = start(landscape, 3, 1);
    const auto end = Motpe({.evaluations = 1000, .startup = 5, .batch = batch}, 1).evolve(begin);
    auto all = landscape.asked();
    const auto initial = begin.get_x();
    const std::set<Vector> before(initial.begin(), initial.end());
    EXPECT_EQ(all.size(), 12 - before.size());
    all.insert(all.end(), before.begin(), before.end());
    EXPECT_EQ(std::set<Vector>(all.begin(), all.end()).size(), 12U);
    EXPECT_EQ(end.get_f()[0][0], -3);
    EXPECT_EQ(end.get_f()[1][0], -2);
    EXPECT_EQ(end.get_f()[2][0], -2);
  }
}

TEST(Motpe, BatchesAreOfTheirSize) {
  const auto landscape = categories();
  Motpe({.evaluations = 50, .startup = 20, .batch = 8}, 1).evolve(start(landscape, 12, 1));
  std::vector<std::size_t> sizes;
  for (const auto& batch : *landscape.batches) sizes.push_back(batch.size());
  EXPECT_THAT(sizes, ElementsAre(8, 8, 8, 8, 6));
}

TEST(Motpe, ReturnsTheBestThatWasSeen) {
  const auto landscape = categories();
  const auto begin = start(landscape, 12, 4);
  const auto end = Motpe({.evaluations = 60}, 4).evolve(begin);
  Vector all;
  for (const auto& f : begin.get_f()) all.push_back(f.front());
  for (const auto& x : landscape.asked()) all.push_back(landscape.value(x).front());
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(end.get_f()[i].front(), all[i]);
  const auto x = end.get_x();
  EXPECT_EQ(std::set<Vector>(x.begin(), x.end()).size(), 12U);

  // Copies only fill up.
  pagmo::population copies{pagmo::problem(landscape)};
  for (int i = 0; i < 4; ++i) copies.push_back(Vector(6, i == 3 ? 1 : 0), {i == 3 ? 9.0 : 5.0});
  const auto filled = Motpe({.evaluations = 4}, 1).evolve(copies).get_f();
  EXPECT_EQ(filled, (std::vector<Vector>{{5}, {9}, {5}, {5}}));
}

TEST(Motpe, ConstantAndFailingObjectivesDoNoHarm) {
  constexpr double kMax = std::numeric_limits<double>::max();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<Vector (*)(const Vector&)> values;
  values.push_back([](const Vector&) { return Vector{1, 2}; });
  values.push_back([](const Vector& x) { return Vector{x[0], 2}; });
  values.push_back([](const Vector&) { return Vector{std::nan(""), 2}; });
  values.push_back([](const Vector& x) { return Vector{x[0], x[3] == 0 ? kMax : -kMax}; });
  values.push_back([](const Vector& x) { return Vector{x[0], x[3] == 0 ? -kInfinity : x[2]}; });
  for (const auto value : values) {
    // Two reals, one that cannot vary, three categories, two objectives.
    const RecordingProblem landscape{.lower = {-1, 2, 0, -1, 0, 0},
                                     .upper = {1, 2, 0.5, 3, 1, 2},
                                     .num_integers = 3,
                                     .num_objectives = 2,
                                     .value = value};
    Motpe({.evaluations = 60}, 1).evolve(start(landscape, 10, 1));
    EXPECT_EQ(landscape.asked().size(), 50U);
  }
  auto landscape = categories();
  landscape.value = [](const Vector& x) { return Vector{x[0] == 3 ? x[1] : std::nan("")}; };
  const auto end = Motpe({.evaluations = 100}, 1).evolve(start(landscape, 12, 1));
  for (const auto& x : end.get_x()) EXPECT_EQ(x[0], 3);
}

TEST(Motpe, RefusesWhatItCannotDo) {
  EXPECT_EQ(refusal<Motpe>({.evaluations = 0}), "motpe: evaluations = 0, must be >= 1");
  EXPECT_EQ(refusal<Motpe>({.gamma = 0}), "motpe: gamma = 0, must be in (0, 1)");
  EXPECT_EQ(refusal<Motpe>({.gamma = 1}), "motpe: gamma = 1, must be in (0, 1)");
  EXPECT_EQ(refusal<Motpe>({.candidates = 0}), "motpe: candidates = 0, must be >= 1");
  EXPECT_EQ(refusal<Motpe>({.batch = 0}), "motpe: batch = 0, must be >= 1");
  EXPECT_EQ(refusal<Motpe>({.categorical_bandwidth = 1}),
            "motpe: categorical_bandwidth = 1, must be in [0, 1)");
  EXPECT_EQ(refusal<Motpe>(pagmo::ackley(2), 21, {.evaluations = 20}),
            "motpe: evaluations = 20, must be at least the population, 21");
  struct Stochastic {
    [[nodiscard]] std::pair<Vector, Vector> get_bounds() const { return {{0}, {1}}; }
    [[nodiscard]] Vector fitness(const Vector&) const { return {0}; }
    void set_seed(unsigned) {}
  };
  EXPECT_EQ(refusal<Motpe>(Stochastic{}, 12),
            "motpe: the problem is stochastic, must be deterministic");
}

TEST(Motpe, TakesMoreObjectivesThanHypervolumeDoes) {
  for (const unsigned num_objectives : {3U, 4U, 5U, 8U}) {
    const pagmo::problem problem{pagmo::dtlz(2, num_objectives + 4, num_objectives)};
    const auto end = Motpe({.evaluations = 60}, 1).evolve(pagmo::population(problem, 12, 1));
    EXPECT_EQ(end.get_problem().get_fevals(), 60U);
  }
}

struct MotpeRegistry : RegistryTest {
  MotpeRegistry() : RegistryTest("motpe", 12, {.num_genes = 9}) {}
};

TEST_F(MotpeRegistry, FitsWhatIsLeftOpenAndBuildsIt) {
  EXPECT_EQ(misfits(), Texts{});
  const auto made = algorithm.make(parameters, facts, 3);
  const auto& how = made.extract<Motpe>()->options();
  EXPECT_EQ(how.evaluations, 100U);
  EXPECT_EQ(how.startup, 18U);
  EXPECT_EQ(how.gamma, 0.1);
  EXPECT_EQ(how.candidates, 24U);
  EXPECT_EQ(how.batch, 1U);
  EXPECT_EQ(how.categorical_bandwidth, 0);
  EXPECT_EQ(algorithm.objectives, Algorithm::Objectives::any);
  EXPECT_TRUE(algorithm.batches);

  parameters.set("startup", std::int64_t{0});
  parameters.set("evaluations", std::int64_t{15});
  EXPECT_EQ(misfits(), Texts{});
  EXPECT_EQ(parameters.get<std::int64_t>("startup"), 15);
}

TEST_F(MotpeRegistry, SaysWhatDoesNotFit) {
  parameters.set("startup", std::int64_t{101});
  EXPECT_THAT(misfits(), ElementsAre("startup must be at most algorithm.evaluations = 100"));
}

}  // namespace
}  // namespace nas
