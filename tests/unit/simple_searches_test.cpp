// The search algorithms that need no model and no population dynamics: random, exhaustive and local
// search, and ageing evolution.

#include <tuple>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>
#include <pagmo/problem.hpp>
#include <pagmo/problems/ackley.hpp>
#include <pagmo/problems/zdt.hpp>
#include <pagmo/s11n.hpp>
#include <pagmo/utils/multi_objective.hpp>
#include <sys/resource.h>

#include "algorithms/exhaustive.hpp"
#include "algorithms/local_search.hpp"
#include "algorithms/random_search.hpp"
#include "algorithms/regularized_evolution.hpp"
#include "asked_batches.hpp"
#include "prelude.hpp"
#include "search/algorithm.hpp"
#include "search/variation.hpp"

namespace nas {
namespace {

using Vector = std::vector<double>;

/// Records what it is asked for, in batches.
struct Recorder {
  Vector lower;
  Vector upper;
  std::size_t nix = 0;
  std::function<double(const Vector&)> value;
  std::shared_ptr<AskedBatches> batches = std::make_shared<AskedBatches>();

  [[nodiscard]] Vector fitness(const Vector& x) const { return {value(x)}; }
  [[nodiscard]] Vector batch_fitness(const Vector& joined) const {
    return answer(*batches, joined, lower.size(), [this](const Vector& x) { return fitness(x); });
  }
  [[nodiscard]] std::pair<Vector, Vector> get_bounds() const { return {lower, upper}; }
  [[nodiscard]] std::size_t get_nix() const { return nix; }
  template <class Archive>
  void serialize(Archive& /*archive*/, unsigned /*version*/) {}

  [[nodiscard]] std::vector<Vector> asked() const {
    std::vector<Vector> all;
    for (const auto& batch : *batches) all.insert(all.end(), batch.begin(), batch.end());
    return all;
  }
};

/// 5 x 4 x 3 points; a separable valley whose floor is (3, 1, 2).
Recorder grid() {
  return {.lower = {0, 0, 0}, .upper = {4, 3, 2}, .nix = 3, .value = [](const Vector& x) {
            return std::abs(x[0] - 3) + std::abs(x[1] - 1) + std::abs(x[2] - 2);
          }};
}
/// The same with a real variable in front, best at 0.25.
Recorder mixed() {
  auto recorder = grid();
  recorder.lower.insert(recorder.lower.begin(), 0.0);
  recorder.upper.insert(recorder.upper.begin(), 1.0);
  recorder.value = [](const Vector& x) {
    return std::abs(x[0] - 0.25) + std::abs(x[1] - 3) + std::abs(x[2] - 1) + std::abs(x[3] - 2);
  };
  return recorder;
}

pagmo::population start(const Recorder& recorder, std::size_t size, unsigned seed = 1) {
  return pagmo::population(pagmo::problem(recorder), size, seed);
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

/// Two objectives by a table.
struct Table {
  std::vector<Vector> rows;
  [[nodiscard]] Vector fitness(const Vector& x) const {
    return rows[static_cast<std::size_t>(x[0])];
  }
  [[nodiscard]] std::pair<Vector, Vector> get_bounds() const { return {{0}, {9}}; }
  [[nodiscard]] static std::size_t get_nobj() { return 2; }
  [[nodiscard]] static std::size_t get_nix() { return 1; }
};

TEST(Variation, TheBestOfSeveralObjectivesAreDistinctAndNonDominated) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Table table{{{nan, 0}, {1, 2}, {3, 3}, {2, 1}}};
  pagmo::population population{pagmo::problem(table)};
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
  auto initial = begin.get_x();
  std::sort(initial.begin(), initial.end());
  initial.erase(std::unique(initial.begin(), initial.end()), initial.end());
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
  for (const auto& point : initial) EXPECT_TRUE(all.insert(point).second || true);
  EXPECT_EQ(all.size(), 60U);
  for (const auto& point : initial) {
    EXPECT_EQ(std::count(asked.begin(), asked.end(), point), 0);
  }
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

TEST(RegularizedEvolution, EachChildDiffersInOneVariable) {
  const auto recorder = grid();
  const auto begin = start(recorder, 6);
  RegularizedEvolution({.evaluations = 106, .sample = 2, .batch = 4}, 1).evolve(begin);
  EXPECT_EQ(recorder.asked().size(), 100U);
  EXPECT_EQ(recorder.batches->front().size(), 4U);
  auto queue = begin.get_x();
  for (const auto& batch : *recorder.batches) {
    for (const auto& child : batch) {
      const bool related = std::any_of(queue.end() - 6, queue.end(), [&](const Vector& parent) {
        int different = 0;
        for (std::size_t i = 0; i < 3; ++i) different += child[i] != parent[i];
        return different == 1;
      });
      EXPECT_TRUE(related);
    }
    queue.insert(queue.end(), batch.begin(), batch.end());
  }
}

TEST(RegularizedEvolution, ALuckyIndividualDies) {
  // Only one of the initial individuals is good, and its children are not: with elitism they would stay its children for ever.
  auto recorder = grid();
  recorder.upper = {9, 9, 9};
  const Vector lucky{0, 0, 0};
  recorder.value = [&](const Vector& x) { return x == lucky ? -100.0 : x[0] + x[1] + x[2]; };
  auto begin = start(recorder, 4);
  begin.set_x(0, lucky);
  for (std::size_t i = 1; i < 4; ++i) begin.set_x(i, {5, 5, 5});
  recorder.batches->clear();
  const auto end = RegularizedEvolution({.evaluations = 200, .sample = 4}, 3).evolve(begin);
  int strangers = 0;
  const auto asked = recorder.asked();
  for (std::size_t i = 20; i < asked.size(); ++i) {
    int different = 0;
    for (std::size_t k = 0; k < 3; ++k) different += asked[i][k] != lucky[k];
    strangers += different > 1 ? 1 : 0;
  }
  EXPECT_GT(strangers, 100);
  EXPECT_EQ(end.champion_f().front(), -100.0) << "but the best ever is returned";
}

// All of them.

TEST(SimpleSearches, OptionsAreChecked) {
  EXPECT_EQ(message_of([] { RandomSearch({.evaluations = 0}, 1); }),
            "random_search: evaluations = 0, must be >= 1");
  EXPECT_EQ(message_of([] { Exhaustive({.levels = 0}); }), "exhaustive: levels = 0, must be >= 1");
  EXPECT_EQ(message_of([] { LocalSearch({.step = 0.0}, 1); }),
            "local_search: step = 0, must be in (0, 1]");
  EXPECT_EQ(message_of([] { LocalSearch({.step = 1.5}, 1); }),
            "local_search: step = 1.5, must be in (0, 1]");
  EXPECT_EQ(message_of([] { LocalSearch({.evaluations = 0}, 1); }),
            "local_search: evaluations = 0, must be >= 1");
  EXPECT_EQ(message_of([] { RegularizedEvolution({.evaluations = 0}, 1); }),
            "regularized_evolution: evaluations = 0, must be >= 1");
  EXPECT_EQ(message_of([] { RegularizedEvolution({.sample = 0}, 1); }),
            "regularized_evolution: sample = 0, must be >= 1");
  EXPECT_EQ(message_of([] { RegularizedEvolution({.batch = 0}, 1); }),
            "regularized_evolution: batch = 0, must be >= 1");
  const auto recorder = grid();
  EXPECT_EQ(message_of([&] { RegularizedEvolution({.sample = 5}, 1).evolve(start(recorder, 4)); }),
            "regularized_evolution: sample = 5, must be at most the population, 4");
}

TEST(SimpleSearches, UnsuitableProblemsAreRefused) {
  const pagmo::population two(pagmo::problem(pagmo::zdt(1, 3)), 5, 1);
  EXPECT_EQ(message_of([&] { LocalSearch({}, 1).evolve(two); }),
            "local_search: objectives of the problem = 2, must be 1");
  EXPECT_EQ(message_of([&] { RegularizedEvolution({}, 1).evolve(two); }),
            "regularized_evolution: objectives of the problem = 2, must be 1");
  const pagmo::population empty(pagmo::problem(pagmo::ackley(2)), 0, 1);
  EXPECT_EQ(message_of([&] { RandomSearch({}, 1).evolve(empty); }),
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
