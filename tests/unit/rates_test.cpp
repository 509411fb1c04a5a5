#include "study/stages/rates.hpp"

#include <nlohmann/json.hpp>

#include "prelude.hpp"

namespace nas {
namespace {

constexpr double kFailed = std::numeric_limits<double>::quiet_NaN();

TEST(Rates, TheBestHasTheLowestMeanAndNoFailedRun) {
  const auto best = best_rate({{1e-3, {2.0, 2.2}}, {2e-3, {1.0, 1.4}}, {4e-3, {1.5, 1.6}}}, 2e-3);
  EXPECT_EQ(best.rate, 2e-3);
  EXPECT_FALSE(best.at_end);
  EXPECT_EQ(best.tried.size(), 3U);
  const auto failed =
      best_rate({{1e-3, {2.0, 2.2}}, {2e-3, {1.0, kFailed}}, {4e-3, {1.5, 1.6}}}, 2e-3);
  EXPECT_EQ(failed.rate, 4e-3);
  EXPECT_TRUE(failed.at_end);
}

TEST(Rates, OfEqualOnesThatNearestToTheBeginningIsTaken) {
  const std::vector<double> solved{0.0, 0.0};
  EXPECT_EQ(best_rate({{1e-3, solved}, {2e-3, solved}, {4e-3, solved}}, 2e-3).rate, 2e-3);
  EXPECT_EQ(best_rate({{1e-3, {kFailed}}, {2e-3, {kFailed}}, {4e-3, {kFailed}}}, 2e-3).rate, 2e-3)
      << "where all fail";
}

TEST(Rates, ARecordHasWhatWasTried) {
  const auto best = best_rate({{1e-3, {0.5, kFailed}}, {2e-3, {0.25, 0.5}}}, 1e-3);
  for (const auto measure : {Measure::perplexity, Measure::accuracy}) {
    const auto json = nlohmann::json::parse(to_json(measure, best).dump());
    EXPECT_EQ(json.at("learning_rate"), 2e-3);
    EXPECT_EQ(json.at("rate_at_end"), true);
    EXPECT_EQ(json.at("rates").size(), 2U);
  }
  EXPECT_EQ(to_json(Measure::accuracy, best).at("rates")[1].at("valid_accuracy")[0], 0.75);
  EXPECT_TRUE(to_json(Measure::perplexity, best).at("rates")[0].at("valid_nll")[1].is_null());
}
}  // namespace
}  // namespace nas
