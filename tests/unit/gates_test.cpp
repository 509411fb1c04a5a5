#include "study/stages/gates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nas {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Numbers = std::vector<double>;

constexpr double kFailed = std::numeric_limits<double>::quiet_NaN();

/// Seeds move all models alike, and each a little by itself.
Numbers around(double mean, double own = 0.001) {
  Numbers values;
  for (int seed = 0; seed < 8; ++seed) {
    values.push_back(mean + 0.01 * (seed % 3 - 1) + own * ((seed * 5) % 7 - 3));
  }
  return values;
}

PilotModel model(const std::string& name, double mean, double own = 0.001) {
  return {.name = name,
          .candidate = "c " + name,
          .rates = {1e-3, 2e-3, 4e-3, 8e-3, 16e-3},
          .tuning = {{mean + 0.3, mean + 0.315, mean + 0.32},
                     {mean + 0.1, mean + 0.11, mean + 0.12},
                     {mean, mean + 0.01, mean + 0.02},
                     {mean + 0.2, mean + 0.21, mean + 0.22},
                     {mean + 0.4, mean + 0.41, mean + 0.42}},
          .rate = 4e-3,
          .judged = around(mean, own),
          .test = around(mean, own)};
}

/// A task that passes all gates.
std::vector<PilotModel> good() {
  return {model("baseline", 1.0), model("no mixer", 2.0, 0.002), model("window 2", 1.5, 0.003),
          model("window 4", 1.3, 0.002), model("window 8", 1.0, 0.004)};
}

nlohmann::json counts(double nll) {
  return {{{"order", 1}, {"tokens", 10}, {"valid_nll", 5.0}},
          {{"order", 3}, {"tokens", 10}, {"valid_nll", nll}}};
}

std::vector<std::string> failed_of(const GatesOutcome& outcome) {
  std::vector<std::string> names;
  for (const auto& gate : outcome.gates) {
    if (!gate.passed) names.push_back(gate.name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(Gates, ATaskOnWhichAttentionMattersPasses) {
  const auto outcome = judge_gates(good(), counts(1.2), 4e-3);
  EXPECT_EQ(failed_of(outcome), Names{});
  EXPECT_TRUE(outcome.passed());
  EXPECT_EQ(outcome.gates.size(), 6U);
  EXPECT_FALSE(outcome.bimodal);
  EXPECT_FALSE(outcome.solved);
  EXPECT_EQ(outcome.failed_seeds, 0);
  EXPECT_EQ(outcome.seeds, 11) << "judging and choosing ones";
  EXPECT_THAT(outcome.verdict(), HasSubstr("all gates are passed"));
  EXPECT_THAT(outcome.verdict(), HasSubstr("Attention is not shown to differ from window 8"))
      << "longer windows are reported and decide nothing";
}

TEST(Gates, EachFailsAlone) {
  const auto failing = [](const std::string& name, double mean) {
    auto models = good();
    for (auto& one : models) {
      if (one.name == name) one.judged = around(mean);
    }
    return failed_of(judge_gates(models, counts(1.2), 4e-3));
  };
  for (const auto* name : {"no mixer", "window 2", "window 4"}) {
    EXPECT_EQ(failing(name, 0.9), Names{"better than " + std::string(name)}) << "it is better";
    EXPECT_EQ(failing(name, 1.0), Names{"better than " + std::string(name)}) << "it is the same";
  }
  EXPECT_EQ(failed_of(judge_gates(good(), counts(0.9), 4e-3)), Names{"better than counts"});
  EXPECT_EQ(failed_of(judge_gates(good(), counts(1.005), 4e-3)), Names{"better than counts"})
      << "the interval holds it";
  auto edge = good();
  std::rotate(edge[0].tuning.begin(), edge[0].tuning.begin() + 2, edge[0].tuning.end());
  EXPECT_EQ(failed_of(judge_gates(edge, counts(1.2), 1e-3)), Names{"best rate inside"});
  EXPECT_THAT(
      judge_gates(edge, counts(1.2), 1e-3).verdict(),
      HasSubstr("Not passed: best rate inside. Attention matters on this task, but its learning"));
  EXPECT_EQ(failed_of(judge_gates(good(), counts(1.2), 1e-3)), Names{"own rate"});
  auto level = good();
  level[0].tuning[1] = {0.9, 1.05, 1.2};
  EXPECT_EQ(failed_of(judge_gates(level, counts(1.2), 2e-3)), Names{}) << "not shown to be worse";
  EXPECT_THAT(judge_gates(good(), counts(0.9), 4e-3).verdict(),
              ::testing::StartsWith("Not passed: better than counts."));
}

TEST(Gates, WhatATaskDoesNotHaveIsNoGate) {
  const auto outcome = judge_gates({good()[0], good()[1]}, nullptr, 4e-3);
  EXPECT_EQ(outcome.gates.size(), 3U) << "no windows and no counts";
  EXPECT_TRUE(outcome.passed());
}

TEST(Gates, FailuresOfMoreThanOneSeedInTwentyAreDeclared) {
  auto models = good();
  models[2].judged = models[3].judged = around(2.1);  // no window is near
  models[0].judged[3] = 1.9;                          // nearer to no mixer than to the median
  auto outcome = judge_gates(models, nullptr, 4e-3);
  EXPECT_TRUE(outcome.bimodal);
  EXPECT_EQ(outcome.failed_seeds, 1);
  EXPECT_TRUE(outcome.passed()) << "no failure of a gate";
  EXPECT_THAT(outcome.verdict(), HasSubstr("bimodal: 1 of 11 seeds of the baseline fail"));
  models[0].judged[3] = kFailed;
  outcome = judge_gates(models, nullptr, 4e-3);
  EXPECT_EQ(outcome.failed_seeds, 1);
  EXPECT_EQ(outcome.comparisons.front().second.difference.n, 7);
  models[0].judged[3] = 1.4;
  EXPECT_EQ(judge_gates(models, nullptr, 4e-3).failed_seeds, 0) << "below the midpoint";
}

TEST(Gates, ASolvedTaskIsSaid) {
  auto models = good();
  models[0].judged = around(0.005, 0.0001);
  models[0].tuning[2] = {0.001, 0.002, 0.019};
  for (auto& value : models[0].judged) value = std::abs(value) / 10;
  EXPECT_TRUE(judge_gates(models, nullptr, 4e-3).solved);
  models[0].tuning[2].back() = 0.021;  // perplexity 1.0212
  EXPECT_FALSE(judge_gates(models, nullptr, 4e-3).solved);
}

/// The same task in shares of wrong answers.
std::vector<PilotModel> wrong_answers() {
  auto models = good();
  const auto shrink = [](Numbers& values) {
    for (auto& value : values) value *= 0.3;
  };
  for (auto& one : models) {
    shrink(one.judged);
    shrink(one.test);
    for (auto& values : one.tuning) shrink(values);
  }
  return models;
}

nlohmann::json counts_of_accuracy(double accuracy) {
  return {{{"order", 1}, {"tokens", 10}, {"valid_nll", 0.1}, {"valid_accuracy", 0.4}},
          {{"order", 2}, {"tokens", 10}, {"valid_nll", 9.0}, {"valid_accuracy", accuracy}}};
}

TEST(Gates, WhereAccuracyIsFirstWordsAndLimitsAreOfAccuracy) {
  const auto models = wrong_answers();
  const auto outcome = judge_gates(models, counts_of_accuracy(0.65), 4e-3, Measure::accuracy);
  EXPECT_EQ(failed_of(outcome), Names{});
  EXPECT_THAT(
      outcome.gates[0].words,
      ::testing::MatchesRegex("accuracy 0\\.70[0-9] \\(0\\.69[0-9] to 0\\.70[0-9]\\) against "
                              "0\\.40[0-9] \\(.*, n = 8, p < 0\\.001"));
  EXPECT_EQ(outcome.gates[3].name, "better than counts");
  EXPECT_THAT(outcome.gates[3].words, HasSubstr("against 0.650 of counts of order 2"))
      << "the best by accuracy";
  EXPECT_THAT(outcome.gates[5].words, ::testing::StartsWith("learning rate 0.004: accuracy 0.69"));
  for (const auto& gate : outcome.gates) EXPECT_THAT(gate.words, Not(HasSubstr("perplexity")));
  EXPECT_EQ(failed_of(judge_gates(models, counts_of_accuracy(0.7), 4e-3, Measure::accuracy)),
            Names{"better than counts"});
  EXPECT_EQ(failed_of(judge_gates(models, {{{"order", 1}, {"tokens", 10}, {"valid_nll", 0.01}}},
                                  4e-3, Measure::accuracy)),
            Names{})
      << "counts without an accuracy are no gate";
}

TEST(Gates, ATaskIsSolvedByAccuracyWhereNearlyAllAnswersAreRight) {
  auto models = wrong_answers();
  models[0].judged.assign(8, 0.019);
  models[0].tuning[2].assign(3, 0.0);
  const auto solved = judge_gates(models, nullptr, 4e-3, Measure::accuracy);
  EXPECT_TRUE(solved.solved);
  EXPECT_THAT(solved.verdict(), HasSubstr("every seed of the baseline has an accuracy above 0.98"));
  models[0].tuning[2].back() = 0.021;
  EXPECT_FALSE(judge_gates(models, nullptr, 4e-3, Measure::accuracy).solved);
}

TEST(Gates, SeedsWithoutNoiseGiveNoInfinities) {
  auto models = good();
  for (auto& one : models) one.judged.assign(8, one.judged.front());
  const auto outcome = judge_gates(models, counts(1.2), 4e-3);
  EXPECT_TRUE(outcome.passed());
  for (const auto& [name, found] : outcome.comparisons) {
    EXPECT_TRUE(std::isfinite(found.p)) << name;
    EXPECT_TRUE(std::isfinite(found.difference.mean)) << name;
  }
}

TEST(Gates, WhereEverySeedFailsNothingIsPassed) {
  auto models = good();
  models[0].judged.assign(8, kFailed);
  for (auto& values : models[0].tuning) values.assign(3, kFailed);
  const auto outcome = judge_gates(models, counts(1.2), 4e-3);
  EXPECT_FALSE(outcome.passed());
  EXPECT_TRUE(outcome.bimodal);
  EXPECT_EQ(outcome.failed_seeds, 11);
  EXPECT_THAT(outcome.verdict(), Not(HasSubstr("nan")));
}

TEST(Gates, ARateWithAFailedRunIsWorseThanAllWithout) {
  auto one = model("baseline", 1.0);
  EXPECT_EQ(best_rate(one), 2U);
  one.tuning[2][1] = kFailed;
  EXPECT_EQ(best_rate(one), 1U);
}

}  // namespace
}  // namespace nas
