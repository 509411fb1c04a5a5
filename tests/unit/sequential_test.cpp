#include "statistics/sequential.hpp"

#include <cmath>
#include <iostream>
#include <limits>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "places.hpp"
#include "store/evaluation.hpp"
#include "table/table.hpp"

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
    return decide({.mean = mean, .n = 8, .low = mean - half, .high = mean + half}, p, 0.05, 0.03);
  };
  EXPECT_EQ(decided(-0.02, 0.01, 0.01), Decision::better);
  EXPECT_EQ(decided(0.5, 0.4, 0.05), Decision::worse);
  EXPECT_EQ(decided(0.01, 0.02, 0.3), Decision::within);
  EXPECT_EQ(decided(0.01, 0.021, 0.3), Decision::open);
  EXPECT_EQ(decided(-0.02, 0.01, 0.06), Decision::within) << "corrected";
}

TEST(Anytime, GroupsGrowByAQuarter) {
  std::vector<std::int64_t> groups{kFirstSeeds};
  while (groups.back() < 20) groups.push_back(next_seeds(groups.back(), 20));
  EXPECT_THAT(groups, ::testing::ElementsAre(4, 6, 8, 10, 12, 15, 18, 20));
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

/// Differences from the vanilla mechanism of a packed table, in nats: of each other mechanism their
/// mean, and what they are beside it, scaled to the variance of single ones.
struct Differences {
  Numbers means;
  std::vector<Numbers> residuals;
};

Differences of_table(const std::string& name) {
  const Table table(source_folder() + "/problems/tables/" + name + ".table");
  const auto vanilla = table.find("dot|softmax|none|fixed|bias|0").value();
  const auto nll = [&](std::int64_t mechanism, std::int64_t replicate) {
    return std::log(quality(table.evaluation(mechanism, replicate), "perplexity"));
  };
  Differences all;
  for (std::int64_t i = 0; i < table.num_mechanisms(); ++i) {
    Numbers pairs;
    for (std::int64_t k = 0; i != vanilla && k < table.most_replicates(); ++k) {
      if (!table.has(i, k) || !table.has(vanilla, k)) continue;
      const double difference = nll(i, k) - nll(vanilla, k);
      if (std::isfinite(difference)) pairs.push_back(difference);
    }
    if (pairs.size() < 5) continue;
    const auto n = static_cast<double>(pairs.size());
    const double mean = std::accumulate(pairs.begin(), pairs.end(), 0.0) / n;
    for (auto& pair : pairs) pair = (pair - mean) * std::sqrt(n / (n - 1.0));
    all.means.push_back(mean);
    all.residuals.push_back(std::move(pairs));
  }
  return all;
}

/// What sequences of at most 20 seeds come to.
struct Outcomes {
  int wrong = 0, decided = 0;
  double seeds = 0.0;
};

/// Replays sequences until 3 %.
/// @param null  whether mechanisms have no effect: then better and worse are wrong, else a wrong
/// sign, and a bound that does not hold.
/// @param compare  compare_anytime, or what does not hold at every group.
Outcomes replayed(const Differences& table, bool null, int times,
                  decltype(compare_anytime)* compare = compare_anytime) {
  const double bound = std::log1p(0.03);
  std::mt19937_64 random(20);  // NOLINT: the same replays every time
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Outcomes outcomes;
  for (int i = 0; i < times; ++i) {
    const auto mechanism = below(table.means.size());
    const double effect = null ? 0.0 : table.means[mechanism];
    Numbers pairs;
    for (int k = 0; k < 20; ++k) {
      // Without an effect of any mechanism's noise, which has heavier tails than that of one.
      const auto& noise = table.residuals[null ? below(table.residuals.size()) : mechanism];
      pairs.push_back(effect + noise[below(noise.size())] * (random() % 2 == 0 ? 1.0 : -1.0));
    }
    for (auto n = kFirstSeeds;; n = next_seeds(n, 20)) {
      const auto size = static_cast<std::size_t>(n);
      const auto compared = compare(std::span(pairs).first(size), Numbers(size, 0.0), 0.95);
      const auto decision = decide(compared.difference, compared.p, 0.05, bound);
      if (decision == Decision::open && n < 20) continue;
      outcomes.seeds += static_cast<double>(n) / times;
      if (decision != Decision::open) ++outcomes.decided;
      if (decision == Decision::better && effect >= 0.0) ++outcomes.wrong;
      if (decision == Decision::worse && effect <= 0.0) ++outcomes.wrong;
      if (decision == Decision::within && std::abs(effect) > bound) ++outcomes.wrong;
      break;
    }
  }
  return outcomes;
}

TEST(Anytime, ReplaysOfPackedTablesKeepTheError) {
  constexpr int kReplays = 2000;
  for (const std::string name : {"text", "recall"}) {
    const auto table = of_table(name);
    const auto null = replayed(table, /*null=*/true, kReplays);
    const auto real = replayed(table, /*null=*/false, kReplays);
    std::cout << name << ": wrong without an effect " << 100.0 * null.wrong / kReplays
              << " %, mean seeds " << real.seeds << " of 20, decided "
              << 100.0 * real.decided / kReplays << " %, wrong " << 100.0 * real.wrong / kReplays
              << " %\n";
    EXPECT_LE(null.wrong, kReplays / 20) << name;
    EXPECT_LE(real.wrong, kReplays / 20) << name;
    EXPECT_LT(real.seeds, name == "text" ? 9.0 : 13.0) << name;
    EXPECT_GT(real.decided, kReplays / 2) << name;
    const auto tested = replayed(table, /*null=*/true, kReplays, compare_paired);
    EXPECT_GT(tested.wrong, null.wrong + kReplays / 50) << "a t-test at every group errs";
  }
}

}  // namespace
}  // namespace nas
