// The search algorithms that need no model and no population dynamics: random, exhaustive and local
// search, and ageing evolution.

#include <numeric>
#include <stdexcept>
#include <tuple>

#include <pagmo/algorithm.hpp>
#include <pagmo/problems/ackley.hpp>
#include <pagmo/problems/zdt.hpp>
#include <pagmo/utils/multi_objective.hpp>
#include <sys/resource.h>

#include "algorithms/exhaustive.hpp"
#include "algorithms/local_search.hpp"
#include "algorithms/random_search.hpp"
#include "algorithms/regularized_evolution.hpp"
#include "recording_problem.hpp"
#include "search/variation.hpp"

namespace nas {
namespace {

/// 5 x 4 x 3 points; a separable valley whose floor is (3, 1, 2).
RecordingProblem grid() {
  return {.lower = {0, 0, 0}, .upper = {4, 3, 2}, .num_integers = 3, .value = [](const Vector& x) {
            return Vector{std::abs(x[0] - 3) + std::abs(x[1] - 1) + std::abs(x[2] - 2)};
          }};
}
/// The same with a real variable in front, best at 0.25.
RecordingProblem mixed() {
  auto recorder = grid();
  recorder.lower.insert(recorder.lower.begin(), 0.0);
  recorder.upper.insert(recorder.upper.begin(), 1.0);
  recorder.value = [rest = recorder.value](const Vector& x) {
    return Vector{std::abs(x[0] - 0.25) + rest({x[1], x[2], x[3]})[0]};
  };
  return recorder;
}

// Variation.

TEST(Variation, RedrawGivesEveryOtherValueAndNoneThatIsTheSame) {
  const pagmo::problem problem(mixed());
  std::mt19937 engine(1);
  std::set<double> seen;
  for (int i = 0; i < 200; ++i) {
    Vector point{0.5, 2, 1, 1};
    redraw(point, 1, problem, engine);
    EXPECT_NE(point[1], 2);
    seen.insert(point[1]);
    EXPECT_EQ(point[2], 1);
    redraw(point, 0, problem, engine);
    EXPECT_TRUE(point[0] >= 0.0 && point[0] < 1.0);
  }
  EXPECT_EQ(seen, (std::set<double>{0, 1, 3, 4}));
}

TEST(Variation, RandomPointsReachEverything) {
  const pagmo::problem problem(grid());
  std::mt19937 engine(2);
  std::set<Vector> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_point(problem, engine));
  EXPECT_EQ(seen.size(), 60U);
  EXPECT_EQ(num_points(problem), 60);
  EXPECT_TRUE(std::isinf(num_points(pagmo::problem(mixed()))));
}

TEST(Variation, UnseenPointsEndWithTheSpace) {
  const pagmo::problem problem(grid());
  UnseenPoints unseen(problem, {{0, 0, 0}});
  unseen.exclude({4, 3, 2});
  std::mt19937 engine(3);
  std::set<Vector> seen;
  for (auto point = unseen.draw(engine); !point.empty(); point = unseen.draw(engine)) {
    EXPECT_TRUE(seen.insert(point).second);
  }
  EXPECT_EQ(seen.size(), 58U);
  EXPECT_FALSE(seen.contains(Vector{0, 0, 0}));
  EXPECT_FALSE(seen.contains(Vector{4, 3, 2}));
}

TEST(Variation, TheBestOfSeveralObjectivesAreDistinctAndNonDominated) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Vector> rows{{nan, 0}, {1, 2}, {3, 3}, {2, 1}};
  const RecordingProblem table{
      .upper = {9}, .num_integers = 1, .num_objectives = 2, .value = [&](const Vector& x) {
        return rows[static_cast<std::size_t>(x[0])];
      }};
  auto population = start(table, 0);
  for (const double x : {0.0, 1.0, 1.0}) population.push_back({x});
  AskedPoints asked(population);
  asked.ask({{2}, {3}});
  EXPECT_EQ(asked.size(), 5U);
  EXPECT_EQ(asked.best().get_x(), (std::vector<Vector>{{1}, {3}, {2}}));
}

TEST(Variation, TheBestOfSeveralObjectivesAreThoseOfTheFirstFronts) {
  std::mt19937 engine(4);
  const auto value = [&engine] { return static_cast<double>(below(engine, 6)) / 4; };
  for (unsigned seed = 1; seed <= 30; ++seed) {
    AskedPoints asked(pagmo::population(pagmo::problem(pagmo::zdt(1, 2)), 5, seed));
    for (int i = 0; i < 40; ++i) asked.add({static_cast<double>(i), 0}, {value(), value()});
    std::vector<Vector> fitness;
    for (std::size_t i = 0; i < asked.size(); ++i) fitness.push_back(asked.fitness(i));
    std::vector<Vector> expected;
    const auto sorted = pagmo::fast_non_dominated_sorting(fitness);
    for (auto front : std::get<0>(sorted)) {
      std::sort(front.begin(), front.end());
      for (const auto i : front) expected.push_back(asked.point(i));
    }
    expected.resize(5);
    EXPECT_EQ(asked.best().get_x(), expected);
  }
}

TEST(Variation, TheBestOfManyTakeNoMemoryForTheirPairs) {
  // Of 10,000 that each dominate all later ones the lists of the dominated are 400 MB.
  constexpr int kMany = 10000;
  AskedPoints asked(pagmo::population(pagmo::problem(pagmo::zdt(1, 2)), 2, 1));
  for (double i = 0; i < kMany; ++i) asked.add({i, 0}, {i - kMany, i - kMany});
  const auto peak_kib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const auto before = peak_kib();
  EXPECT_EQ(asked.best().get_x(), (std::vector<Vector>{{0, 0}, {1, 0}}));
  EXPECT_LT(peak_kib() - before, 100'000);
}

// Random search.

TEST(RandomSearch, AsksForEachPointOnceUntilTheSpaceEnds) {
  const auto recorder = grid();
  const auto begin = start(recorder, 7);
  const auto end = RandomSearch({.evaluations = 1000}, 5).evolve(begin);
  auto asked = recorder.asked();
  const auto population = begin.get_x();
  const std::set<Vector> initial(population.begin(), population.end());
  EXPECT_EQ(asked.size(), 60 - initial.size());
  asked.insert(asked.end(), initial.begin(), initial.end());
  EXPECT_EQ(std::set<Vector>(asked.begin(), asked.end()).size(), 60U);
  EXPECT_EQ(end.champion_f().front(), 0.0);
  EXPECT_EQ(recorder.batches->front().size(), 7U);
}

TEST(RandomSearch, AsksExactlyAsOftenAsItsSettingSays) {
  for (const unsigned long long evaluations : {1ULL, 7ULL, 8ULL, 23ULL}) {
    const auto recorder = mixed();
    RandomSearch({.evaluations = evaluations}, 5).evolve(start(recorder, 7));
    EXPECT_EQ(recorder.asked().size(), evaluations > 7 ? evaluations - 7 : 0);
  }
}

// Exhaustive.

TEST(Exhaustive, AsksForEveryPointExactlyOnce) {
  const auto recorder = grid();
  const auto begin = start(recorder, 4);
  const auto end = Exhaustive().evolve(begin);
  auto asked = recorder.asked();
  EXPECT_TRUE(std::is_sorted(asked.begin(), asked.end())) << "the last variable is the fastest";
  const auto initial = begin.get_x();
  std::set<Vector> all(asked.begin(), asked.end());
  EXPECT_EQ(all.size(), asked.size());
  for (const auto& point : initial) EXPECT_THAT(asked, Not(::testing::Contains(point)));
  all.insert(initial.begin(), initial.end());
  EXPECT_EQ(all.size(), 60U);
  EXPECT_EQ(end.champion_x(), (Vector{3, 1, 2}));
}

TEST(Exhaustive, RealVariablesTakeTheirLevels) {
  const auto recorder = mixed();
  Exhaustive({.levels = 5}).evolve(start(recorder, 1));
  EXPECT_EQ(recorder.asked().size(), 300U);
  std::set<double> levels;
  for (const auto& x : recorder.asked()) levels.insert(x[0]);
  EXPECT_EQ(levels, (std::set<double>{0, 0.25, 0.5, 0.75, 1}));
  const auto middle = mixed();
  Exhaustive({.levels = 1}).evolve(start(middle, 1));
  EXPECT_EQ(middle.asked().front()[0], 0.5);
}

TEST(Exhaustive, RefusesWhatNeverEnds) {
  auto recorder = grid();
  recorder.upper = {999, 999, 99};
  EXPECT_EQ(message_of([&] { Exhaustive().evolve(start(recorder, 1)); }),
            "exhaustive: points of the space = 1e+08, must be at most 1e+07");
}

// Local search.

TEST(LocalSearch, DescendsToTheFloor) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const auto recorder = mixed();
    const auto end = LocalSearch({.evaluations = 150}, seed).evolve(start(recorder, 1, seed));
    const auto x = end.champion_x();
    EXPECT_THAT((Vector{x[1], x[2], x[3]}), ElementsAre(3, 1, 2));
    EXPECT_NEAR(x[0], 0.25, 0.1);
  }
}

TEST(LocalSearch, AsksForAllUnknownNeighboursTogether) {
  const auto recorder = grid();
  LocalSearch({.evaluations = 1000}, 1).evolve(start(recorder, 1));
  EXPECT_EQ(recorder.batches->front().size(), 4U + 3U + 2U);
  const auto asked = recorder.asked();
  EXPECT_EQ(std::set<Vector>(asked.begin(), asked.end()).size(), asked.size());
  EXPECT_EQ(asked.size(), 59U) << "the whole space in the end";
}

// Ageing evolution.

std::ptrdiff_t num_different(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), std::ptrdiff_t{0}, std::plus<>(),
                            std::not_equal_to<>());
}

/// Whether a point could be the child of one of those in [first, last).
bool is_child(const Vector& point, auto first, auto last) {
  return std::any_of(first, last,
                     [&](const Vector& parent) { return num_different(point, parent) == 1; });
}

TEST(RegularizedEvolution, EachChildDiffersInOneVariable) {
  const auto recorder = grid();
  const auto begin = start(recorder, 6);
  RegularizedEvolution({.evaluations = 106, .sample = 2, .batch = 4}, 1).evolve(begin);
  EXPECT_EQ(recorder.asked().size(), 100U);
  EXPECT_EQ(recorder.batches->front().size(), 4U);
  auto queue = begin.get_x();
  for (const auto& batch : *recorder.batches) {
    for (const auto& child : batch) {
      EXPECT_TRUE(is_child(child, queue.end() - 6, queue.end()));
    }
    queue.insert(queue.end(), batch.begin(), batch.end());
  }
}

TEST(RegularizedEvolution, ALuckyIndividualDies) {
  // Only one of the initial individuals is good, and its children are not: with elitism they would stay its children for ever.
  auto recorder = grid();
  recorder.upper = {9, 9, 9};
  const Vector lucky{0, 0, 0};
  recorder.value = [&](const Vector& x) {
    return Vector{x == lucky ? -100.0 : x[0] + x[1] + x[2]};
  };
  auto begin = start(recorder, 4);
  begin.set_x(0, lucky);
  for (std::size_t i = 1; i < 4; ++i) begin.set_x(i, {5, 5, 5});
  recorder.batches->clear();
  const auto end = RegularizedEvolution({.evaluations = 200, .sample = 4}, 3).evolve(begin);
  int strangers = 0;
  const auto asked = recorder.asked();
  for (std::size_t i = 20; i < asked.size(); ++i) {
    strangers += num_different(asked[i], lucky) > 1 ? 1 : 0;
  }
  EXPECT_GT(strangers, 100);
  EXPECT_EQ(end.champion_f().front(), -100.0) << "but the best ever is returned";
}

constexpr std::ptrdiff_t kPopulation = 5;

/// What a search for the least sum of six variables of nine values evaluates, the population first.
std::vector<Vector> evaluated(const RegularizedEvolutionOptions& options) {
  std::vector<Vector> points;
  const RecordingProblem sum{.lower = Vector(6, 0),
                             .upper = Vector(6, 8),
                             .num_integers = 6,
                             .value = [&](const Vector& x) {
                               points.push_back(x);
                               return Vector{std::accumulate(x.begin(), x.end(), 0.0)};
                             }};
  (void)RegularizedEvolution(options, 7).evolve(start(sum, kPopulation, 3));
  return points;
}

TEST(RegularizedEvolution, ParentsAreAmongTheLastThatWereTold) {
  for (const unsigned in_flight : {1U, 2U, 7U}) {
    const auto points = evaluated({.evaluations = 80, .sample = 2, .in_flight = in_flight});
    ASSERT_EQ(points.size(), 80U);
    for (std::ptrdiff_t i = kPopulation; i < 80; ++i) {
      // This problem answers in the order of asking: when a child is asked for, in_flight - 1 are
      // out, and before that as many as were asked.
      const auto told = points.begin() + std::max(kPopulation, i - std::min(i, in_flight - 1L));
      EXPECT_TRUE(is_child(points[std::size_t(i)], told - kPopulation, told)) << i << in_flight;
    }
  }
}

TEST(RegularizedEvolution, OneOutIsOneAfterTheOther) {
  EXPECT_EQ(evaluated({.evaluations = 60, .in_flight = 1}),
            evaluated({.evaluations = 60, .batch = 1}));
  EXPECT_NE(evaluated({.evaluations = 60, .in_flight = 4}), evaluated({.evaluations = 60}));
}

TEST(RegularizedEvolution, NothingWaitsForABatchWhereSeveralAreOut) {
  EXPECT_THROW(RegularizedEvolution({.batch = 2, .in_flight = 2}), std::invalid_argument);
  EXPECT_THROW(RegularizedEvolution({.in_flight = 0}), std::invalid_argument);
}

// All of them.

TEST(SimpleSearches, OptionsAreChecked) {
  EXPECT_EQ(refusal<RandomSearch>({.evaluations = 0}),
            "random_search: evaluations = 0, must be >= 1");
  EXPECT_EQ(message_of([] { Exhaustive({.levels = 0}); }), "exhaustive: levels = 0, must be >= 1");
  EXPECT_EQ(refusal<LocalSearch>({.step = 0.0}), "local_search: step = 0, must be in (0, 1]");
  EXPECT_EQ(refusal<LocalSearch>({.step = 1.5}), "local_search: step = 1.5, must be in (0, 1]");
  EXPECT_EQ(refusal<LocalSearch>({.evaluations = 0}),
            "local_search: evaluations = 0, must be >= 1");
  EXPECT_EQ(refusal<RegularizedEvolution>({.evaluations = 0}),
            "regularized_evolution: evaluations = 0, must be >= 1");
  EXPECT_EQ(refusal<RegularizedEvolution>({.sample = 0}),
            "regularized_evolution: sample = 0, must be >= 1");
  EXPECT_EQ(refusal<RegularizedEvolution>({.batch = 0}),
            "regularized_evolution: batch = 0, must be >= 1");
  EXPECT_EQ(refusal<RegularizedEvolution>(grid(), 4, {.sample = 5}),
            "regularized_evolution: sample = 5, must be at most the population, 4");
}

TEST(SimpleSearches, UnsuitableProblemsAreRefused) {
  EXPECT_EQ(refusal<LocalSearch>(pagmo::zdt(1, 3), 5),
            "local_search: objectives of the problem = 2, must be 1");
  EXPECT_EQ(refusal<RegularizedEvolution>(pagmo::zdt(1, 3), 5),
            "regularized_evolution: objectives of the problem = 2, must be 1");
  EXPECT_EQ(refusal<RandomSearch>(pagmo::ackley(2), 0),
            "random_search: the population is empty, must have an individual");
  struct Constrained {
    [[nodiscard]] Vector fitness(const Vector& x) const { return {x[0], x[0]}; }
    [[nodiscard]] std::pair<Vector, Vector> get_bounds() const { return {{0}, {1}}; }
    [[nodiscard]] static std::size_t get_nic() { return 1; }
  };
  EXPECT_EQ(message_of([&] {
              Exhaustive().evolve(pagmo::population(pagmo::problem(Constrained()), 2, 1));
            }),
            "exhaustive: constraints of the problem = 1, must be 0");
}

}  // namespace
}  // namespace nas
