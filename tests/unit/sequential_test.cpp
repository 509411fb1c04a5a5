#include "statistics/sequential.hpp"

#include "prelude.hpp"

namespace nas {
namespace {

using Numbers = std::vector<double>;

/// E_n by numerical integration over the effect and the standard deviation.
double evidence(const Numbers& values, double g) {
  const auto n = static_cast<double>(values.size());
  const auto likelihood = [&](double effect) {  // of (effect s, s), 1/s ds, on a grid of ln s
    double sum = 0.0;
    for (double log_s = -8.0; log_s < 8.0; log_s += 0.01) {
      const double s = std::exp(log_s);
      double squares = 0.0;
      for (const double value : values) squares += std::pow(value / s - effect, 2.0);
      sum += std::exp(-0.5 * squares - n * log_s);
    }
    return sum;
  };
  double mixed = 0.0;
  double weights = 0.0;
  for (double effect = -12.0; effect <= 12.0; effect += 0.05) {
    const double weight = std::exp(-0.5 * effect * effect / g);
    mixed += weight * likelihood(effect);
    weights += weight;
  }
  return mixed / weights / likelihood(0.0);
}

TEST(Anytime, TheEvidenceIsThatOfTheMixture) {
  const Numbers values{0.9, 1.3, 0.2, 1.1, 0.7};
  const auto compared = compare_anytime(values, Numbers(values.size(), 0.0));
  EXPECT_NEAR(1.0 / compared.p / evidence(values, 4.0), 1.0, 0.01);
  EXPECT_NEAR(compared.difference.mean, 0.84, 1e-12);
}

TEST(Anytime, TheIntervalEndsWhereTheEvidenceRejects) {
  const Numbers values{0.9, 1.3, 0.2, 1.1, 0.7, 0.4};
  const auto compared = compare_anytime(values, Numbers(values.size(), 0.0), 0.9);
  for (const double end : {compared.difference.low, compared.difference.high}) {
    EXPECT_NEAR(compare_anytime(values, Numbers(values.size(), end), 0.9).p, 0.1, 1e-9);
  }
  EXPECT_LT(compared.difference.low, compare_paired(values, Numbers(6, 0.0), 0.9).difference.low);
  EXPECT_EQ(anytime_quantile(3, 0.05), std::numeric_limits<double>::infinity());
  EXPECT_NEAR(anytime_quantile(4, 0.05), 7.22, 0.01);
  EXPECT_NEAR(anytime_quantile(20, 0.05), 3.63, 0.01);
}

TEST(Anytime, PairsThatDifferByTheSameAreNoEvidenceBeyondTheirSigns) {
  EXPECT_EQ(compare_anytime(Numbers{1, 2, 3, 4}, Numbers{0, 1, 2, 3}).p, 0.125);
  EXPECT_EQ(compare_anytime(Numbers{1, 2, 3, 4}, Numbers{1, 2, 3, 4}).p, 1.0);
  EXPECT_EQ(compare_anytime(Numbers{1}, Numbers{0}).p, 1.0);
}

TEST(Anytime, ADecisionIsASignOrABound) {
  const auto decided = [](double mean, double half, double p) {
    const Estimate found{.mean = mean, .standard_error = half / anytime_quantile(8, 0.05), .n = 8};
    return decide(found, p, p_beyond(found, 0.03), 0.05);
  };
  EXPECT_EQ(decided(-0.02, 0.01, 0.01), Decision::better);
  EXPECT_EQ(decided(0.5, 0.4, 0.05), Decision::worse);
  EXPECT_EQ(decided(0.01, 0.0199, 0.3), Decision::within);
  EXPECT_EQ(decided(0.01, 0.021, 0.3), Decision::open);
  EXPECT_EQ(decided(-0.02, 0.0099, 0.06), Decision::within) << "corrected";
}

TEST(Anytime, PairsThatDifferByTheSameAreWithinByTheirSigns) {
  const Estimate equal{.mean = 0.01, .standard_error = 0.0, .n = 4};
  EXPECT_EQ(p_beyond(equal, 0.03), 0.125);
  EXPECT_EQ(p_beyond(equal, 0.01), 1.0) << "the bound itself";
}

TEST(Anytime, GroupsGrowByAQuarter) {
  std::vector<std::int64_t> groups{kFirstSeeds};
  while (groups.back() < 20) groups.push_back(next_seeds(groups.back(), 20));
  EXPECT_THAT(groups, ElementsAre(4, 6, 8, 10, 12, 15, 18, 20));
}

TEST(SeedsNeeded, ShowADifferenceOfThatSize) {
  // One standard deviation: 10 pairs have a power of 0.80 in every table of paired t-tests.
  const Estimate one{.mean = 1.0, .standard_error = 0.5, .n = 4, .low = 0.0, .high = 0.0};
  EXPECT_EQ(seeds_to_show(one, 0.05), 10);
  EXPECT_GT(seeds_to_decide(one, 0.05, 0.01).value(), 10) << "what may be looked at needs more";
  const Estimate none{.mean = 0.0, .standard_error = 0.5, .n = 4, .low = 0.0, .high = 0.0};
  EXPECT_EQ(seeds_to_show(none, 0.05), std::nullopt);
  EXPECT_GT(seeds_to_decide(none, 0.05, 1.0).value(), 4) << "that it is within the bound";
  const Estimate equal{.mean = 1.0, .standard_error = 0.0, .n = 4, .low = 1.0, .high = 1.0};
  EXPECT_EQ(seeds_to_show(equal, 0.05), std::nullopt);
}

}  // namespace
}  // namespace nas
