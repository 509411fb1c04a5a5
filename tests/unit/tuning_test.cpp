#include "study/stages/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "evaluation/settings.hpp"

namespace nas {
namespace {

Parameters tuning(std::vector<double> rates, std::vector<double> decays) {
  Parameters settings(tuning_settings());
  settings.set("learning_rate", std::move(rates));
  settings.set("weight_decay", std::move(decays));
  return settings;
}

std::vector<TuningPoint> points(const Parameters& settings, std::uint64_t seed, int trials) {
  return tuning_points(settings, Parameters(training_settings()), seed, trials);
}

TEST(Tuning, BeginsWithTheConfigurationsOwnSettings) {
  const auto tried = points(tuning({1e-3, 1e-2}, {0.1}), 42, 1);
  ASSERT_EQ(tried.size(), 1U);
  EXPECT_EQ(tried[0].learning_rate, 3e-4);
  EXPECT_EQ(tried[0].weight_decay, 0.01);
}

TEST(Tuning, CoversTheLogarithmOfTheRangeAndTheChoicesEvenly) {
  const auto tried = points(tuning({1e-4, 1e-2}, {0.0, 0.01, 0.1}), 42, 31);
  std::vector<int> tenths(10, 0);
  std::map<double, int> decays;
  for (std::size_t i = 1; i < tried.size(); ++i) {
    EXPECT_GE(tried[i].learning_rate, 1e-4);
    EXPECT_LE(tried[i].learning_rate, 1e-2);
    const double place = std::log(tried[i].learning_rate / 1e-4) / std::log(100.0);
    ++tenths[static_cast<std::size_t>(std::min(9.0, 10.0 * place))];
    ++decays[tried[i].weight_decay];
  }

  EXPECT_GE(*std::min_element(tenths.begin(), tenths.end()), 1);
  EXPECT_LE(*std::max_element(tenths.begin(), tenths.end()), 5);
  ASSERT_EQ(decays.size(), 3U);
  for (const auto& [decay, count] : decays) EXPECT_NEAR(count, 10, 3) << decay;
}

TEST(Tuning, LongerSequencesBeginWithShorterOnesAndSeedsDiffer) {
  const auto settings = tuning({1e-4, 1e-2}, {0.0, 0.1});
  const auto few = points(settings, 7, 5);
  const auto many = points(settings, 7, 9);
  const auto others = points(settings, 8, 5);
  for (std::size_t i = 0; i < few.size(); ++i) {
    EXPECT_EQ(few[i].learning_rate, many[i].learning_rate);
    EXPECT_EQ(few[i].weight_decay, many[i].weight_decay);
  }
  EXPECT_NE(few[1].learning_rate, others[1].learning_rate);
}

TEST(Tuning, RatesHaveThreeDigitsAndStayInTheRange) {
  for (const auto& point : points(tuning({0.0012345, 0.0012349}, {0.1}), 1, 4)) {
    if (point.learning_rate == 3e-4) continue;  // the configuration's own
    EXPECT_GE(point.learning_rate, 0.0012345);
    EXPECT_LE(point.learning_rate, 0.0012349);
  }
  const auto tried = points(tuning({1e-4, 1e-2}, {0.1}), 1, 4);
  for (const auto& point : tried) {
    const double scaled =
        point.learning_rate / std::pow(10.0, std::floor(std::log10(point.learning_rate)) - 2.0);
    EXPECT_NEAR(scaled, std::round(scaled), 1e-9);
  }
}

TEST(Tuning, ChangesNothingElseOfATrainingRun) {
  const Parameters training(training_settings());
  const auto tuned = tuned_training(training, {.learning_rate = 0.5, .weight_decay = 0.25});
  EXPECT_EQ(tuned.get<double>("learning_rate"), 0.5);
  EXPECT_EQ(tuned.get<double>("weight_decay"), 0.25);
  EXPECT_EQ(tuned_training(tuned, {.learning_rate = training.get<double>("learning_rate"),
                                   .weight_decay = training.get<double>("weight_decay")})
                .values(),
            training.values());
}

}  // namespace
}  // namespace nas
