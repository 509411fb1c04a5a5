#include "store/store.hpp"

#include <cmath>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class StoreTest : public ::testing::Test {
 protected:
  static Evaluation example(const std::string& id = "e1") {
    Evaluation evaluation;
    evaluation.id = id;
    evaluation.candidate = "dot|softmax|none|fixed|bias|0.1";
    evaluation.replicate = 2;
    evaluation.identity = {{"candidate", evaluation.candidate}, {"rate", 0.1}};
    evaluation.status = Status::diverged;
    evaluation.reason = "it's not finite";
    CurvePoint point;
    point.step = 50;
    point.train_nll = std::numeric_limits<double>::quiet_NaN();
    point.valid.nll = std::numeric_limits<double>::infinity();
    point.valid.tokens = 7;
    point.valid.unknown_nll = 1.0 / 3.0;
    point.seconds = 1.25;
    evaluation.curve = {point};
    evaluation.values = {{"perplexity", 0.1 + 0.2}, {"parameters", 1693184.0}};
    evaluation.measured = {{"pid", 7}, {"train_seconds", 1.25}};
    return evaluation;
  }

  static std::string message_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  const TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  fs::path file_ = folder_ / "store.sqlite";
};

TEST_F(StoreTest, EverythingReadsBackExactlyAfterReopening) {
  const auto before = example();
  {
    Store store(file_);
    store.add({before});
    store.set_meta("config", {{"a", 1}});
    store.add_asks({{.number = 0,
                     .batch = 0,
                     .genotype = "g",
                     .evaluations = {"e1"},
                     .reused = true,
                     .fitness = {0.1, 1e300}}});
  }
  const Store store(file_, Store::Mode::read_only);
  const auto after = store.find("e1");
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(canonical_json(*after), canonical_json(before));
  EXPECT_EQ(after->measured, before.measured);
  EXPECT_TRUE(std::isnan(after->curve[0].train_nll));
  EXPECT_TRUE(std::isinf(after->curve[0].valid.nll));
  EXPECT_EQ(after->curve[0].valid.unknown_nll, 1.0 / 3.0);
  EXPECT_EQ(after->curve[0].seconds, 1.25);
  EXPECT_EQ(after->values.at("perplexity"), 0.1 + 0.2);
  EXPECT_EQ(store.meta("config"), (nlohmann::json{{"a", 1}}));
  EXPECT_FALSE(store.meta("nothing").has_value());
  EXPECT_FALSE(store.find("e2").has_value());
  const auto asks = store.asks();
  ASSERT_EQ(asks.size(), 1U);
  EXPECT_EQ(asks[0].fitness, (std::vector<double>{0.1, 1e300}));
  EXPECT_TRUE(asks[0].reused);
}

TEST_F(StoreTest, CanonicalFormHoldsNothingMeasured) {
  auto one = example();
  auto two = example();
  two.measured = {{"pid", 8}};
  two.curve[0].seconds = 99;
  EXPECT_EQ(canonical_json(one), canonical_json(two));
  two.curve[0].step = 51;
  EXPECT_NE(canonical_json(one), canonical_json(two));
}

TEST_F(StoreTest, KnownEvaluationsAndAsksStayAsTheyAre) {
  Store store(file_);
  store.add({example()});
  auto changed = example();
  changed.reason = "another";
  store.add({changed, example("e2")});
  EXPECT_EQ(store.find("e1")->reason, "it's not finite");
  EXPECT_EQ(store.evaluations().size(), 2U);
  const Ask ask{.number = 0,
                .batch = 0,
                .genotype = "g",
                .evaluations = {"e1"},
                .reused = false,
                .fitness = {1}};
  store.add_asks({ask});
  store.add_asks({ask});
  auto other = ask;
  other.evaluations = {"e2"};
  EXPECT_THROW(store.add_asks({other}), std::runtime_error);
  EXPECT_EQ(store.asks().size(), 1U);
  EXPECT_EQ(store.asks()[0].evaluations, ask.evaluations);
}

TEST_F(StoreTest, AnAskMayBeAnsweredByMoreOrFewerOfTheSameReplicates) {
  Store store(file_);
  Ask ask{.number = 0, .batch = 0, .genotype = "g", .evaluations = {"e1"}, .fitness = {1}};
  store.add_asks({ask});
  ask.evaluations = {"e1", "e2", "e3"};
  ask.fitness = {2};
  store.add_asks({ask});
  EXPECT_EQ(store.asks()[0].evaluations, ask.evaluations);
  EXPECT_EQ(store.asks()[0].fitness, ask.fitness);
  ask.evaluations = {"e1", "e2"};
  store.add_asks({ask});
  EXPECT_EQ(store.asks()[0].evaluations, ask.evaluations);
  ask.evaluations = {"e1", "e4", "e5"};
  EXPECT_THROW(store.add_asks({ask}), std::runtime_error);
  ask.evaluations = {"e1"};
  ask.genotype = "h";
  EXPECT_THROW(store.add_asks({ask}), std::runtime_error);
}

TEST_F(StoreTest, PreviewedAsksGiveWayToTheirBatch) {
  Store store(file_);
  const auto ask = [](std::int64_t number, std::int64_t batch, double fitness) {
    return Ask{.number = number,
               .batch = batch,
               .genotype = "g",
               .evaluations = {"e" + std::to_string(number)},
               .fitness = {fitness}};
  };
  const auto recorded = [&store] {
    std::vector<std::pair<std::int64_t, double>> asks;
    for (const auto& one : store.asks()) asks.emplace_back(one.number, one.fitness.front());
    return asks;
  };
  using Recorded = std::vector<std::pair<std::int64_t, double>>;
  store.add_asks({ask(0, 0, 1)});
  store.preview_asks({ask(0, 0, 9), ask(2, 1, 9), ask(3, 1, 9)});
  EXPECT_EQ(recorded(), (Recorded{{0, 1}, {2, 9}, {3, 9}}));
  store.add_asks({ask(1, 1, 2), ask(2, 1, 3)});
  EXPECT_EQ(recorded(), (Recorded{{0, 1}, {1, 2}, {2, 3}, {3, 9}}));
  store.withdraw_asks(0, 0);
  EXPECT_EQ(recorded().size(), 4U) << "a later batch is recorded";
  store.withdraw_asks(3, 1);
  EXPECT_EQ(recorded(), (Recorded{{0, 1}, {1, 2}, {2, 3}}));
}

TEST_F(StoreTest, IndicatorsReadBackInOrderAndAreReplaced) {
  Store store(file_, Store::Mode::write_cheap);
  store.add_indicator({.asked = 24, .batch = 1, .evaluated = 20, .front = 4, .value = 0.5});
  store.add_indicator({.asked = 12, .batch = 0, .evaluated = 11, .front = 3, .value = 0.25});
  store.add_indicator({.asked = 24, .batch = 1, .evaluated = 20, .front = 5, .value = 0.1 + 0.2});
  const auto indicators = store.indicators();
  ASSERT_EQ(indicators.size(), 2U);
  EXPECT_EQ(indicators[0].asked, 12);
  EXPECT_EQ(indicators[1].front, 5);
  EXPECT_EQ(indicators[1].value, 0.1 + 0.2);
}

TEST_F(StoreTest, SecondWriterIsRefusedByNameAndReadersAreNot) {
  Store store(file_);
  EXPECT_THAT(message_of([&] { Store second(file_); }),
              HasSubstr("is in use by another process (process " + std::to_string(getpid())));
  const Store reader(file_, Store::Mode::read_only);
  EXPECT_TRUE(reader.evaluations().empty());
}

TEST_F(StoreTest, KilledWriterLeavesItsCommitsAndNoLock) {
  const pid_t child = fork();
  if (child == 0) {
    auto* store = new Store(file_);
    store->add({example()});
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  Store store(file_);
  EXPECT_TRUE(store.find("e1").has_value());
}

TEST_F(StoreTest, WhatIsNoStoreIsRefusedByName) {
  std::ofstream(file_)
      << "this is a long enough text that is certainly not a database of SQLite, is it? "
      << std::string(4096, 'x');
  EXPECT_THAT(message_of([&] { Store store(file_); }),
              HasSubstr("store.sqlite: not a readable store"));
  EXPECT_THAT(message_of([&] { Store store(folder_ / "absent.sqlite", Store::Mode::read_only); }),
              HasSubstr("absent.sqlite: no such store"));
  EXPECT_THAT(message_of([&] { Store store(folder_ / "no" / "folder.sqlite"); }),
              HasSubstr("no such folder"));
}

TEST(Scores, PerplexitiesAreWhatTheySay) {
  Scores scores;
  scores.nll = 10 * std::log(8.0);
  scores.tokens = 10;
  scores.correct = 3;
  scores.batch_mean_nll = std::log(4.0) + std::log(16.0);
  scores.batches = 2;
  EXPECT_NEAR(scores.perplexity(), 8.0, 1e-12);
  EXPECT_NEAR(scores.published_perplexity(), 8.0, 1e-12);
  EXPECT_DOUBLE_EQ(scores.accuracy(), 0.3);
  scores.pad_nll = 0.0;
  scores.pad_tokens = 5;
  EXPECT_NEAR(scores.perplexity_without_pad(), 64.0, 1e-9);
  scores.unknown_nll = 5 * std::log(8.0);
  scores.unknown_tokens = 4;
  EXPECT_NEAR(scores.perplexity_without_unknown(), std::exp(5 * std::log(8.0)), 1e-6);
}

}  // namespace
}  // namespace nas
