#include "store/store.hpp"

#include <regex>

#include <SQLiteCpp/SQLiteCpp.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "core/warning.hpp"
#include "prelude.hpp"
#include "store/database.hpp"
#include "store/rows.hpp"
#include "unit/forked.hpp"
#include "unit/store_fixture.hpp"

namespace nas {
namespace {

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
  const auto ask = [](std::int64_t number, Texts ids) {
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

/// SQLite rolls the shared transaction back where a page of it finds no place.
TEST_F(StoreTest, AfterAFullDiskNothingIsWrittenWithoutWhatWasLost) {
  EXPECT_EQ(testing::in_child([this] {
              Store store(file_, Store::Mode::write_cheap);
              store.flush();
              const auto add = [&store](int i) {
                auto evaluation = example("e" + std::to_string(i));
                evaluation.reason.assign(100'000, 'x');
                store.add({evaluation});
              };
              testing::limit_file_size(200'000);
              int added = 0;
              const auto first = message_of<MachineError>([&] {
                while (added < 1000) add(added++);
              });
              if (first.find("no space left in ") == std::string::npos) return 1;
              testing::limit_file_size(RLIM_INFINITY);
              if (message_of<MachineError>([&] { add(added); }) != first) return 2;
              return message_of<MachineError>([&store] { store.flush(); }) == first ? 0 : 3;
            }),
            0);
  EXPECT_TRUE(Store(file_, Store::Mode::read_only).evaluations().empty());
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
  EXPECT_EQ(testing::in_child([&] {
              auto* store = new Store(file_);
              store->add({example()});
              kill(getpid(), SIGKILL);
              return 0;
            }),
            128 + SIGKILL);
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
    EXPECT_THAT(heard, AllOf(HasSubstr("store.sqlite-wal alone"),
                             HasSubstr("another program has been reading")));
    EXPECT_EQ(copied + 1, Store(file_, Store::Mode::read_only).evaluations().size());
  }
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
  EXPECT_THAT(sessions[1].at("started").get<std::string>(), EndsWith("Z"));
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
