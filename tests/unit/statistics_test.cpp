#include "statistics/statistics.hpp"

#include <numeric>
#include <stdexcept>

#include "core/seed.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

// Student's sleep data (1908): extra hours of sleep under two drugs, ten patients.
const std::vector<double> kFirst{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
const std::vector<double> kSecond{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};

TEST(Estimate, IsTheTInterval) {
  const auto mean = estimate(kFirst);
  EXPECT_NEAR(mean.mean, 0.75, 1e-12);
  EXPECT_NEAR(mean.standard_error, 0.5657345, 1e-7);
  EXPECT_NEAR(mean.low, 0.75 - 2.2621572 * 0.5657345, 1e-6);
  EXPECT_NEAR(mean.high, 0.75 + 2.2621572 * 0.5657345, 1e-6);
  EXPECT_EQ(mean.n, 10);
}

TEST(Estimate, OneValueSaysNothingOfItsError) {
  const auto mean = estimate(std::vector<double>{3.0});
  EXPECT_EQ(mean.mean, 3.0);
  EXPECT_TRUE(std::isinf(mean.standard_error));
  EXPECT_TRUE(std::isinf(mean.low));
  EXPECT_THROW(estimate(std::vector<double>{}), std::logic_error);
}

TEST(Median, IsTheMiddleOrTheMeanOfTheTwoThere) {
  EXPECT_EQ(median({3.0}), 3.0);
  EXPECT_EQ(median({5.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(median({4.0, 1.0, 9.0, 2.0}), 3.0);
}

TEST(Median, HasAnIntervalOfOrderStatistics) {
  // Tables of the sign test: of 6 values the ends, of 20 the 6th from each.
  EXPECT_EQ(median_interval({3, 1, 2, 6, 5, 4}), std::make_pair(1.0, 6.0));
  std::vector<double> values(20);
  std::iota(values.begin(), values.end(), 1.0);
  EXPECT_EQ(median_interval(values), std::make_pair(6.0, 15.0));
  EXPECT_TRUE(std::isinf(median_interval({1, 2, 3, 4, 5}).first));
}

TEST(ComparePaired, AgreesWithThePublishedTest) {
  const auto comparison = compare_paired(kFirst, kSecond);
  EXPECT_NEAR(comparison.difference.mean, -1.58, 1e-12);
  EXPECT_NEAR(comparison.p, 0.00283289, 1e-8);
  EXPECT_NEAR(comparison.difference.low, -2.4598858, 1e-6);
  EXPECT_NEAR(comparison.difference.high, -0.7001142, 1e-6);
  EXPECT_NEAR(comparison.effect_size, -1.58 / 1.2299955 * (1.0 - 3.0 / 35.0), 1e-6);
  EXPECT_THROW(compare_paired(kFirst, std::vector<double>{1.0}), std::logic_error);
}

TEST(ComparePaired, EqualPairsAndSinglePairs) {
  EXPECT_EQ(compare_paired(kFirst, kFirst).p, 1.0);
  EXPECT_EQ(compare_paired(kFirst, kFirst).effect_size, 0.0);
  const std::vector<double> one{1.0};
  const std::vector<double> two{2.0};
  EXPECT_EQ(compare_paired(one, two).p, 1.0);
  EXPECT_TRUE(std::isnan(compare_paired(one, two).effect_size));
  const std::vector<double> first{1.0, 2.0};
  const std::vector<double> second{1.5, 3.5};
  EXPECT_TRUE(std::isnan(compare_paired(first, second).effect_size));
  EXPECT_LT(compare_paired(first, second).p, 1.0);
}

TEST(ComparePaired, DifferencesThatAreAllEqualAreAsFewAsTheyAre) {
  const std::vector<double> a{1.0, 2.0, 4.0};
  const std::vector<double> b{1.5, 2.5, 4.5};
  EXPECT_EQ(compare_paired(a, b).p, 0.25);
  EXPECT_EQ(compare_paired(a, a).p, 1.0);
  const std::vector<double> flops{1e6, 1e6, 1e6};
  const std::vector<double> more{2e6, 2e6, 2e6};
  EXPECT_EQ(compare_paired(flops, more).p, 0.25)
      << "three seeds that change nothing are three seeds";
  EXPECT_EQ(compare_paired(flops, flops).p, 1.0);
  const std::vector<double> right{0.2 + 0.1, 0.3 + 0.1, 0.7 + 0.1};
  const std::vector<double> wrong{0.2, 0.3, 0.7};
  const auto rounded = compare_paired(right, wrong);
  EXPECT_EQ(rounded.p, 0.25) << "they differ by 1e-17";
  EXPECT_EQ(rounded.difference.standard_error, 0.0);
  EXPECT_TRUE(std::isnan(rounded.effect_size));
  const std::vector<double> alike{0.2 + 0.1 - 0.1, 0.3 + 0.1 - 0.1, 0.7 + 0.1 - 0.1};
  EXPECT_EQ(compare_paired(alike, wrong).p, 1.0);
}

TEST(ComparePaired, IntervalsCoverAsOftenAsTheySay) {
  RandomEngine random(derive_seed(1, 0, "coverage", 0));
  const auto normal = [&random] {  // Box and Muller
    return std::sqrt(-2.0 * std::log(1.0 - random.uniform())) *
           std::cos(6.283185307179586 * random.uniform());
  };
  int covered = 0;
  constexpr int kRuns = 4000;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> a;
    std::vector<double> b;
    for (int i = 0; i < 5; ++i) {
      const double seed = 3.0 * normal();
      a.push_back(seed + normal() + 0.5);
      b.push_back(seed + normal());
    }
    const auto interval = compare_paired(a, b).difference;
    covered += interval.low <= 0.5 && 0.5 <= interval.high ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(covered) / kRuns, 0.95, 0.0125);  // 3.6 standard errors
}

TEST(ComparePaired, NothingIsInfiniteWithoutVariance) {
  for (const double level : {0.0, 0.1, 1.0, 34.56, 70176.0, 1e-9, 3.3e12}) {
    for (const std::size_t n : {1UL, 2UL, 3UL, 5UL, 12UL}) {
      const std::vector<double> same(n, level);
      for (const double other : {level, 2.0 * level, level + 1.0}) {
        auto varied = std::vector<double>(n, other);
        for (const bool one_differs : {false, true}) {
          if (one_differs) varied.back() *= 1.5;
          const auto found = compare_paired(same, varied);
          EXPECT_FALSE(std::isinf(found.effect_size)) << level << ' ' << other << ' ' << n;
          EXPECT_GE(found.p, one_differs ? 0.0 : std::exp2(1.0 - static_cast<double>(n)));
        }
      }
    }
  }
}

TEST(Estimate, BoundsAreWhatCanBe) {
  const std::vector<double> accuracies{0.99, 1.0, 1.0};
  EXPECT_GT(estimate(accuracies).high, 1.0);
  const auto known = within(0.0, 1.0, estimate(accuracies));
  EXPECT_EQ(known.high, 1.0);
  EXPECT_EQ(known.low, estimate(accuracies).low);
  EXPECT_EQ(known.mean, estimate(accuracies).mean);
  const std::vector<double> perplexities{1.0, 1.4};
  EXPECT_EQ(within(1.0, std::numeric_limits<double>::infinity(), estimate(perplexities)).low, 1.0);
  const std::vector<double> one{0.5};
  EXPECT_EQ(within(0.0, std::numeric_limits<double>::infinity(), estimate(one)).low,
            -std::numeric_limits<double>::infinity());
}

TEST(Holm, StepsDown) {
  // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
  EXPECT_THAT(holm(std::vector<double>{0.01, 0.04, 0.03, 0.005}),
              ElementsAre(DoubleNear(0.03, 1e-12), DoubleNear(0.06, 1e-12), DoubleNear(0.06, 1e-12),
                          DoubleNear(0.02, 1e-12)));
  EXPECT_THAT(holm(std::vector<double>{0.6, 0.7}), ElementsAre(1.0, 1.0));
  EXPECT_TRUE(holm(std::vector<double>{}).empty());
}

}  // namespace
}  // namespace nas
