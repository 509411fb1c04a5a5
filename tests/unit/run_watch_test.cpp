#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cli/watch_list.hpp"
#include "core/error.hpp"
#include "core/host.hpp"
#include "core/temporary_folder.hpp"

namespace nas::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kHostile = "</script><img src=x onerror=alert(1)>|&amp;'\"";

/// A run that is written here and there.
class RunWatchTest : public ::testing::Test {
 protected:
  RunWatchTest() { begin(); }
  void begin(const char* version = "0") {
    store_ = std::make_unique<Store>(folder_ / "store.sqlite");
    store_->begin_session({{"attnas", version}});
    store_->set_meta("config", {{"name", kHostile}, {"budget", {{"evaluations", 8}}}});
    const auto objective = [](const char* name, double worst) {
      return nlohmann::json{{"name", name},      {"key", name}, {"unit", "1"},
                            {"maximise", false}, {"best", 0.0}, {"worst", worst}};
    };
    store_->set_meta("objectives", {objective("perplexity", 100.0), objective("flops", 10.0)});
    store_->set_meta("planned_asks", 8);
    store_->set_meta("ended_by", nullptr);
  }
  static std::string id(int i) { return "e" + std::to_string(100 + i); }
  /// The only evaluation of the i-th ask.
  void evaluate(int i, const std::vector<double>& values, Status status = Status::ok) {
    Evaluation evaluation;
    evaluation.id = id(i);
    evaluation.candidate = i == 0 ? kHostile : "candidate " + std::to_string(i);
    evaluation.status = status;
    evaluation.reason = status == Status::ok ? "" : kHostile;
    evaluation.values = {{"perplexity", values[0]}, {"flops", values[1]}};
    evaluation.measured = {{"train_seconds", 2.0}, {"started", utc_now()}};
    CurvePoint point;
    point.step = 10;
    point.valid.nll = 12.0;
    point.valid.tokens = 4;
    if (status != Status::rejected) evaluation.curve = {point};
    store_->add({evaluation});
  }
  /// The i-th ask and its only evaluation.
  void answer(int i, std::vector<double> values, Status status = Status::ok) {
    evaluate(i, values, status);
    store_->add_asks({{.number = i,
                       .batch = 0,
                       .genotype = "g",
                       .evaluations = {id(i)},
                       .fitness = std::move(values)}});
  }
  /// The state once it has changed, or does not for a while.
  nlohmann::json look(RunWatch& watch, std::int64_t since = -1) const {
    const auto before = watch.version();
    for (int i = 0; i < 30 && watch.version() == before; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      watch.look();
    }
    return watch.state(since);
  }

  const TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  std::unique_ptr<Store> store_;
};

TEST_F(RunWatchTest, FollowsARunFromBeforeItsFirstResultToItsEnd) {
  RunWatch watch(folder_);
  auto state = watch.state(-1);
  EXPECT_EQ(state.at("phase"), "running");
  EXPECT_EQ(state.at("name"), kHostile);
  EXPECT_EQ(state.at("progress"), (nlohmann::json{{"done", 0}, {"of", 8}, {"unit", "ask"}}));
  EXPECT_TRUE(state.at("left").is_null());
  EXPECT_THAT(state.at("evaluations"), IsEmpty());

  answer(0, {20.0, 5.0});
  answer(1, {10.0, 6.0});
  answer(2, {200.0, 20.0}, Status::failed);
  store_->set_meta(
      "asking",
      {{"batch", 0},
       {"asks",
        {{{"number", 1}, {"evaluations", {id(1)}}}, {{"number", 3}, {"evaluations", {id(3)}}}}}});
  store_->set_meta("at_work",
                   {{"stage", "search"},
                    {"workers", 2},
                    {"waiting", 0},
                    {"written", utc_now()},
                    {"arrays",
                     {{{"trainings",
                        {{{"evaluation", id(3)}, {"candidate", "candidate 3"}, {"replicate", 0}},
                         {{"evaluation", id(1)}, {"candidate", "candidate 1"}, {"replicate", 0}}}},
                       {"started", utc_now()},
                       {"step", 5},
                       {"steps", 10},
                       {"curve", {{1, 4.0}, {5, 3.5}}}}}}});
  state = look(watch);
  EXPECT_EQ(state.at("progress").at("done"), 3);
  EXPECT_THAT(state.at("evaluations"), SizeIs(3));
  EXPECT_THAT(state.at("front"), SizeIs(2));
  EXPECT_EQ(state.at("best")[0].at("value"), 10.0);
  EXPECT_EQ(state.at("best")[1].at("value"), 5.0);
  EXPECT_EQ(state.at("counts").at("failures"), 1);
  EXPECT_EQ(state.at("evaluations")[0].at("curve"), nlohmann::json::parse("[[10, 3.0]]"));
  EXPECT_EQ(state.at("evaluations")[2].at("reason"), kHostile);
  EXPECT_TRUE(state.at("evaluations")[2].at("values")[0].is_null());
  const auto& arrays = state.at("at_work").at("arrays");
  ASSERT_THAT(arrays, SizeIs(1));
  EXPECT_THAT(arrays[0].at("trainings"), SizeIs(1)) << "the other one has finished";
  EXPECT_TRUE(state.at("left").is_array());
  EXPECT_EQ(state.at("at_work").at("asking"), 1) << "the other one is answered";
  store_->set_meta("config", {{"name", kHostile}, {"budget", {{"train_seconds", 7.0}}}});
  const auto by_asks = state.at("left");
  state = look(watch);
  EXPECT_LT(state.at("left")[1], by_asks[1]) << "7 s of training, of which 6 are spent";
  EXPECT_GT(state.at("left")[1], 0.0) << "what runs goes on to its end";

  store_->set_meta("ended_by", "8 asks");
  store_.reset();
  state = look(watch);
  EXPECT_EQ(state.at("phase"), "finished");
  EXPECT_EQ(state.at("ended_by"), "8 asks");
  EXPECT_TRUE(state.at("at_work").is_null()) << "nobody works on it";
  const auto version = state.at("version");
  EXPECT_EQ(look(watch).at("version"), version);
}

TEST_F(RunWatchTest, StepsBeyondTheLastOneTakeNoTimeBack) {
  answer(0, {20.0, 5.0});
  nlohmann::json array{{"trainings", nlohmann::json::array()},
                       {"started", utc_now()},
                       {"step", 4'000'000},
                       {"steps", 10},
                       {"curve", nlohmann::json::array()}};
  auto arrays = nlohmann::json::array({array});
  array["trainings"].push_back(
      {{"evaluation", id(3)}, {"candidate", "candidate 3"}, {"replicate", 0}});
  arrays.push_back(array);
  store_->set_meta("at_work", {{"stage", "re-test"},
                               {"workers", 2},
                               {"waiting", 0},
                               {"written", utc_now()},
                               {"arrays", arrays}});
  const RunWatch watch(folder_);
  EXPECT_EQ(watch.state(-1).at("left"), nlohmann::json({0.0, 0.0}));
}

TEST_F(RunWatchTest, TellsWhatHasChangedAlone) {
  answer(0, {20.0, 5.0});
  answer(1, {10.0, 6.0});
  RunWatch watch(folder_);
  const auto whole = watch.state(-1);
  EXPECT_TRUE(whole.at("whole"));
  const auto version = whole.at("version").get<std::int64_t>();
  auto state = look(watch, version);
  EXPECT_EQ(state.at("version"), version);
  EXPECT_FALSE(state.at("whole"));
  EXPECT_THAT(state.at("evaluations"), IsEmpty());
  answer(2, {5.0, 7.0});
  state = look(watch, version);
  ASSERT_THAT(state.at("evaluations"), SizeIs(1));
  EXPECT_EQ(state.at("evaluations")[0].at("id"), id(2));
  ASSERT_THAT(state.at("candidates"), SizeIs(1));
  EXPECT_THAT(watch.state(version + 1000).at("evaluations"), SizeIs(3)) << "no version of this one";
}

TEST_F(RunWatchTest, ARunThatStopsAndGoesOnIsToldAnew) {
  answer(0, {20.0, 5.0});
  RunWatch watch(folder_);
  store_.reset();
  auto state = look(watch);
  EXPECT_EQ(state.at("phase"), "stopped");
  const auto version = state.at("version").get<std::int64_t>();
  begin();
  answer(1, {10.0, 6.0});
  state = look(watch, version);
  EXPECT_EQ(state.at("phase"), "running");
  EXPECT_TRUE(state.at("whole")) << "what failed before may have been made again";
  EXPECT_THAT(state.at("evaluations"), SizeIs(2));
}

TEST_F(RunWatchTest, AnotherRunInItsPlaceIsToldWithoutIt) {
  answer(0, {20.0, 5.0});
  answer(1, {10.0, 6.0});
  RunWatch watch(folder_);
  const auto version = watch.version();
  store_.reset();
  fs::rename(folder_ / "store.sqlite", folder_ / "elsewhere");
  begin("another");  // also of one session, which may have begun in the same second
  answer(2, {5.0, 7.0});
  const auto state = look(watch, version);
  EXPECT_TRUE(state.at("whole"));
  ASSERT_THAT(state.at("evaluations"), SizeIs(1));
  EXPECT_EQ(state.at("evaluations")[0].at("id"), id(2));
  EXPECT_THAT(state.at("candidates"), SizeIs(1));
  EXPECT_EQ(state.at("counts").at("evaluated"), 1);
}

TEST_F(RunWatchTest, OfListedMechanismsTrainingRunsAreCounted) {
  store_->set_meta("config", {{"name", "list"}, {"mechanisms", {"candidate 1", "candidate 2"}}});
  evaluate(1, {20.0, 5.0});
  evaluate(2, {0.0, 5.0}, Status::rejected);
  const auto state = RunWatch(folder_).state(-1);
  EXPECT_EQ(state.at("progress"),
            (nlohmann::json{{"done", 1}, {"of", nullptr}, {"unit", "training run"}}));
  EXPECT_EQ(state.at("counts").at("outside"), 1);
  EXPECT_THAT(state.at("evaluations"), SizeIs(2));
}

TEST_F(RunWatchTest, OfListedMechanismsAndTheBaselineThereAreSoManyTrainingRuns) {
  for (const auto& [replicates, done] : {std::pair{1, 2}, std::pair{2, 2}, std::pair{0, 2}}) {
    store_->set_meta("config", {{"name", "list"},
                                {"mechanisms", {"candidate 1"}},
                                {"retest", {{"replicates", replicates}}}});
    evaluate(1, {20.0, 5.0});
    evaluate(2, {10.0, 5.0});
    const auto progress = RunWatch(folder_).state(-1).at("progress");
    EXPECT_EQ(progress.at("done"), done);
    EXPECT_EQ(progress.at("of"),
              replicates == 0 ? nlohmann::json() : nlohmann::json(2 * replicates));
  }
}

TEST_F(RunWatchTest, SeedsUntilADecisionAreAtMostSoManyAndAtTheEndAll) {
  store_->set_meta("config", {{"name", "list"},
                              {"mechanisms", {"candidate 1"}},
                              {"retest", {{"replicates", 20}, {"until", 3.0}}}});
  store_->set_meta("planned_trainings", 24);
  evaluate(1, {20.0, 5.0});
  evaluate(2, {10.0, 5.0});
  const auto progress = [this] { return RunWatch(folder_).state(-1).at("progress"); };
  EXPECT_EQ(progress(),
            (nlohmann::json{{"done", 2}, {"of", 24}, {"unit", "training run"}, {"at_most", true}}));
  store_->set_meta("retest", {{"candidates", nlohmann::json::array()}, {"verdict", "equal"}});
  store_->set_meta("ended_by", "the end of the list");
  store_.reset();
  EXPECT_EQ(progress(),
            (nlohmann::json{{"done", 2}, {"of", 2}, {"unit", "training run"}, {"at_most", false}}));
}

/// Asks that known evaluations answer are free.
TEST_F(RunWatchTest, AsksBeyondAPlanOfTrainingRunsAreNotCountedAsPartsOfIt) {
  store_->set_meta("config", {{"name", "x"}, {"budget", {{"evaluations", 2}}}});
  store_->set_meta("planned_asks", 2);
  answer(0, {20.0, 5.0});
  answer(1, {10.0, 6.0});
  const auto progress = [this] { return RunWatch(folder_).state(-1).at("progress"); };
  EXPECT_EQ(progress(), (nlohmann::json{{"done", 2}, {"of", 2}, {"unit", "ask"}}));
  store_->add_asks(
      {{.number = 2, .batch = 0, .genotype = "g", .evaluations = {id(1)}, .fitness = {10.0, 6.0}}});
  EXPECT_EQ(progress(), (nlohmann::json{{"done", 2}, {"of", 2}, {"unit", "training run"}}));
  store_->set_meta("config", {{"name", "x"}});
  EXPECT_EQ(progress(), (nlohmann::json{{"done", 3}, {"of", nullptr}, {"unit", "ask"}}));
}

TEST_F(RunWatchTest, AnOverviewHasTheBestSoFarByWhatTheBudgetCounts) {
  answer(0, {20.0, 5.0});
  answer(1, {30.0, 4.0});
  answer(2, {10.0, 6.0});
  store_->add_indicator({.asked = 1, .value = 0.5});
  store_->add_indicator({.asked = 2, .value = 0.5});
  store_->add_indicator({.asked = 3, .value = 0.75});
  auto row = RunWatch(folder_).overview();
  EXPECT_EQ(row.at("so_far"), nlohmann::json::parse(R"({"title": "hypervolume", "by": "ask",
      "points": [[1, 0.5], [3, 0.75]], "last": 3})"));
  EXPECT_EQ(row.at("best").at("name"), "candidate 2");
  EXPECT_EQ(row.at("best").at("value"), 10.0);
  EXPECT_TRUE(row.at("baseline").is_null());
  store_->set_meta("config", {{"name", "x"}, {"budget", {{"train_steps", 30}}}});
  row = RunWatch(folder_).overview();
  EXPECT_EQ(row.at("so_far"), nlohmann::json::parse(R"({"title": "hypervolume",
      "by": "training step", "points": [[10, 0.5], [30, 0.75]], "last": 30})"));
}

TEST_F(RunWatchTest, AnOverviewOfOneObjectiveHasItsBestValuesAndThoseOfListedMechanisms) {
  auto objectives = store_->meta("objectives").value();
  objectives.erase(1);
  store_->set_meta("objectives", objectives);
  for (const double value : {20.0, 30.0, 10.0}) {
    const auto i = static_cast<int>(store_->num_evaluations());
    evaluate(i, {value, 5.0});
    store_->add_asks({{.number = i, .genotype = "g", .evaluations = {id(i)}, .fitness = {value}}});
  }
  auto row = RunWatch(folder_).overview();
  EXPECT_EQ(row.at("so_far"), nlohmann::json::parse(R"({"title": "perplexity", "by": "ask",
      "points": [[1, 20.0], [3, 10.0]], "last": 3})"));
  store_->set_meta("config", {{"name", "x"},
                              {"baseline", {{"mechanism", "candidate 1"}}},
                              {"mechanisms", {"candidate 2", "candidate 3"}}});
  row = RunWatch(folder_).overview();
  EXPECT_TRUE(row.at("listed"));
  EXPECT_FALSE(row.contains("so_far"));
  EXPECT_EQ(row.at("best").at("value"), 10.0);
  EXPECT_EQ(row.at("baseline"), 30.0) << "also before it is recorded";
}

/// The rows of a list once nothing is unread, by the runs' names.
std::map<std::string, nlohmann::json> rows_of(WatchList& list) {
  for (int i = 0; i < 100; ++i) {
    list.look();
    if (list.state().at("unread") == 0) break;
  }
  std::map<std::string, nlohmann::json> rows;
  const auto state = list.state();
  for (const auto& row : state.at("runs")) rows[row.at("run")] = row;
  return rows;
}

TEST_F(RunWatchTest, AListHasTheRunsAtMostThreeFoldersDeep) {
  answer(0, {20.0, 5.0});
  const auto copy_to = [](const fs::path& folder) {
    fs::create_directories(folder);
    Store(folder / "store.sqlite").set_meta("config", {{"name", "copy"}});
  };
  const TemporaryFolder runs;
  copy_to(runs.path() / "a/b/c");
  copy_to(runs.path() / "a/b/other/deeper");
  copy_to(runs.path() / ".hidden");
  copy_to(runs.path() / "run/within");
  copy_to(runs.path() / "run");
  fs::create_directory_symlink(folder_, runs.path() / "linked");
  fs::create_directory_symlink(runs.path(), runs.path() / "circle");
  fs::create_directories(runs.path() / "damaged");
  std::ofstream(runs.path() / "damaged/store.sqlite") << "no store";
  WatchList list({runs.path().string()});
  const auto rows = rows_of(list);
  std::vector<std::string> names;
  for (const auto& [name, row] : rows) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("a/b/c", "damaged", "linked", "run"));
  EXPECT_FALSE(rows.at("damaged").contains("phase"));
  EXPECT_THAT(rows.at("damaged").at("error").get<std::string>(),
              HasSubstr((runs.path() / "damaged").string()));
  EXPECT_EQ(rows.at("linked").at("phase"), "running");
  EXPECT_EQ(rows.at("a/b/c").at("phase"), "stopped");
  EXPECT_EQ(
      rows_of(*std::make_unique<WatchList>(std::vector{folder_.string(), runs.path().string()}))
          .size(),
      4U + 1U);
  EXPECT_THROW(WatchList({(runs.path() / "none").string()}), InputError);
  EXPECT_THROW(WatchList({(runs.path() / "a/b/other").string(), folder_.string(),
                          temporary_.path().string() + "/none"}),
               InputError);
}

TEST_F(RunWatchTest, ARunOfAListIsReadAgainWhereItsStoreHasChanged) {
  answer(0, {20.0, 5.0});
  store_->set_meta("ended_by", "8 asks");
  store_.reset();
  WatchList list({folder_.string(), folder_.string()});
  EXPECT_EQ(rows_of(list).size(), 1U) << "the same one";
  const auto version = list.version();
  const auto wait_for = [&list](const std::function<bool(const nlohmann::json&)>& right) {
    for (int i = 0; i < 100; ++i) {
      const auto rows = rows_of(list);
      if (!rows.empty() && right(rows.begin()->second)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  EXPECT_EQ(rows_of(list).begin()->second.at("phase"), "finished");
  EXPECT_EQ(list.version(), version) << "nothing has changed";
  const auto before = list.open(0).version();
  begin();
  answer(1, {10.0, 6.0});
  EXPECT_TRUE(wait_for([](const auto& row) {
    return row.at("phase") == "running" && row.at("best").at("value") == 10.0;
  }));
  EXPECT_GT(list.open(0).version(), before);
  EXPECT_TRUE(list.open(0).state(before).at("whole")) << "another session writes it";
  EXPECT_FALSE(list.contains(1));
}

TEST_F(RunWatchTest, VersionsGoOnAfterThoseOfAnEarlierOne) {
  answer(0, {20.0, 5.0});
  const RunWatch first(folder_);
  const RunWatch second(folder_, first.version());
  EXPECT_GT(second.version(), first.version());
  EXPECT_TRUE(second.state(first.version()).at("whole"));
}

/// A pipe of the store's name would be waited for.
TEST_F(RunWatchTest, WhatIsNoFileAnyMoreIsSaid) {
  answer(0, {20.0, 5.0});
  RunWatch watch(folder_);
  for (const std::string name : {"store.sqlite", "store.sqlite-wal", "store.sqlite-journal"}) {
    const auto file = folder_ / name;
    const auto aside = folder_ / "aside";
    const bool was = fs::exists(file);
    if (was) fs::rename(file, aside);
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
    EXPECT_EQ(look(watch).at("error"), file.string() + ": is no file any more");
    fs::remove(file);
    if (was) fs::rename(aside, file);
    EXPECT_TRUE(look(watch).at("error").is_null()) << name;
  }
}

TEST_F(RunWatchTest, ARunWithoutItsReTestIsNotFinished) {
  answer(0, {20.0, 5.0});
  store_->set_meta("ended_by", "the algorithm has finished");
  const auto phase = [this](int replicates) {
    store_.reset();
    store_ = std::make_unique<Store>(folder_ / "store.sqlite");
    store_->set_meta("config", {{"name", "x"}, {"retest", {{"replicates", replicates}}}});
    store_.reset();  // nobody works on it
    return RunWatch(folder_).state(-1).at("phase");
  };
  EXPECT_EQ(phase(0), "finished");
  EXPECT_EQ(phase(3), "stopped");
}

TEST_F(RunWatchTest, WhatCannotBeReadAnyMoreIsSaidAndWhatWasReadStays) {
  answer(0, {20.0, 5.0});
  RunWatch watch(folder_);
  store_.reset();
  fs::rename(folder_ / "store.sqlite", folder_ / "elsewhere");
  const auto state = look(watch);
  EXPECT_THAT(state.at("error").get<std::string>(), HasSubstr("no such store"));
  EXPECT_THAT(state.at("evaluations"), SizeIs(1));
  fs::rename(folder_ / "elsewhere", folder_ / "store.sqlite");
  EXPECT_TRUE(look(watch).at("error").is_null());
  EXPECT_THROW(RunWatch(folder_ / "none"), InputError);
  {
    SQLite::Database damaged((folder_ / "store.sqlite").string(), SQLite::OPEN_READWRITE);
    damaged.exec("UPDATE evaluations SET reason = 'another'");
  }
  try {
    RunWatch(folder_ / "store.sqlite");
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr((folder_ / "store.sqlite").string() + ": the record of"));
    EXPECT_THAT(error.what(), HasSubstr("nas-run verify " + folder_.string() + " "));
  }
}

}  // namespace
}  // namespace nas::testing
