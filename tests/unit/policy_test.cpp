#include "evaluation/policy.hpp"

#include "prelude.hpp"

namespace nas::testing {
namespace {

TEST(Replicates, OfAKnownCandidateThePolicyDecides) {
  const auto completed = answering_replicates(Repeated::reuse, 3, 1);
  EXPECT_EQ(completed.first, 0);
  EXPECT_EQ(completed.num_fresh(), 2) << "one was paused at a rung";
  const auto reused = answering_replicates(Repeated::reuse, 2, 2);
  EXPECT_EQ(reused.num_fresh(), 0);
  EXPECT_EQ(reused.end - reused.first, 2);
  const auto retrained = answering_replicates(Repeated::retrain, 2, 4);
  EXPECT_EQ(retrained.first, 4);
  EXPECT_EQ(retrained.end, 6);
  const auto replicated = answering_replicates(Repeated::replicate, 2, 4);
  EXPECT_EQ(replicated.first, 0);
  EXPECT_EQ(replicated.end, 6);
  EXPECT_EQ(replicated.num_fresh(), 2);
}

TEST(Arrays, AreAsFewAsTheirWidthAllowsButLeaveNoWorkerIdle) {
  EXPECT_EQ(num_arrays(0, 2, 8), 0U);
  EXPECT_EQ(num_arrays(7, 2, 1), 7U);  // no arrays: one task after the other
  EXPECT_EQ(num_arrays(7, 1, 7), 1U);
  EXPECT_EQ(num_arrays(7, 1, 6), 2U);
  EXPECT_EQ(num_arrays(12, 2, 100), 2U);
  EXPECT_EQ(num_arrays(12, 2, 4), 4U);
  EXPECT_EQ(num_arrays(3, 8, 4), 3U);
}

TEST(Budget, IsUsedUpOnceItsSecondsAreReached) {
  const Budget budget{.train_seconds = 90.0};
  EXPECT_EQ(budget.used_up_by(89.9), "");
  EXPECT_EQ(budget.used_up_by(90.0), "1 min 30 s of training");
  EXPECT_EQ(Budget{.train_seconds = 0.45}.used_up_by(1.0), "0.45 s of training");
  EXPECT_EQ(Budget{}.used_up_by(1e9), "");
}

}  // namespace
}  // namespace nas::testing
