#include "indicators/front_probability.hpp"

#include "core/seed.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

TEST(FrontProbability, IsCertainWhereEverySeedAgrees) {
  EXPECT_THAT(*front_probability({{{1.0}, {2.0}, {3.0}}, {{1.1}, {2.1}, {3.1}}}),
              ElementsAre(1.0, 0.0));
  // The second is worse in one objective and better in the other: both are on the front.
  EXPECT_THAT(*front_probability(
                  {{{1.0, 5.0}, {2.0, 5.0}}, {{1.1, 4.0}, {2.1, 4.0}}, {{1.2, 6.0}, {2.2, 6.0}}}),
              ElementsAre(1.0, 1.0, 0.0));
}

TEST(FrontProbability, EqualOnesShareBeingTheBestAndAreAllOnTheFront) {
  const Points alone{{1.0}, {2.0}, {4.0}};
  EXPECT_THAT(*front_probability({alone, alone}), ElementsAre(0.5, 0.5));
  const Points both{{1.0, 3.0}, {2.0, 3.0}, {4.0, 3.0}};
  EXPECT_THAT(*front_probability({both, both}), ElementsAre(1.0, 1.0));
}

TEST(FrontProbability, OneSeedOrNoneAllowsNoConclusion) {
  EXPECT_FALSE(front_probability({{{1.0}}, {{2.0}}}));
  EXPECT_FALSE(front_probability({}));
}

TEST(FrontProbability, ResamplesAreThoseOfASeedForAllCandidates) {
  // Differences -1, -1, 1 whatever the seed does to both, and two seeds are drawn.
  // First better: (-1, -1), 4 of 9 draws; equal: (-1, 1), 4 of 9; worse: 1 of 9.
  const auto shares =
      *front_probability({{{9.0}, {19.0}, {31.0}}, {{10.0}, {20.0}, {30.0}}}, false, 100000);
  EXPECT_THAT(shares, ElementsAre(DoubleNear(6.0 / 9.0, 0.01), DoubleNear(3.0 / 9.0, 0.01)));
}

TEST(FrontProbability, WhatCouldNotBeMeasuredIsDominated) {
  EXPECT_THAT(*front_probability({{{1.0}, {2.0}}, {{}, {}}}), ElementsAre(1.0, 0.0));
  EXPECT_THAT(*front_probability({{{}, {}}, {{}, {}}}), ElementsAre(0.0, 0.0));
  // n = 2: one seed is drawn; at the second the better one is missing.
  const auto shares = *front_probability({{{1.0}, {}}, {{2.0}, {2.0}}}, false, 100000);
  EXPECT_THAT(shares, ElementsAre(DoubleNear(0.5, 0.01), DoubleNear(0.5, 0.01)));
}

TEST(FrontProbability, OneFailureAmongTheDrawnSeedsIsAFailureUnlessItIsJudged) {
  // n = 3: two seeds are drawn; the third of the better one is missing in 5 of 9 draws.
  const std::vector<Points> samples{{{1.0}, {1.0}, {}}, {{2.0}, {2.0}, {2.0}}};
  EXPECT_THAT(*front_probability(samples, false, 100000),
              ElementsAre(DoubleNear(4.0 / 9.0, 0.01), DoubleNear(5.0 / 9.0, 0.01)));
  // Where that is judged, only both draws of it leave nothing.
  EXPECT_THAT(*front_probability(samples, true, 100000),
              ElementsAre(DoubleNear(8.0 / 9.0, 0.01), DoubleNear(1.0 / 9.0, 0.01)));
}

TEST(FrontProbability, ResampledMeansHaveTheVarianceOfTheMean) {
  // 16 seeds, differences with mean 0.5 and standard error s / 4: the probability is that of a normal variable.
  RandomEngine random(derive_seed(4, 0, "noise", 0));
  Points first;
  Points second;
  double sum = 0.0;
  double squares = 0.0;
  for (int i = 0; i < 16; ++i) {
    const double difference = 3.0 * (random.uniform() + random.uniform() - 1.0) + 0.3;
    first.push_back({0.0});
    second.push_back({difference});
    sum += difference;
    squares += difference * difference;
  }
  const double mean = sum / 16.0;
  const double error = std::sqrt((squares / 16.0 - mean * mean) / 15.0);
  const double expected = 0.5 * std::erfc(-mean / error / std::sqrt(2.0));
  EXPECT_GT(expected, 0.6);
  EXPECT_LT(expected, 0.95);
  EXPECT_NEAR((*front_probability({first, second}, false, 100000))[0], expected, 0.015);
}

}  // namespace
}  // namespace nas
