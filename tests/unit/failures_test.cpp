#include "statistics/failures.hpp"

#include <iostream>
#include <random>

#include "places.hpp"
#include "prelude.hpp"
#include "store/replicates.hpp"
#include "table/table.hpp"

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

/// Values of a table's mechanisms that have been trained with 20 seeds.
std::vector<Numbers> with_twenty_seeds(const std::string& name,
                                       const std::function<double(const Evaluation&)>& value_of) {
  const Table table(source_folder() + "/problems/tables/" + name + ".table");
  std::vector<Numbers> rows;
  for (std::int64_t i = 0; i < table.num_mechanisms(); ++i) {
    Numbers row;
    for (std::int64_t k = 0; k < 20 && table.has(i, k); ++k) {
      row.push_back(value_of(table.evaluation(i, k)));
    }
    if (row.size() == 20) rows.push_back(std::move(row));
  }
  return rows;
}

double mean_of(const Numbers& values) { return estimate(values).mean; }

/// Of recall, of which runs fail: that intervals of mean accuracies, and of shares that solve it, hold what all
/// 20 seeds have.
TEST(Failures, IntervalsOfFewSeedsHoldWhatTwentyHave) {
  const auto rows = with_twenty_seeds(
      "recall", [](const Evaluation& run) { return 1.0 - test_scores(run).accuracy(); });
  ASSERT_EQ(rows.size(), 87U);
  const double plateau = 0.5;  // a guess among two values
  std::mt19937_64 random(1);   // NOLINT: the same draws every time
  for (const std::size_t n : {5U, 8U, 15U}) {
    double means = 0.0;
    double shares = 0.0;
    double student = 0.0;
    constexpr int kDraws = 40;
    for (const auto& row : rows) {
      auto drawn = row;
      const auto whole = failures_of({row}, plateau);
      for (int i = 0; i < kDraws; ++i) {
        std::shuffle(drawn.begin(), drawn.end(), random);
        const Numbers few(drawn.begin(), drawn.begin() + static_cast<std::ptrdiff_t>(n));
        const auto failures = failures_of({few}, plateau);
        std::vector<bool> failed;
        for (const double value : few) failed.push_back(failures.fails(value));
        const auto found = within(0.0, 1.0, estimate_with_failures(few, failed, plateau));
        const auto naive = estimate(few);
        const auto share = share_solved(few, whole);
        const auto truth = static_cast<double>(share_solved(row, whole).count) / 20.0;
        const double mean = mean_of(row);
        means += found.low <= mean && mean <= found.high ? 1.0 : 0.0;
        student += naive.low <= mean && mean <= naive.high ? 1.0 : 0.0;
        shares += share.low <= truth && truth <= share.high ? 1.0 : 0.0;
      }
    }
    const double all = static_cast<double>(kDraws * rows.size());
    std::cout << n << " seeds: intervals of accuracies hold in " << 100.0 * means / all
              << " %, of shares in " << 100.0 * shares / all << " %, Student's in "
              << 100.0 * student / all << " %\n";
    EXPECT_GE(means / all, 0.93) << n;
    EXPECT_GE(shares / all, 0.93) << n;
    EXPECT_LT(student / all, 0.93) << "what it is for";
  }
}

}  // namespace
}  // namespace nas
