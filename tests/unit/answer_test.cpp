#include "table/answer.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include <gtest/gtest.h>

#include "core/temporary_folder.hpp"
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
  const auto whole = small_evaluation(kDot, 0);
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

TEST(Answer, AMeanPoolsTheUsableReplicates) {
  auto failed = small_evaluation(kDot, 2);
  failed.status = Status::diverged;
  const auto a = small_evaluation(kDot, 0);
  const auto b = small_evaluation(kDot, 1);
  const auto mean = mean_evaluation({failed, a, b}, 0.0);
  EXPECT_EQ(mean.status, Status::ok);
  ASSERT_EQ(mean.curve.size(), 3U);
  const auto nll = [](const Evaluation& e) { return std::log(e.curve.back().valid.perplexity()); };
  EXPECT_NEAR(nll(mean), (nll(a) + nll(b)) / 2.0, 1e-12);
  EXPECT_EQ(mean.curve.back().valid.tokens, 2000);
  EXPECT_EQ(mean.curve.back().valid.correct,
            a.curve.back().valid.correct + b.curve.back().valid.correct);
  EXPECT_DOUBLE_EQ(mean.values.at("perplexity"), std::exp(nll(mean)));
  EXPECT_DOUBLE_EQ(mean.values.at("test_nll"),
                   (a.values.at("test_nll") + b.values.at("test_nll")) / 2.0);
  EXPECT_DOUBLE_EQ(mean.measured.at("cpu_seconds"), (a.measured.at("cpu_seconds").get<double>() +
                                                     b.measured.at("cpu_seconds").get<double>()) /
                                                        2.0);
  EXPECT_EQ(mean_evaluation({failed}, 0.0).status, Status::diverged);
}

TEST(Answer, GroundTruthIsTheTestSplits) {
  const auto whole = small_evaluation(kDot, 0);
  const auto test = scored_on_test(whole, 5.5);
  EXPECT_NEAR(test.curve.back().valid.perplexity(), whole.values.at("test_perplexity"), 1e-9);
  EXPECT_NEAR(test.values.at("bits_per_byte"),
              whole.values.at("test_nll") / std::numbers::ln2 / 5.5, 1e-12);
  EXPECT_EQ(test.curve.back().valid.accuracy(), whole.curve.back().valid.accuracy());
  auto unscored = whole;
  unscored.values.erase("test_nll");
  EXPECT_EQ(canonical_json(scored_on_test(unscored, 5.5)), canonical_json(unscored));
}

}  // namespace
}  // namespace nas
