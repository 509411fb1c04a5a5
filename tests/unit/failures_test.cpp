#include "statistics/failures.hpp"

#include "prelude.hpp"

namespace nas {
namespace {

using Numbers = std::vector<double>;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

TEST(Failures, LieBeyondHalfOfTheWayToThePlateau) {
  const auto failures = failures_of({{0.0, 0.01, 0.02, 0.03, 0.7}, {0.2, 0.3, 0.7, 0.7}}, 0.61);
  EXPECT_DOUBLE_EQ(failures.solved, 0.01) << "the lower quartile of the best row";
  EXPECT_DOUBLE_EQ(failures.line, 0.31);
  EXPECT_DOUBLE_EQ(failures.cost(), 0.6);
  EXPECT_FALSE(failures.fails(0.31));
  EXPECT_TRUE(failures.fails(0.32));
  EXPECT_TRUE(failures.fails(kNone)) << "it came to nothing";
}

TEST(Failures, AreNoneWhereRunsDifferContinuously) {
  const Numbers runs{2.00, 2.01, 2.02, 2.03};  // standard deviation 0.013, 0.029 at most
  EXPECT_TRUE(std::isinf(failures_of({runs}, 2.24).line)) << "3.9 deviations";
  EXPECT_DOUBLE_EQ(failures_of({runs}, 2.25).line, 2.13);
  EXPECT_TRUE(std::isinf(failures_of({{2.0, 9.0}, {9.0, 9.0}}, 8.0).line)) << "one run alone";
  EXPECT_TRUE(std::isinf(failures_of({runs}, 1.9).line)) << "what needs no attention is better";
  EXPECT_EQ(failures_of({runs}, 1.9).cost(), 0.0);
  EXPECT_TRUE(std::isinf(failures_of({runs}, kNone).line));
  EXPECT_TRUE(std::isinf(failures_of({runs}, kNone).cost())) << "nobody knows what one loses";
  EXPECT_TRUE(std::isinf(failures_of({{kNone, kNone}}, 2.0).line));
}

TEST(Failures, FiftyNineRunsWithoutOneExcludeFivePercent) {
  EXPECT_EQ(runs_to_exclude(0.05), 59);
  EXPECT_EQ(runs_to_exclude(0.5), 5);
  EXPECT_EQ(runs_to_exclude(1.0), 1);
  EXPECT_EQ(runs_to_exclude(0.0), std::nullopt);
  EXPECT_NEAR(share_not_excluded(4), 0.527, 0.001);
  EXPECT_NEAR(share_not_excluded(59), 0.0495, 0.0001);
}

TEST(Failures, SharesHaveExactIntervals) {
  const Failures failures{.solved = 0.0, .plateau = 1.0, .line = 0.5};
  const auto share = share_solved(Numbers{0.1, 0.2, 0.1, 0.3, 0.4}, failures);
  EXPECT_EQ(share.count, 5);
  EXPECT_NEAR(share.low, 0.478, 0.001);
  EXPECT_EQ(share.high, 1.0);
  EXPECT_NEAR(share_solved(Numbers{0.1, kNone, 0.9, 0.3}, failures).high, 0.932, 0.001);
}

TEST(Failures, SharesAreComparedByPairsOfWhichOneFails) {
  const Failures failures{.solved = 0.0, .plateau = 1.0, .line = 0.5};
  const Numbers fails(6, 0.9);
  const Numbers solves(6, 0.1);
  EXPECT_NEAR(compare_shares(fails, solves, failures), 2.0 / 64.0, 1e-12);
  EXPECT_EQ(compare_shares(fails, fails, failures), 1.0);
  EXPECT_NEAR(compare_shares(Numbers{0.9, 0.9, 0.1, 0.9}, Numbers{0.1, 0.1, 0.9, 0.9}, failures),
              1.0, 1e-12)
      << "two against one";
}

TEST(Failures, AMeanReachesAsFarAsTheFailuresThatMayStillCome) {
  const Numbers solved{1.0, 1.0, 1.0, 1.0, 1.0};
  const auto found = estimate_with_failures(solved, std::vector<bool>(5, false), 0.5);
  EXPECT_EQ(found.mean, 1.0);
  EXPECT_NEAR(found.low, 0.478 + 0.522 * 0.5, 0.001);
  EXPECT_EQ(found.high, 1.0);
  EXPECT_EQ(estimate_with_failures(solved, std::vector<bool>(5, false), kNone).low, 1.0)
      << "of which nothing is known";
}

}  // namespace
}  // namespace nas
