#include "store/store.hpp"

#include <cmath>
#include <fstream>
#include <limits>

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "core/warning.hpp"
#include "unit/forked.hpp"
#include "unit/late_digests.hpp"
#include "unit/message_of.hpp"

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
  static Evaluation with_status(const std::string& id, Status status) {
    auto evaluation = example(id);
    evaluation.status = status;
    return evaluation;
  }

  const TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  fs::path file_ = folder_ / "store.sqlite";
};

TEST_F(StoreTest, EvaluationsThatAreKnownAreNotReadAgain) {
  Store store(file_);
  store.add({example("b"), example("d")});
  auto known = store.evaluations();
  known[0].reason = "kept by the reader";
  store.add({example("a"), example("c"), example("e")});
  const auto all = store.evaluations_beside(known);
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[0].id, "a");
  EXPECT_EQ(all[1].reason, "kept by the reader");
  EXPECT_EQ(all[2].reason, example().reason);
  EXPECT_EQ(all[4].id, "e");
  auto gone = all;
  gone[0].id = "0";  // which the store does not have
  EXPECT_EQ(store.evaluations_beside(gone).size(), 5U);
}

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

TEST_F(StoreTest, ForgottenFailuresTakeAlongWhatTheSearchMadeOfThem) {
  Store store(file_);
  store.add({with_status("ok", Status::ok), with_status("failed", Status::failed),
             with_status("memory", Status::out_of_memory),
             with_status("diverged", Status::diverged)});
  const auto ask = [](std::int64_t number, std::vector<std::string> ids) {
    return Ask{.number = number,
               .batch = number,
               .genotype = "g",
               .evaluations = std::move(ids),
               .fitness = {1}};
  };
  store.add_asks({ask(0, {"ok"}), ask(1, {"diverged"}), ask(2, {"ok", "memory"}), ask(3, {"ok"})});
  for (const std::int64_t asked : {1, 2, 3, 4}) store.add_indicator({.asked = asked});
  for (const auto* key : {"config", "ended_by", "retest"}) {
    store.set_meta(key, {{"evaluations", {"ok"}}});
  }
  store.set_meta("baseline", {{"evaluations", {"ok"}}, {"fitness", {1.5}}});
  store.set_meta("objectives", nlohmann::json::array());
  EXPECT_EQ(store.forget_failures(), 2);
  EXPECT_TRUE(store.find("ok").has_value());
  EXPECT_TRUE(store.find("diverged").has_value()) << "that is a result";
  EXPECT_FALSE(store.find("failed").has_value());
  EXPECT_FALSE(store.find("memory").has_value());
  EXPECT_EQ(store.asks().size(), 2U);
  EXPECT_EQ(store.indicators().size(), 2U);
  EXPECT_TRUE(store.meta("objectives").has_value());
  EXPECT_FALSE(store.meta("ended_by").has_value());
  EXPECT_FALSE(store.meta("retest").has_value());
  EXPECT_EQ(store.meta(kAskedBefore), 4);
  EXPECT_EQ(store.forget_failures(), 0);

  // A failed baseline set no ranges: nothing that was scaled by them stays.
  store.add({with_status("failed", Status::failed)});
  store.set_meta("baseline", {{"evaluations", {"failed"}}, {"fitness", {1.5}}});
  EXPECT_EQ(store.forget_failures(), 1);
  EXPECT_TRUE(store.asks().empty());
  EXPECT_TRUE(store.indicators().empty());
  EXPECT_FALSE(store.meta("objectives").has_value());
  EXPECT_FALSE(store.meta("baseline").has_value());
  EXPECT_TRUE(store.meta("config").has_value());
}

TEST_F(StoreTest, TellsAreCommittedWithTheirAsksInTheirOwnOrder) {
  const auto ask = [](std::int64_t number, const std::string& id) {
    return Ask{.number = number,
               .batch = number,
               .genotype = "g" + std::to_string(number),
               .evaluations = {id},
               .fitness = {1}};
  };
  auto failed = example("failed");
  failed.status = Status::failed;
  {
    Store store(file_);
    store.add({example("ok"), failed});
    EXPECT_TRUE(store.tells().empty());
    store.add_asks({ask(0, "ok")});
    EXPECT_TRUE(store.tells().empty());
    store.add_tell(0, ask(3, "ok"));
    store.add_tell(1, ask(2, "failed"));
    store.add_tell(2, ask(1, "ok"));
    EXPECT_THROW(store.add_tell(3, ask(1, "failed")), std::runtime_error) << "replay departs";
  }
  Store store(file_);
  EXPECT_EQ(store.tells(), (std::vector<std::int64_t>{3, 2, 1}));
  EXPECT_EQ(store.asks().size(), 4U);
  EXPECT_EQ(store.check().verified, 2 + 4 + 3);
  // What was asked from the first failure on goes, and what was told from it on.
  EXPECT_EQ(store.forget_failures(), 1);
  EXPECT_EQ(store.asks().size(), 2U);
  EXPECT_TRUE(store.tells().empty());
}

TEST_F(StoreTest, EveryStatusIsReadBackAndThoseThatMayBeRetriedAreForgotten) {
  Store store(file_);
  std::int64_t forgotten = 0;
  for (const auto status : kStatuses) {
    const std::string name(to_string(status));
    EXPECT_EQ(parse_status(name), status);
    store.add({with_status(name, status)});
    EXPECT_EQ(store.find(name)->status, status);
    forgotten += may_be_retried(status) ? 1 : 0;
  }
  EXPECT_EQ(forgotten, 4);
  EXPECT_EQ(store.forget_failures(), forgotten);
  for (const auto status : kStatuses) {
    EXPECT_NE(store.find(std::string(to_string(status))).has_value(), may_be_retried(status));
  }
  for (const auto* gone : {"failed", "out_of_memory", "timed_out", "crashed"}) {
    EXPECT_FALSE(store.find(gone).has_value()) << gone;
  }
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
  store.add({example("e1"), example("e2"), example("e3")});
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
  store.add({example("e0"), example("e1"), example("e2"), example("e3")});
  store.add_asks({ask(0, 0, 1)});
  store.preview_asks({ask(0, 0, 9), ask(2, 1, 9), ask(3, 1, 9)});
  EXPECT_EQ(recorded(), (Recorded{{0, 1}, {2, 9}, {3, 9}}));
  store.add_asks({ask(1, 1, 2), ask(2, 1, 3)});
  EXPECT_EQ(recorded(), (Recorded{{0, 1}, {1, 2}, {2, 3}, {3, 9}}));
  store.withdraw_asks(0, 0);
  EXPECT_EQ(recorded().size(), 4U) << "a later batch is recorded";
  store.withdraw_asks(3, 1);
  EXPECT_EQ(recorded(), (Recorded{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(store.num_asked(), 3);
  store.forget_asks_from(1);
  EXPECT_EQ(recorded(), (Recorded{{0, 1}}));
  EXPECT_EQ(store.num_evaluations(), 4) << "they may answer again";
  store.forget_asks_from(0);
  EXPECT_EQ(store.num_asked(), 0);
}

/// A training run that is paused at a step.
Evaluation paused(Evaluation evaluation, std::int64_t step) {
  evaluation.status = Status::paused;
  evaluation.reason.clear();
  evaluation.curve.back().step = step;
  return evaluation;
}

std::string stored_form(const Evaluation& evaluation) { return nlohmann::json(evaluation).dump(); }

TEST_F(StoreTest, OfAPausedTrainingRunTheLongestPartIsKeptUntilItsEvaluationComes) {
  Store store(file_);
  EXPECT_EQ(store.find_partial("e1"), std::nullopt);
  EXPECT_TRUE(store.partials().empty());
  const auto longer = paused(example(), 150);
  store.add_partials({paused(example(), 50), paused(example("e2"), 50)});
  store.add_partials({longer});
  store.add_partials({paused(example(), 50)});
  EXPECT_EQ(stored_form(*store.find_partial("e1")), stored_form(longer));
  EXPECT_EQ(store.partials().size(), 2U);
  EXPECT_TRUE(store.evaluations().empty());
  EXPECT_EQ(store.find("e1"), std::nullopt);
  store.add({example()});
  EXPECT_EQ(store.find_partial("e1"), std::nullopt);
  store.add_partials({paused(example(), 400)});
  EXPECT_EQ(store.find_partial("e1"), std::nullopt);
  EXPECT_EQ(store.partials().front().id, "e2");
}

TEST_F(StoreTest, PartsReadBackAfterReopeningAndAStoreWithoutThemStaysAsItWas) {
  {
    Store store(file_);
    store.add({example("e0")});
  }
  const auto num_tables = [this] {
    SQLite::Database database(file_.string());
    return database.execAndGet("SELECT count(*) FROM sqlite_master WHERE type = 'table'").getInt();
  };
  EXPECT_EQ(num_tables(), 4);
  {
    Store store(file_, Store::Mode::write_cheap);
    store.add({example("e1")});
    store.add_partials({paused(example("e2"), 50)});
  }
  EXPECT_EQ(num_tables(), 5);
  const Store store(file_, Store::Mode::read_only);
  EXPECT_EQ(stored_form(*store.find_partial("e2")), stored_form(paused(example("e2"), 50)));
  EXPECT_EQ(store.evaluations().size(), 2U);
}

TEST_F(StoreTest, AFullDiskAtTheFirstPartTakesNothingElseAlong) {
  EXPECT_EQ(testing::in_child([this] {
              Store store(file_);
              store.add({example("e0")});
              testing::limit_file_size(4096);
              try {
                store.add_partials({paused(example(), 50)});
                return 1;
              } catch (const MachineError&) {
              }
              testing::limit_file_size(RLIM_INFINITY);
              store.add({example("e2")});
              return store.find_partial("e1") || !store.find("e2") ? 2 : 0;
            }),
            0);
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
  store.keep_indicators({24, 36});
  ASSERT_EQ(store.indicators().size(), 1U);
  EXPECT_EQ(store.indicators()[0].asked, 24);
}

TEST_F(StoreTest, SecondWriterIsRefusedByNameAndReadersAreNot) {
  Store store(file_);
  EXPECT_THAT(message_of<InputError>([&] { Store second(file_); }),
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

/// A program that reads all along keeps what is written meanwhile in the log beside the store.
TEST_F(StoreTest, WhatIsNotInTheStoreItselfAtTheEndIsSaid) {
  Store(file_).add({example("e1")});
  for (const auto* reads : {"", "SELECT 1", "BEGIN; SELECT count(*) FROM evaluations"}) {
    const bool all_along = std::string(reads).starts_with("BEGIN");
    std::string heard;
    const WarningListener listener([&heard](const std::string& text) { heard += text; });
    SQLite::Database reader(file_.string(), SQLite::OPEN_READONLY);
    reader.exec(reads);
    Store(file_).add({example("e2"), example(reads)});
    const auto copy = folder_ / "copy.sqlite";
    fs::copy_file(file_, copy, fs::copy_options::overwrite_existing);
    const auto copied = Store(copy, Store::Mode::read_only).evaluations().size();
    if (!all_along) {
      EXPECT_EQ(heard, "");
      EXPECT_EQ(copied, Store(file_, Store::Mode::read_only).evaluations().size());
      continue;
    }
    EXPECT_THAT(heard, ::testing::AllOf(HasSubstr("store.sqlite-wal alone"),
                                        HasSubstr("another program has been reading")));
    EXPECT_EQ(copied + 1, Store(file_, Store::Mode::read_only).evaluations().size());
  }
}

/// Stores of whose contents something is changed past the class.
class ChangedStoreTest : public StoreTest {
 protected:
  ChangedStoreTest() {
    Store store(file_);
    store.add({example("e1"), example("e2")});
    store.set_meta("objectives", nlohmann::json::parse(R"([{"name": "f", "best": 1.5}])"));
    store.add_asks({{.number = 0, .genotype = "g", .evaluations = {"e1"}, .fitness = {1.5}},
                    {.number = 1, .genotype = "h", .evaluations = {"e2"}, .fitness = {2.5}}});
  }
  void change(const std::string& sql) const {
    SQLite::Database(file_.string(), SQLite::OPEN_READWRITE).exec(sql);
  }
  void add_digests_late() const {
    SQLite::Database store(file_.string(), SQLite::OPEN_READWRITE);
    testing::add_digests_late(store);
  }
  /// What reading everything complains about.
  [[nodiscard]] std::string complaint() const {
    return message_of<InputError>([this] {
      const Store store(file_, Store::Mode::read_only);
      (void)store.meta("objectives");
      (void)store.evaluations();
      (void)store.asks();
    });
  }
  static constexpr const char* kFine = "nothing was thrown";
};

TEST_F(ChangedStoreTest, AChangedDigitIsFoundAndItsRecordNamed) {
  ASSERT_EQ(complaint(), kFine);
  change(R"(UPDATE evaluations SET "values" = replace("values", '0.3', '0.2') WHERE id = 'e2')");
  const auto text = complaint();
  EXPECT_THAT(text, HasSubstr(file_.string() + ": the record of evaluation e2 is damaged: its "
                                               "SHA-256 does not fit"));
  EXPECT_THAT(text, HasSubstr("nas-run verify " + folder_.string() + " --remove"));
  const Store store(file_, Store::Mode::read_only);
  EXPECT_THROW((void)store.find("e2"), InputError);
  EXPECT_EQ(canonical_json(*store.find("e1")), canonical_json(example()));
}

TEST_F(ChangedStoreTest, EveryColumnIsCovered) {
  for (const auto* column :
       {"candidate", "status", "reason", "identity", "curve", "\"values\"", "measured"}) {
    const std::string name = column;
    change("CREATE TABLE kept AS SELECT * FROM evaluations");
    change("UPDATE evaluations SET " + name + " = " + name + " || ' ' WHERE id = 'e1'");
    EXPECT_THAT(complaint(), HasSubstr("evaluation e1 is damaged")) << name;
    change("DELETE FROM evaluations; INSERT INTO evaluations SELECT * FROM kept; DROP TABLE kept");
    EXPECT_EQ(complaint(), kFine);
  }
  change("UPDATE evaluations SET replicate = 3 WHERE id = 'e1'");
  EXPECT_THAT(complaint(), HasSubstr("evaluation e1 is damaged"));
}

TEST_F(ChangedStoreTest, AsksAndFactsAreCoveredToo) {
  change("UPDATE asks SET fitness = '[2.6]' WHERE number = 1");
  EXPECT_THAT(complaint(), HasSubstr("the record of ask 1 is damaged"));
  {
    Store store(file_);
    EXPECT_THROW(
        store.add_asks({{.number = 1, .genotype = "h", .evaluations = {"e2"}, .fitness = {2.5}}}),
        InputError);
  }
  change("UPDATE meta SET value = replace(value, '1.5', '1.6')");
  EXPECT_THAT(complaint(), HasSubstr("the record of fact objectives is damaged"));
}

TEST_F(ChangedStoreTest, ADamagedTellTakesAlongWhatWasAskedSinceThen) {
  {
    Store store(file_);
    store.add_tell(0, {.number = 7, .genotype = "g", .evaluations = {"e2"}, .fitness = {1}});
  }
  change("UPDATE tells SET ask = 8");
  Store store(file_);
  EXPECT_THROW((void)store.tells(), InputError);
  EXPECT_EQ(store.check(true).damaged.size(), 1U);
  EXPECT_TRUE(store.tells().empty());
  EXPECT_TRUE(store.asks().empty());
}

TEST_F(ChangedStoreTest, WithAnEvaluationGoesWhatTheSearchMadeOfIt) {
  {
    Store store(file_);
    for (const std::int64_t asked : {1, 2}) store.add_indicator({.asked = asked});
    store.set_meta("ended_by", "the end of the algorithm");
    store.add_tell(0, {.number = 0, .genotype = "g", .evaluations = {"e1"}, .fitness = {1.5}});
    store.add_tell(1, {.number = 1, .genotype = "h", .evaluations = {"e2"}, .fitness = {2.5}});
  }
  change("UPDATE evaluations SET replicate = 7 WHERE id = 'e2'");
  Store store(file_);
  EXPECT_EQ(store.check(/*remove=*/true).damaged.size(), 1U);
  EXPECT_TRUE(store.check().damaged.empty());
  ASSERT_EQ(store.asks().size(), 1U);
  EXPECT_EQ(store.asks().front().evaluations.front(), "e1");
  EXPECT_EQ(store.tells(), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(store.indicators().size(), 1U);
  EXPECT_FALSE(store.meta("ended_by").has_value());
  EXPECT_TRUE(store.meta("objectives").has_value());
}

TEST_F(ChangedStoreTest, WhatAnsweredAnAskMustBeThere) {
  {
    Store store(file_);
    store.add_partials({paused(example("e7"), 50)});
    store.add_asks(
        {{.number = 2, .genotype = "i", .evaluations = {"e7"}, .fitness = {3.5}, .until = 50}});
  }
  ASSERT_EQ(complaint(), kFine) << "a part is enough";
  change("DELETE FROM partials");
  EXPECT_THAT(complaint(), HasSubstr("the record of ask 2 is damaged: the evaluation e7 that "
                                     "answered it is not there; put a copy"));
  change("DELETE FROM evaluations WHERE id = 'e2'");
  EXPECT_THAT(complaint(), HasSubstr("ask 1 is damaged: the evaluation e2"));
  add_digests_late();
  change("UPDATE asks SET digest = NULL, evaluations = '[\"\"]' WHERE number = 1");
  EXPECT_THAT(complaint(), HasSubstr("ask 1 is damaged: the evaluation  that"));
  Store store(file_);
  EXPECT_EQ(store.check(/*remove=*/true).damaged.size(), 2U);
  EXPECT_EQ(complaint(), kFine);
  EXPECT_EQ(store.asks().size(), 1U);
}

/// A store that does not say by which rules its asks were answered could be of other ones.
TEST_F(ChangedStoreTest, WhereTheRulesAreLostTheSearchAsksAnewOfTheSameEvaluations) {
  Store(file_).set_meta("answering", 2);
  change("UPDATE meta SET value = '3' WHERE key = 'answering'");
  Store store(file_);
  EXPECT_EQ(store.check(/*remove=*/true).damaged.size(), 1U);
  EXPECT_FALSE(store.meta("answering").has_value());
  EXPECT_TRUE(store.asks().empty());
  EXPECT_EQ(store.evaluations().size(), 2U);
}

TEST_F(ChangedStoreTest, PartsOfTrainingRunsAreCoveredToo) {
  {
    Store store(file_);
    store.add_partials({paused(example("e7"), 50), paused(example("e8"), 50)});
  }
  change("UPDATE partials SET step = 51 WHERE id = 'e7'");
  Store store(file_);
  EXPECT_THAT(message_of<InputError>([&] { (void)store.find_partial("e7"); }),
              HasSubstr("the record of partial training run e7 is damaged"));
  EXPECT_EQ(store.check(/*remove=*/true).damaged.size(), 1U);
  EXPECT_EQ(store.partials().size(), 1U);
}

TEST_F(ChangedStoreTest, WhereOneColumnEndsAndTheNextBeginsCounts) {
  change(
      "UPDATE evaluations SET candidate = substr(candidate, 2), id = id || substr(candidate, 1, "
      "1)");
  EXPECT_THAT(complaint(), HasSubstr("does not fit"));
}

TEST_F(ChangedStoreTest, RecordsWithoutADigestAreReadAndNamedWhereTheyCannotBe) {
  add_digests_late();
  change("UPDATE evaluations SET digest = NULL; UPDATE asks SET digest = NULL");
  EXPECT_EQ(complaint(), kFine);
  change("UPDATE evaluations SET curve = '[{' WHERE id = 'e1'");
  EXPECT_THAT(complaint(), HasSubstr("evaluation e1 is damaged: it is no JSON"));
  change("UPDATE evaluations SET curve = '[]', \"values\" = '{\"perplexity\":\"many\"}'");
  EXPECT_THAT(complaint(), HasSubstr("evaluation e1 is damaged: 'many' is no number"));
  change("UPDATE evaluations SET \"values\" = '{}', curve = '[{\"step\":1}]'");
  EXPECT_THAT(complaint(), HasSubstr("evaluation e1 is damaged"));
  change("UPDATE evaluations SET curve = '[]', status = 'fine'");
  EXPECT_THAT(complaint(), HasSubstr("evaluation e1 is damaged: unknown status 'fine'"));
}

TEST_F(ChangedStoreTest, AsksNameAtLeastOneEvaluation) {
  add_digests_late();
  for (const std::string given : {"[]", "{}", R"({"e1": 0})", R"({"e1": -1})", R"({"e1": 1.5})",
                                  R"({"e1": 18446744073709551615})", R"({"e1": 1, "e2": 1})",
                                  "null", "7", "[7]", R"("e1")"}) {
    change("UPDATE asks SET digest = NULL, evaluations = '" + given + "' WHERE number = 1");
    EXPECT_THAT(complaint(), HasSubstr("the record of ask 1 is damaged: ")) << given;
  }
  change("UPDATE asks SET digest = NULL, evaluations = '{}'");
  EXPECT_THAT(complaint(), HasSubstr("evaluations = {}, must be a list of at least one, or one "));
  change(R"(UPDATE asks SET digest = NULL, evaluations = '{"e1": 1}')");
  EXPECT_EQ(complaint(), kFine);
}

TEST_F(ChangedStoreTest, PartsOfARecordHaveTheTypeThatTheyAreReadAs) {
  add_digests_late();
  for (const std::string column : {"identity", "\"values\"", "measured"}) {
    for (const auto* given : {"7", "[]", "\"text\""}) {
      change("UPDATE evaluations SET digest = NULL, " + column + " = '" + given + "'");
      EXPECT_THAT(complaint(), HasSubstr("must be an object")) << column << given;
    }
    change("UPDATE evaluations SET " + column + " = 'null'");
    EXPECT_EQ(complaint(), kFine) << column << " of which nothing was given";
  }
  change("UPDATE evaluations SET status = 'paused', curve = '[]'");
  EXPECT_THAT(complaint(), HasSubstr("evaluation e1 is damaged: curve = [], must be that of"));

  const auto refusal = [this](const std::string& key, const std::string& value) {
    change("INSERT OR REPLACE INTO meta VALUES ('" + key + "', '" + value + "', NULL)");
    return message_of<InputError>([&] { (void)Store(file_, Store::Mode::read_only).meta(key); });
  };
  EXPECT_THAT(refusal("config", "[]"),
              HasSubstr("fact config is damaged: config is of type array, must be an object"));
  EXPECT_THAT(refusal("facts", "7"), HasSubstr("must be an object"));
  EXPECT_THAT(refusal("sessions", "{}"), HasSubstr("must be a list"));
  EXPECT_THAT(refusal("sessions", "[7]"), HasSubstr("a session is of type number"));
  EXPECT_THAT(refusal("sessions", R"([{"environment": 7}])"), HasSubstr("a session's environment"));
  EXPECT_EQ(refusal("sessions", R"([{"environment": {}}])"), kFine);
  EXPECT_THAT(refusal("labels", "[7]"), HasSubstr("labels is of type array, must be an object"));
  EXPECT_THAT(refusal("labels", R"({"a": 7})"), HasSubstr("the label of a must be a text"));
  EXPECT_EQ(refusal("labels", R"({"a": "b"})"), kFine);
  EXPECT_THAT(refusal("elapsed_seconds", "{}"), HasSubstr("must be a number"));

  EXPECT_THAT(refusal("baseline", "[7]"),
              HasSubstr("baseline is of type array, must be an object"));
  EXPECT_THAT(refusal("baseline", R"({"evaluations": [7], "fitness": []})"),
              HasSubstr("baseline.evaluations[0] is of type number, must be a text"));
  EXPECT_THAT(refusal("baseline", R"({"evaluations": []})"),
              HasSubstr("baseline.fitness is missing"));
  EXPECT_THAT(refusal("objectives", R"({"best": 1})"), HasSubstr("must be a list"));
  EXPECT_THAT(refusal("objectives", R"([{"best": 1}])"),
              HasSubstr("objectives[0].name is missing"));
  EXPECT_THAT(refusal("objectives", R"([{"name": "f", "maximise": 1}])"),
              HasSubstr("objectives[0].maximise is of type number, must be true or false"));
  EXPECT_EQ(refusal("objectives", R"([{"name": "f", "best": null}])"), kFine);
  EXPECT_THAT(refusal("last_population", R"([[1, "2"]])"),
              HasSubstr("last_population[0][1] is of type string, must be a number"));
  EXPECT_THAT(refusal("asking", R"({"asks": [{"evaluations": "e1"}]})"),
              HasSubstr("must be a list"));
  EXPECT_THAT(refusal("at_work", R"({"arrays": [7]})"),
              HasSubstr("at_work.arrays[0] is of type number, must be an object"));
  for (const auto* key : {"asking", "at_work"}) EXPECT_EQ(refusal(key, "null"), kFine);
}

TEST_F(ChangedStoreTest, DeeplyNestedJsonIsAnError) {
  add_digests_late();
  constexpr int kDepth = 200000;
  const auto nested = std::string(kDepth, '[') + std::string(kDepth, ']');
  change("UPDATE evaluations SET digest = NULL, measured = '" + nested + "' WHERE id = 'e1'");
  EXPECT_THAT(complaint(), HasSubstr("evaluation e1 is damaged: its JSON is nested"));
  change("UPDATE evaluations SET digest = NULL, reason = '', measured = '{\"text\":\"" +
         std::string(300, '[') + "\"}'");
  EXPECT_EQ(complaint(), kFine) << "a text may hold any number of brackets";
}

TEST_F(ChangedStoreTest, ACheckCountsNamesAndRemoves) {
  {
    Store store(file_, Store::Mode::read_only);
    const auto found = store.check();
    EXPECT_EQ(found.verified, 5);
    EXPECT_EQ(found.unverified, 0);
    EXPECT_TRUE(found.damaged.empty());
    EXPECT_EQ(found.inconsistencies, "");
  }
  add_digests_late();
  change(
      "UPDATE evaluations SET replicate = 7 WHERE id = 'e1'; UPDATE asks SET batch = 9; "
      "UPDATE meta SET digest = NULL");
  Store store(file_);
  store.set_meta("finished", true);
  const auto found = store.check(true);
  EXPECT_EQ(found.verified, 2);
  EXPECT_EQ(found.unverified, 1);
  EXPECT_THAT(found.damaged, ::testing::ElementsAre(HasSubstr("evaluation e1"), HasSubstr("ask 0"),
                                                    HasSubstr("ask 1")));
  EXPECT_TRUE(store.check().damaged.empty());
  EXPECT_FALSE(store.meta("finished")) << "what was removed is to be made again";
  EXPECT_EQ(store.evaluations().size(), 1U);
  EXPECT_TRUE(store.asks().empty());
}

/// Only rows that version 2 has written lack a digest.
TEST_F(ChangedStoreTest, ADigestThatWasRemovedIsDamage) {
  {
    Store store(file_);
    store.add_partials({paused(example("e7"), 50)});
    store.add_tell(0, {.number = 0, .genotype = "g", .evaluations = {"e1"}, .fitness = {1.5}});
  }
  const auto rows = Store(file_, Store::Mode::read_only).check().verified;
  for (const std::string table : {"meta", "evaluations", "asks", "partials", "tells"}) {
    SQLite::Database store(file_.string(), SQLite::OPEN_READWRITE);
    store.exec("CREATE TABLE kept AS SELECT * FROM " + table);
    store.exec("UPDATE " + table + " SET digest = NULL");
    const auto found = Store(file_, Store::Mode::read_only).check();
    EXPECT_EQ(found.unverified, 0) << table;
    EXPECT_THAT(found.damaged, ::testing::Each(HasSubstr(" is damaged: it has no SHA-256")));
    EXPECT_EQ(found.damaged.size() + static_cast<std::size_t>(found.verified),
              static_cast<std::size_t>(rows))
        << table;
    EXPECT_FALSE(found.damaged.empty()) << table;
    store.exec("DELETE FROM " + table + "; INSERT INTO " + table +
               " SELECT * FROM kept; DROP TABLE kept");
  }
}

/// The tables as version 2 made them.
TEST_F(ChangedStoreTest, OfAnInconsistentFileNothingIsRemoved) {
  auto large = example("e3");
  large.reason = std::string(std::size_t{33} << 20U, 'x');  // opening checks smaller files whole
  Store(file_).add({large});
  change("UPDATE evaluations SET status = 'failed' WHERE id = 'e1'; PRAGMA journal_mode = DELETE");
  {
    constexpr std::streamoff kFreePages = 36;  // of the header: how many there are
    std::fstream file(file_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(kFreePages);
    file.write("\0\0\0\7", 4);
  }
  Store store(file_);
  const auto found = store.check(/*remove=*/true);
  EXPECT_THAT(found.inconsistencies, HasSubstr("reelist"));
  EXPECT_EQ(found.damaged.size(), 1U);
  EXPECT_EQ(store.check().damaged.size(), 1U) << "it is still there";
}

TEST_F(StoreTest, AStoreOfTheVersionBeforeIsReadAndContinued) {
  {
    SQLite::Database old(file_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    old.exec(R"sql(PRAGMA journal_mode = WAL;
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE evaluations (
  id        TEXT PRIMARY KEY,  -- SHA-256 of identity
  candidate TEXT NOT NULL,     -- canonical name
  replicate INTEGER NOT NULL,
  status    TEXT NOT NULL,     -- ok, stopped_early, diverged, out_of_memory, rejected, failed
  reason    TEXT NOT NULL,
  identity  TEXT NOT NULL,     -- all that determines the result
  curve     TEXT NOT NULL,
  "values"  TEXT NOT NULL,
  measured  TEXT NOT NULL      -- times, device, process: not part of the comparable record
) WITHOUT ROWID;
CREATE TABLE asks (
  number      INTEGER PRIMARY KEY,  -- order in which the algorithm asked
  batch       INTEGER NOT NULL,
  genotype    TEXT NOT NULL,
  evaluations TEXT NOT NULL,        -- ids
  reused      INTEGER NOT NULL,
  fitness     TEXT NOT NULL         -- minimisation form
);
CREATE TABLE indicators (
  asked     INTEGER PRIMARY KEY,
  batch     INTEGER NOT NULL,
  evaluated INTEGER NOT NULL,
  front     INTEGER NOT NULL,       -- non-dominated candidates
  value     REAL NOT NULL           -- hypervolume, or the best value of one objective
);
PRAGMA user_version = 2;
INSERT INTO meta VALUES ('environment', '{"torch":"1.13.1"}');
INSERT INTO evaluations VALUES ('e1', 'a|b', 0, 'ok', '', '{}', '[]', '{"f1":0.5}', '{}');
INSERT INTO asks VALUES (0, 0, 'g', '["e1"]', 0, '[0.5,null]');)sql");
  }
  {
    const Store store(file_, Store::Mode::read_only);
    EXPECT_EQ(store.find("e1")->values.at("f1"), 0.5);
    EXPECT_TRUE(std::isinf(store.asks().at(0).fitness.at(1)));
    ASSERT_EQ(store.sessions().size(), 1U);
    EXPECT_EQ(store.sessions()[0].at("environment").at("torch"), "1.13.1");
  }
  for (const auto* id : {"e2", "e3"}) {
    Store store(file_);
    store.begin_session({{"torch", id}});
    store.add({example(id)});
    store.add_indicator({.asked = 1, .batch = 0, .evaluated = 1, .front = 1, .value = 0.5});
  }
  Store store(file_, Store::Mode::read_only);
  EXPECT_EQ(store.evaluations().size(), 3U);
  EXPECT_EQ(store.sessions().size(), 3U);
  const auto check = store.check();
  EXPECT_EQ(check.unverified, 3) << "an evaluation, an ask and a fact";
  EXPECT_EQ(check.verified, 3);
}

TEST_F(StoreTest, EvaluationsSayWhichSessionMadeThem) {
  for (const auto* id : {"e1", "e2", "e3"}) {
    Store store(file_);
    store.begin_session({{"torch", id == std::string("e2") ? "2.0.0" : "1.13.1"}});
    store.add({example(id)});
  }
  const Store store(file_, Store::Mode::read_only);
  EXPECT_EQ(store.find("e1")->measured.at("session"), 0);
  EXPECT_EQ(store.find("e3")->measured.at("session"), 2);
  EXPECT_EQ(canonical_json(*store.find("e1")), canonical_json(example()));
  const auto sessions = store.sessions();
  ASSERT_EQ(sessions.size(), 3U);
  EXPECT_EQ(sessions[1].at("environment").at("torch"), "2.0.0");
  EXPECT_EQ(sessions[1].at("pid"), getpid());
  EXPECT_THAT(sessions[1].at("started").get<std::string>(), ::testing::EndsWith("Z"));
  EXPECT_EQ(store.environments(),
            (std::vector<nlohmann::json>{{{"torch", "1.13.1"}}, {{"torch", "2.0.0"}}}));
}

TEST_F(StoreTest, EveryDoubleReadsBack) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  auto evaluation = example();
  evaluation.values = {{"a", kInfinity},
                       {"b", -kInfinity},
                       {"c", std::numeric_limits<double>::quiet_NaN()},
                       {"d", std::numeric_limits<double>::denorm_min()},
                       {"e", std::numeric_limits<double>::max()},
                       {"f", -0.0}};
  {
    Store store(file_);
    store.add({evaluation});
    store.add_asks(
        {{.number = 0, .genotype = "g", .evaluations = {"e1"}, .fitness = {kInfinity, 0.1 + 0.2}}});
  }
  const Store store(file_, Store::Mode::read_only);
  const auto values = store.find("e1")->values;
  for (const auto& [name, value] : evaluation.values) {
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(values.at(name)));
    } else {
      EXPECT_EQ(values.at(name), value) << name;
    }
  }
  EXPECT_EQ(store.asks().at(0).fitness, (std::vector<double>{kInfinity, 0.1 + 0.2}));
}

/// What must be known of a vanished folder is said; leaving in other ways goes on in silence.
TEST_F(StoreTest, AVanishedFolderEndsTheWritingAndNotTheProcess) {
  for (const auto mode : {Store::Mode::write, Store::Mode::write_cheap}) {
    fs::create_directories(folder_ / "run");
    Store store(folder_ / "run" / "store.sqlite", mode);
    store.add({example()});
    fs::remove_all(folder_ / "run");
    EXPECT_THROW(store.require_in_place(), MachineError);
    EXPECT_THROW(
        {
          store.add({example("e2")});
          store.flush();
        },
        MachineError);
  }
}

TEST_F(StoreTest, WhatIsNoStoreIsRefusedByName) {
  std::ofstream(file_)
      << "this is a long enough text that is certainly not a database of SQLite, is it? "
      << std::string(4096, 'x');
  EXPECT_THAT(message_of<InputError>([&] { Store store(file_); }),
              HasSubstr("store.sqlite: not a readable store"));
  EXPECT_THAT(message_of<InputError>(
                  [&] { Store store(folder_ / "absent.sqlite", Store::Mode::read_only); }),
              HasSubstr("absent.sqlite: no such store"));
  EXPECT_THAT(message_of<InputError>([&] { Store store(folder_ / "no" / "folder.sqlite"); }),
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
}

}  // namespace
}  // namespace nas
