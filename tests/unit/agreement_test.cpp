#include "statistics/agreement.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

namespace nas {
namespace {

using Values = std::vector<double>;

// Six targets, four judges: Shrout & Fleiss (1979), table 2; they give ICC(1,1) = 0.17, ICC(3,1) = 0.71.
TEST(IntraclassCorrelation, AsPublished) {
  const std::vector<Values> judged{{9, 2, 5, 8}, {6, 1, 3, 2},  {8, 4, 6, 8},
                                   {7, 1, 2, 6}, {10, 5, 6, 9}, {6, 2, 4, 7}};
  EXPECT_NEAR(intraclass_correlation(judged), 0.16574176840547544, 1e-14);
  EXPECT_NEAR(consistency_correlation(judged), 0.7148407148407149, 1e-14);
}

TEST(IntraclassCorrelation, OfColumnsThatMoveAllGroupsAlike) {
  EXPECT_NEAR(consistency_correlation({{1, 102}, {2, 102}, {4, 105}}), 0.9375, 1e-12);
  EXPECT_TRUE(std::isnan(consistency_correlation({{1, 3}, {2, 4}}))) << "nothing else varies";
  EXPECT_TRUE(std::isnan(consistency_correlation({{1, 3}})));
  EXPECT_TRUE(std::isnan(consistency_correlation({{1}, {2}})));
  EXPECT_TRUE(std::isnan(consistency_correlation({})));
}

TEST(IntraclassCorrelation, GroupsOfSeveralSizes) {
  EXPECT_NEAR(intraclass_correlation({{1, 2, 4}, {7, 9}, {}, {3}}), 0.8163606010016695, 1e-14);
}

TEST(IntraclassCorrelation, Extremes) {
  EXPECT_GT(intraclass_correlation({{1, 1 + 1e-6}, {2, 2}}), 0.999);
  EXPECT_EQ(intraclass_correlation({{1, 2}, {1, 2}}), -1.0);
  EXPECT_TRUE(std::isnan(intraclass_correlation({{1}, {2}})));
  EXPECT_TRUE(std::isnan(intraclass_correlation({{1, 2}, {}})));
}

TEST(IntraclassCorrelation, OfNoVarianceWithinGroupsIsUnknown) {
  for (const double level : {0.0, 0.1, 1.0, 34.56, 70176.0, 1e-9, 3.3e12}) {
    for (const double step : {0.0, 1.0, level}) {
      for (const std::size_t n : {1UL, 2UL, 3UL, 7UL}) {
        std::vector<std::vector<double>> groups;
        for (int group = 0; group < 5; ++group) groups.emplace_back(n, level + step * group);
        EXPECT_TRUE(std::isnan(intraclass_correlation(groups))) << level << ' ' << step << ' ' << n;
        groups.resize(1);
        EXPECT_TRUE(std::isnan(intraclass_correlation(groups))) << level << ' ' << n;
      }
    }
  }
}

// Reference values by SciPy 1.10.
TEST(RankCorrelation, SharesRanksOfEqualValues) {
  EXPECT_NEAR(rank_correlation(Values{3, 1, 4, 1, 5, 9, 2}, Values{2, 7, 1, 8, 2, 8, 1}),
              -0.08334762598987158, 1e-14);
}

TEST(RankCorrelation, HasNoOrderOfNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(rank_correlation(Values{1, nan, 3}, Values{1, 2, 3})));
  EXPECT_TRUE(std::isnan(rank_correlation(Values{1, 2, 3}, Values{nan, nan, nan})));
}

TEST(RankCorrelation, SeesOrderOnly) {
  EXPECT_DOUBLE_EQ(rank_correlation(Values{1, 2, 3}, Values{-5, 0, 1e9}), 1.0);
  EXPECT_DOUBLE_EQ(rank_correlation(Values{1, 2, 3}, Values{3, 2, 1}), -1.0);
  EXPECT_TRUE(std::isnan(rank_correlation(Values{1, 2}, Values{4, 4})));
  EXPECT_TRUE(std::isnan(rank_correlation(Values{}, Values{})));
  EXPECT_THROW((void)rank_correlation(Values{1}, Values{}), std::logic_error);
}

// By hand: tanh(atanh(0.5) -+ 1.959964 sqrt(1.125 / 97)).
TEST(RankCorrelationInterval, AsPublished) {
  const auto [low, high] = rank_correlation_interval(0.5, 100);
  EXPECT_NEAR(low, 0.325897, 1e-6);
  EXPECT_NEAR(high, 0.641302, 1e-6);
}

TEST(RankCorrelationInterval, Extremes) {
  for (const std::int64_t n : {4, 5, 10, 100}) {
    const auto [low, high] = rank_correlation_interval(1.0, n);
    EXPECT_EQ(high, 1.0);
    EXPECT_LT(low, 1.0) << "equal orders of some are not yet equal orders of all";
    EXPECT_EQ(rank_correlation_interval(-1.0, n), std::pair(-high, -low));
  }
  EXPECT_EQ(rank_correlation_interval(0.5, 3), std::pair(-1.0, 1.0));
  EXPECT_TRUE(std::isnan(rank_correlation_interval(std::nan(""), 10).first));
}

}  // namespace
}  // namespace nas
