#include "search/promotion.hpp"

#include <numeric>
#include <random>

#include "core/seed.hpp"
#include "prelude.hpp"
#include "search/rungs.hpp"

namespace nas {

namespace {

using Order = std::vector<std::size_t>;

constexpr Spread kSpreads[] = {Spread::crowding, Spread::epsilon_net};

std::vector<Reached> at(const Points& points) {
  std::vector<Reached> reached;
  for (const auto& point : points) reached.push_back({.ask = std::ssize(reached), .point = point});
  return reached;
}

/// Points on a coarse grid, so that some are equal in one objective or in all.
std::vector<Reached> random_rung(RandomEngine& random, std::size_t n, std::size_t objectives) {
  Points points(n);
  for (auto& point : points) {
    for (std::size_t m = 0; m < objectives; ++m) {
      point.push_back(static_cast<double>(random.below(8)));
    }
  }
  return at(points);
}

TEST(Promotion, TakesTheShareThatEtaSays) {
  EXPECT_EQ(num_promoted(8, 3.0), 2U);
  EXPECT_EQ(num_promoted(9, 3.0), 3U);
  EXPECT_EQ(num_promoted(2, 3.0), 0U);
  EXPECT_EQ(num_promoted(8, 400.0 / 150.0), 3U);
  EXPECT_EQ(num_promoted(35, 700.0 / 300.0), 15U);
  EXPECT_EQ(num_promoted(34, 700.0 / 300.0), 14U);
}

TEST(Promotion, OrdersAFrontByCrowding) {
  // (1, 5) and (5, 1) are the ends; (2, 4) has more room than (2.5, 3.5).
  const auto order = promotion_order(at({{2.5, 3.5}, {1, 5}, {2, 4}, {5, 1}, {3, 3.25}, {6, 6}}),
                                     Spread::crowding);
  EXPECT_THAT(order, ElementsAre(1, 3, 4, 2, 0, 5));
}

TEST(Promotion, OrdersAFrontByAnEpsilonNet) {
  const auto order = promotion_order(
      at({{0.9, 0.1}, {0, 1}, {1, 0}, {0.5, 0.5}, {0.2, 0.8}, {2, 2}}), Spread::epsilon_net);
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4, 0, 5));
}

TEST(Promotion, TakesWhatBreaksAConstraintLast) {
  auto reached = at({{1, 1}, {9, 9}});
  reached[0].feasible = false;
  for (const auto spread : kSpreads) {
    EXPECT_THAT(promotion_order(reached, spread), ElementsAre(1, 0));
  }
}

TEST(Promotion, TakesCopiesOfAPointAfterTheOthersOfItsFront) {
  for (const auto spread : kSpreads) {
    EXPECT_THAT(promotion_order(at({{1, 2}, {1, 2}, {2, 1}, {3, 3}}), spread),
                ElementsAre(0, 2, 1, 3));
  }
}

TEST(Promotion, NeverTakesADominatedOneBeforeWhatDominatesIt) {
  RandomEngine random(2);
  for (int i = 0; i < 100; ++i) {
    const auto reached = random_rung(random, 30, 2);
    for (const auto spread : kSpreads) {
      const auto order = promotion_order(reached, spread);
      for (std::size_t a = 0; a < order.size(); ++a) {
        for (std::size_t b = a + 1; b < order.size(); ++b) {
          EXPECT_FALSE(dominates(reached[order[b]].point, reached[order[a]].point));
        }
      }
    }
  }
}

TEST(Promotion, DoesNotDependOnTheOrderInWhichCandidatesAreGiven) {
  RandomEngine random(3);
  const auto asks = [](const std::vector<Reached>& reached, const Order& order) {
    std::vector<std::int64_t> numbers;
    for (const auto i : order) numbers.push_back(reached[i].ask);
    return numbers;
  };
  for (int i = 0; i < 200; ++i) {
    const auto objectives = static_cast<std::size_t>(1 + random.below(3));
    const auto reached = random_rung(random, 25, objectives);
    auto permuted = reached;
    std::shuffle(permuted.begin(), permuted.end(), std::mt19937(static_cast<unsigned>(i)));
    for (const auto spread : kSpreads) {
      const auto order = promotion_order(reached, spread);
      EXPECT_EQ(asks(permuted, promotion_order(permuted, spread)), asks(reached, order));
      auto sorted = order;
      std::sort(sorted.begin(), sorted.end());
      Order all(reached.size());
      std::iota(all.begin(), all.end(), std::size_t{0});
      EXPECT_EQ(sorted, all);
    }
  }
}

TEST(Promotion, GoesOnWithTheBestOneThatWasNotPromotedYet) {
  auto reached = at({{3.0}, {1.0}, {2.0}, {4.0}, {5.0}, {6.0}});
  EXPECT_EQ(next_of_best(reached, 2, Spread::crowding), 1U);
  reached[1].promoted = true;
  EXPECT_EQ(next_of_best(reached, 2, Spread::crowding), 2U);
  reached[2].promoted = true;
  EXPECT_EQ(next_of_best(reached, 2, Spread::crowding), std::nullopt);
  EXPECT_EQ(next_of_best(reached, 3, Spread::crowding), 0U);
  EXPECT_EQ(next_of_best(reached, 0, Spread::crowding), std::nullopt);
}

TEST(Rungs, PromoteFromTheHighestOnAndEachCandidateOnce) {
  Rungs rungs({.rungs = {10, 20}, .steps = 60});  // one of two, one of three
  const auto reach = [&rungs](std::size_t rung, std::int64_t ask, double value) {
    rungs.reach(rung, std::to_string(ask), Genotype({{"number", static_cast<double>(ask)}}),
                {.ask = ask, .point = {value}});
  };
  using Next = std::pair<double, std::size_t>;
  const auto promoted = [&rungs] {
    const auto next = rungs.promote();
    return next ? Next(next->genotype.real("number"), next->rung) : Next(-1.0, 0);
  };
  reach(0, 0, 5.0);
  EXPECT_EQ(promoted(), Next(-1.0, 0));
  reach(0, 0, 1.0);  // asked for again
  EXPECT_EQ(promoted(), Next(-1.0, 0));
  for (const std::int64_t ask : {1, 2, 3, 4, 5}) reach(0, ask, static_cast<double>(ask));
  EXPECT_EQ(promoted(), Next(1.0, 1));
  EXPECT_EQ(promoted(), Next(2.0, 1));
  for (const std::int64_t ask : {1, 2}) reach(1, ask, static_cast<double>(-ask));
  EXPECT_EQ(promoted(), Next(3.0, 1)) << "of two none goes to the end";
  reach(1, 3, 0.0);
  reach(0, 6, 0.0);
  reach(0, 7, 9.0);
  EXPECT_EQ(promoted(), Next(2.0, 2)) << "before those of the first rung";
  EXPECT_EQ(promoted(), Next(6.0, 1));
  EXPECT_EQ(promoted(), Next(-1.0, 0));
  EXPECT_EQ(rungs.until(1), 20);
  EXPECT_EQ(rungs.until(2), 0) << "the end";
  rungs.begin_batch(1);
  EXPECT_EQ(promoted(), Next(-1.0, 0));
}

/// Takes a batch of candidates through their rungs, of which the smaller number is the better.
/// @return how many came to each rung, the end included.
std::vector<int> halve(Rungs& rungs, std::int64_t size) {
  std::vector<int> came(rungs.fidelity().rungs.size() + 1);
  const auto arrive = [&](std::size_t rung, double number) {
    ++came[rung];
    if (rung + 1 == came.size()) return;
    const auto ask = static_cast<std::int64_t>(number);
    rungs.reach(rung, std::to_string(ask), Genotype({{"number", number}}),
                {.ask = ask, .point = {number}});
  };
  rungs.begin_batch(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) arrive(0, static_cast<double>(i));
  for (;;) {  // each round as a whole
    std::vector<std::pair<std::size_t, double>> round;
    while (const auto next = rungs.promote()) {
      round.emplace_back(next->rung, next->genotype.real("number"));
    }
    if (round.empty()) return came;
    for (const auto& [rung, number] : round) arrive(rung, number);
  }
}

TEST(Rungs, OfABatchSomebodyComesToTheEnd) {
  using Came = std::vector<int>;
  for (const auto promote : {Promote::successive_halving, Promote::hyperband}) {
    Rungs rungs({.promote = promote, .rungs = {10, 30}, .steps = 90});
    EXPECT_EQ(halve(rungs, 2), (Came{2, 1, 1}));
  }
  Rungs halving({.promote = Promote::successive_halving, .rungs = {10, 30}, .steps = 90});
  EXPECT_EQ(halve(halving, 5), (Came{5, 1, 1}));
  EXPECT_EQ(halve(halving, 0), (Came{0, 0, 0}));
  Rungs asha({.promote = Promote::asha, .rungs = {10, 30}, .steps = 90});
  EXPECT_EQ(halve(asha, 2), (Came{2, 0, 0})) << "others may follow";
}

TEST(Rungs, HyperbandHalvesItsBatchesFromOneRungAfterTheOther) {
  Rungs halving({.promote = Promote::successive_halving, .rungs = {10, 30}, .steps = 90});
  Rungs rungs({.promote = Promote::hyperband, .rungs = {10, 30}, .steps = 90});
  using Came = std::vector<int>;
  for (int batch = 0; batch < 3; ++batch) EXPECT_EQ(halve(halving, 9), (Came{9, 3, 1}));
  EXPECT_EQ(halve(rungs, 9), (Came{9, 3, 1})) << "210 steps";
  EXPECT_EQ(halve(rungs, 9), (Came{9, 9, 3})) << "450 steps";
  EXPECT_EQ(halve(rungs, 9), (Came{9, 9, 9})) << "810 steps";
  EXPECT_EQ(halve(rungs, 9), (Came{9, 3, 1})) << "then 420";
  EXPECT_EQ(halve(rungs, 9), (Came{9, 3, 1})) << "then 630";
  EXPECT_EQ(halve(rungs, 9), (Came{9, 9, 3}));
}

TEST(Rungs, PashaOpensARungWhereTheOrderOfTheTwoHighestDiffers) {
  for (const double epsilon : {0.0, 0.5, 2.0}) {
    Rungs rungs(
        {.promote = Promote::pasha, .rungs = {10, 20, 40}, .steps = 80, .epsilon = {epsilon}});
    const auto reach = [&rungs](std::size_t rung, std::int64_t ask, double value) {
      rungs.reach(rung, std::to_string(ask), Genotype({{"number", static_cast<double>(ask)}}),
                  {.ask = ask, .point = {value}});
    };
    for (const std::int64_t ask : {0, 1, 2, 3, 4, 5, 6, 7}) {
      reach(0, ask, static_cast<double>(ask));
    }
    int second = 0;
    while (const auto next = rungs.promote()) {
      EXPECT_EQ(next->rung, 1U);
      ++second;
    }
    EXPECT_EQ(second, 4) << "one of two";
    reach(1, 0, 0.0);
    reach(1, 1, 1.0);
    EXPECT_FALSE(rungs.promote().has_value()) << "in the same order: that rung is the last one";
    reach(1, 2, 0.2);  // was 1 behind candidate 1, is 0.8 ahead of it
    const bool differs = epsilon < 0.8;
    EXPECT_EQ(rungs.promote().has_value(), differs) << epsilon;
    EXPECT_FALSE(rungs.promote().has_value());
    const auto answer = rungs.answer();
    ASSERT_EQ(answer.size(), 1U);
    EXPECT_EQ(answer.front().rung, 3U) << "the end";
    EXPECT_EQ(answer.front().genotype.real("number"), differs ? 2.0 : 0.0) << "0 went on alone";
  }
}

TEST(Rungs, TheBestThatCameToTheEndAreReplicated) {
  Rungs rungs({.rungs = {10}, .steps = 20, .replicated = true});
  const auto end = [&rungs](std::int64_t ask, double value) {
    rungs.reach(1, std::to_string(ask), Genotype({{"number", value}}),
                {.ask = ask, .point = {value}});
  };
  const auto promoted = [&rungs] {
    const auto next = rungs.promote();
    if (!next) return -1.0;
    EXPECT_EQ(next->rung, 2U);
    EXPECT_EQ(rungs.until(next->rung), 0);
    return next->genotype.real("number");
  };
  end(0, 4.0);
  EXPECT_EQ(promoted(), 4.0) << "whoever is the best is among them";
  EXPECT_EQ(promoted(), -1.0);
  end(1, 5.0);
  end(2, 6.0);
  EXPECT_EQ(promoted(), -1.0);
  end(3, 3.0);
  rungs.begin_batch(1);
  EXPECT_EQ(promoted(), 3.0) << "also beside those of earlier batches";
  EXPECT_EQ(promoted(), -1.0);
}

TEST(Rungs, TheAnswerIsTheFrontOfTheHighestRung) {
  Rungs rungs({.promote = Promote::pasha, .rungs = {10, 20}, .steps = 40});
  const auto reach = [&rungs](std::size_t rung, std::int64_t ask, Point point, bool feasible) {
    rungs.reach(rung, std::to_string(ask), Genotype({{"number", static_cast<double>(ask)}}),
                {.ask = ask, .point = std::move(point), .feasible = feasible});
  };
  EXPECT_TRUE(rungs.answer().empty());
  reach(0, 0, {1.0, 3.0}, true);
  reach(0, 1, {3.0, 1.0}, true);
  reach(0, 2, {3.0, 3.0}, true);
  reach(0, 3, {0.0, 0.0}, false);
  const auto numbers = [&rungs] {
    std::multiset<double> found;
    for (const auto& one : rungs.answer()) found.insert(one.genotype.real("number"));
    return found;
  };
  EXPECT_EQ(numbers(), (std::multiset<double>{0.0, 1.0}));
  EXPECT_EQ(numbers(), (std::multiset<double>{2.0})) << "after them the next ones";
  EXPECT_EQ(numbers(), (std::multiset<double>{3.0}));
  EXPECT_TRUE(rungs.answer().empty());
}

}  // namespace

}  // namespace nas
