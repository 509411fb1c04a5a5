#include "table/answer.hpp"

#include <numbers>

#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "small_table.hpp"

namespace nas {
namespace {

using testing::small_cells;
using testing::small_evaluation;

const std::string kDot = "dot|softmax|none|fixed|bias|0";

TEST(Answer, TheReplicatesThatAreThere) {
  auto cells = small_cells();
  cells.erase(cells.begin() + 1);
  const TemporaryFolder folder;
  write_table(testing::small_content(cells), folder.path() / "small.table");
  const Table table(folder.path() / "small.table");
  const auto recorded = recorded_replicates(table, 0);
  ASSERT_EQ(recorded.size(), 2U);
  EXPECT_EQ(recorded[1].replicate, 2);
  EXPECT_EQ(recorded_replicates(table, 1).size(), 3U);
}

TEST(Answer, AnEarlierEndIsThatPointOfTheCurve) {
  auto whole = small_evaluation(kDot, 0);
  for (auto& point : whole.curve) point.valid.unknown_tokens = 0;
  const auto early = ended_at(whole, 20, 5.5);
  ASSERT_EQ(early.curve.size(), 2U);
  const auto& valid = whole.curve[1].valid;
  EXPECT_EQ(early.values.at("perplexity"), valid.perplexity());
  EXPECT_DOUBLE_EQ(early.values.at("bits_per_byte"), std::log2(valid.perplexity()) / 5.5);
  EXPECT_FALSE(early.values.contains("test_nll"));
  EXPECT_EQ(early.values.at("parameters"), whole.values.at("parameters"));
  EXPECT_DOUBLE_EQ(early.measured.at("train_seconds"), whole.curve[1].seconds);
  EXPECT_DOUBLE_EQ(early.measured.at("cpu_seconds"), 0.75 * whole.curve[1].seconds);
  EXPECT_EQ(canonical_json(ended_at(whole, 40, 5.5)), canonical_json(whole));
}

TEST(Answer, WhatDivergedLaterWasUsableBefore) {
  auto diverged = small_evaluation(kDot, 0);
  diverged.status = Status::diverged;
  diverged.reason = "validation loss is not finite at step 40";
  diverged.curve[2].valid.nll = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(ended_at(diverged, 40, 0.0).status, Status::diverged);
  const auto early = ended_at(diverged, 10, 0.0);
  EXPECT_EQ(early.status, Status::ok);
  EXPECT_EQ(early.reason, "");
  diverged.curve.pop_back();  // the training loss was the first to diverge
  EXPECT_EQ(ended_at(diverged, 20, 0.0).status, Status::ok);
  diverged.curve.clear();
  EXPECT_EQ(ended_at(diverged, 10, 0.0).status, Status::diverged);
}

TEST(Answer, AMeanOfReplicatesOfWhichOneFailedIsAFailure) {
  auto failed = small_evaluation(kDot, 2);
  failed.status = Status::diverged;
  failed.reason = "not finite";
  const auto mean = mean_evaluation({small_evaluation(kDot, 0), failed}, 0.0);
  EXPECT_EQ(mean.status, Status::diverged);
  EXPECT_EQ(mean.reason, "1 of 2 replicates failed, replicate 2 diverged: not finite");
  EXPECT_EQ(mean_evaluation({failed}, 0.0).reason, "not finite");
  auto stopped = small_evaluation(kDot, 1);
  stopped.status = Status::stopped_early;
  EXPECT_EQ(mean_evaluation({small_evaluation(kDot, 0), stopped}, 0.0).status,
            Status::stopped_early);
}

TEST(Answer, AMeanIsThatOfTheValuesOfReplicates) {
  const auto a = small_evaluation(kDot, 0);
  const auto b = small_evaluation(kDot, 1);
  const auto mean = mean_evaluation({a, b}, 0.0);
  EXPECT_EQ(mean.status, Status::ok);
  const auto perplexity = [](const Evaluation& e) { return e.curve.back().valid.perplexity(); };
  EXPECT_DOUBLE_EQ(mean.values.at("perplexity"), (perplexity(a) + perplexity(b)) / 2.0);
  EXPECT_DOUBLE_EQ(
      mean.values.at("published_perplexity"),
      (a.curve.back().valid.published_perplexity() + b.curve.back().valid.published_perplexity()) /
          2.0);
  EXPECT_DOUBLE_EQ(mean.values.at("test_nll"),
                   (a.values.at("test_nll") + b.values.at("test_nll")) / 2.0);
  EXPECT_DOUBLE_EQ(mean.measured.at("cpu_seconds"), (a.measured.at("cpu_seconds").get<double>() +
                                                     b.measured.at("cpu_seconds").get<double>()) /
                                                        2.0);
}

TEST(Answer, TheCurveOfAMeanIsPooled) {
  const auto a = small_evaluation(kDot, 0);
  const auto b = small_evaluation(kDot, 1);
  const auto mean = mean_evaluation({a, b}, 0.0);
  ASSERT_EQ(mean.curve.size(), 3U);
  EXPECT_DOUBLE_EQ(mean.curve.back().valid.nll,
                   a.curve.back().valid.nll + b.curve.back().valid.nll);
  EXPECT_EQ(mean.curve.back().valid.tokens, 2000);
  EXPECT_EQ(mean.curve.back().valid.correct,
            a.curve.back().valid.correct + b.curve.back().valid.correct);
}

TEST(Answer, EverySumOfTheTestSplitIsRecorded) {
  const Scores scores{.nll = 2500.5,
                      .tokens = 1000,
                      .correct = 321,
                      .pad_nll = 3.25,
                      .pad_tokens = 4,
                      .unknown_nll = 5.5,
                      .unknown_tokens = 6,
                      .batch_mean_nll = 20.25,
                      .batches = 8};
  Evaluation evaluation;
  set_test_values(evaluation, scores);
  EXPECT_EQ(nlohmann::json(test_scores(evaluation)), nlohmann::json(scores));
  EXPECT_DOUBLE_EQ(evaluation.values.at("test_nll"), 2.5005);
  EXPECT_DOUBLE_EQ(evaluation.values.at("test_perplexity"), std::exp(2.5005));
  for (const auto& [name, value] : evaluation.values) EXPECT_TRUE(name.starts_with("test_"));
}

TEST(Answer, GroundTruthIsTheTestSplits) {
  const auto whole = testing::fully_tested(small_evaluation(kDot, 0));
  const auto scores = test_scores(whole);
  const auto test = scored_on_test(whole, 5.5);
  EXPECT_EQ(nlohmann::json(test.curve.back().valid), nlohmann::json(scores));
  EXPECT_EQ(test.values.at("perplexity"), scores.perplexity());
  EXPECT_EQ(test.values.at("accuracy"), scores.accuracy());
  EXPECT_EQ(test.values.at("published_perplexity"), scores.published_perplexity());
  EXPECT_NEAR(test.values.at("bits_per_byte"),
              whole.values.at("test_nll") / std::numbers::ln2 / 5.5, 1e-12);
  EXPECT_NE(test.values.at("accuracy"), whole.curve.back().valid.accuracy());
}

TEST(Answer, WhatTheTestSplitDidNotRecordIsNeverTheValidationSplits) {
  const auto old = small_evaluation(kDot, 0);
  const auto test = scored_on_test(old, 5.5);
  EXPECT_NEAR(test.values.at("perplexity"), old.values.at("test_perplexity"), 1e-9);
  for (const auto* name : {"accuracy", "published_perplexity", "bits_per_byte"}) {
    EXPECT_TRUE(std::isnan(quality(test, name))) << name;
  }
  auto unscored = old;
  unscored.values.erase("test_nll");
  EXPECT_TRUE(std::isnan(scored_on_test(unscored, 5.5).values.at("perplexity")));
  EXPECT_TRUE(std::isnan(scored_on_test(unscored, 5.5).curve.back().valid.accuracy()));
}

TEST(Answer, UnknownWordsHaveNoBitsPerByte) {
  auto whole = testing::fully_tested(small_evaluation(kDot, 0));
  set_quality_values(whole, 5.5);
  EXPECT_FALSE(whole.values.contains("bits_per_byte")) << "10 of its targets are unknown";
  whole.curve.back().valid.unknown_tokens = 0;
  set_quality_values(whole, 5.5);
  EXPECT_DOUBLE_EQ(whole.values.at("bits_per_byte"),
                   std::log2(whole.values.at("perplexity")) / 5.5);
  EXPECT_DOUBLE_EQ(quality(whole, "bits_per_byte"), whole.values.at("bits_per_byte"));
}

}  // namespace
}  // namespace nas
