#include "table/outcome.hpp"

#include "prelude.hpp"

namespace nas::testing {
namespace {

ObjectiveSet objectives(std::size_t number) {
  ObjectiveSet set;
  for (const std::string name : {"a", "b"}) {
    if (set.objectives.size() == number) break;
    set.objectives.push_back({.name = name,
                              .key = name,
                              .settings = {},
                              .objective = {.unit = "1"},
                              .range = Range{.best = 0.0, .worst = 10.0}});
  }
  return set;
}

TEST(NumRecycled, CountsByCandidateWhatIsChargedBeyondTheReplicates) {
  EXPECT_EQ(num_recycled({}, 3), 0);
  // Of candidate 4 two, none and three training runs, of candidate 1 three.
  const Trajectory trajectory{.candidates = {4, 1, 4, 4}, .trained = {2, 5, 5, 8}};
  EXPECT_EQ(num_recycled(trajectory, 5), 0);
  EXPECT_EQ(num_recycled(trajectory, 3), 2);
  EXPECT_EQ(num_recycled(trajectory, 2), 4);
}

/// Of one objective, the regret of what a search believes best.
TEST(Truth, IsTheRegretOfWhatIsHandedOver) {
  const auto set = objectives(1);
  const Truth truth(set, {{5.0}, {3.0}, {4.0}});
  EXPECT_EQ(truth.best(), 3.0);
  const auto returned = [&](const Trajectory& trajectory, Trust trust) {
    return truth.returned(trajectory, trust);
  };
  EXPECT_EQ(returned({.candidates = {1, 2}, .fitness = {3.5, 3.0}}, Trust::latest), 1.0);
  EXPECT_EQ(returned({.candidates = {2, 1}, .fitness = {3.6, 3.5}}, Trust::latest), 0.0);
  const Trajectory lucky_at_last{.candidates = {0, 1, 0}, .fitness = {9.0, 2.0, 1.0}};
  EXPECT_EQ(returned(lucky_at_last, Trust::latest), 2.0);
  EXPECT_EQ(returned(lucky_at_last, Trust::mean), 0.0) << "each answer is a training run";
  const Trajectory lucky_at_first{.candidates = {0, 1, 0}, .fitness = {1.0, 2.0, 9.0}};
  EXPECT_EQ(returned(lucky_at_first, Trust::latest), 0.0);
  EXPECT_EQ(returned(lucky_at_first, Trust::best_answer), 2.0);
  // Of equal beliefs the first that was asked for.
  EXPECT_EQ(returned({.candidates = {1, 0}, .fitness = {1.0, 1.0}}, Trust::latest), 0.0);
  EXPECT_EQ(returned({.candidates = {0, 1}, .fitness = {1.0, 1.0}}, Trust::latest), 2.0);
}

/// As a search believes: means are over what was trained and allowed.
TEST(Truth, FailuresAreNoAnswers) {
  const auto set = objectives(1);
  const Truth truth(set, {{3.0}, {5.0}});
  const double failure = set.failure().front();
  const Trajectory once_failed{.candidates = {0, 0, 1}, .fitness = {failure, 2.0, 4.0}};
  EXPECT_EQ(truth.returned(once_failed, Trust::mean), 0.0);
  EXPECT_EQ(truth.returned(once_failed, Trust::best_answer), 0.0);
  const Trajectory failed_at_last{.candidates = {0, 1, 0}, .fitness = {2.0, 4.0, failure}};
  EXPECT_EQ(truth.returned(failed_at_last, Trust::latest), 2.0);
  const Trajectory nothing_else{.candidates = {0, 1}, .fitness = {failure, failure}};
  EXPECT_EQ(truth.returned(nothing_else, Trust::latest), failure - 3.0);
  const auto two = objectives(2);
  const auto both = two.failure();
  EXPECT_EQ(Truth(two, {{3.0, 3.0}}).returned({.candidates = {0}, .fitness = both}, Trust::mean),
            0.0);
}

TEST(Truth, OfEverythingEvaluatedIsTheBestThatASearchCouldHaveHandedOver) {
  const auto one = objectives(1);
  const Trajectory missed{.candidates = {1, 0}, .fitness = {2.0, 1.0}};
  EXPECT_EQ(Truth(one, {{5.0}, {3.0}}).returned(missed, Trust::latest), 2.0);
  EXPECT_EQ(Truth(one, {{5.0}, {3.0}}).everything(missed), 0.0);
  const auto two = objectives(2);
  const Truth truth(two, {{0.0, 10.0}, {10.0, 0.0}, {5.0, 5.0}});
  const Trajectory seen{.candidates = {0, 1, 2}, .fitness = {1.0, 4.0, 4.0, 1.0, 6.0, 6.0}};
  EXPECT_LT(truth.returned(seen, Trust::latest), 1.0);
  EXPECT_NEAR(truth.everything(seen), 1.0, 1e-12);
}

TEST(Truth, WhatIsBelievedFollowsFromTheRecordedSettings) {
  const auto settings = [](const char* text) { return nlohmann::json::parse(text); };
  EXPECT_EQ(trust_of(settings(R"({"evaluation": {"repeated": "reuse"}})")), Trust::latest);
  EXPECT_EQ(trust_of(settings(R"({"evaluation": {"repeated": "retrain"}})")), Trust::mean);
  EXPECT_EQ(
      trust_of(settings(R"({"belief": "best_answer", "evaluation": {"repeated": "retrain"}})")),
      Trust::best_answer);
}

TEST(Truth, OfSeveralObjectivesIsAShareOfTheHypervolume) {
  const auto set = objectives(2);
  const Truth truth(set, {{0.0, 10.0}, {10.0, 0.0}, {5.0, 5.0}});
  // Reference 1.1: two strips of 1.1 x 0.1, and a square of 0.6 that overlaps each by 0.1 x 0.6.
  const double all = 2 * 1.1 * 0.1 - 0.01 + 0.5 * 0.5;
  EXPECT_NEAR(truth.best(), all, 1e-12);
  // The third looks dominated; what is believed of the others does not matter.
  const Trajectory seen{.candidates = {0, 1, 2}, .fitness = {1.0, 4.0, 4.0, 1.0, 6.0, 6.0}};
  EXPECT_NEAR(truth.returned(seen, Trust::latest), (2 * 1.1 * 0.1 - 0.01) / all, 1e-12);
}

TEST(Truth, ASearchThatSawNothingIsWorthNothingKnown) {
  const auto set = objectives(1);
  EXPECT_TRUE(std::isnan(Truth(set, {{5.0}}).returned({}, Trust::latest)));
}

}  // namespace
}  // namespace nas::testing
