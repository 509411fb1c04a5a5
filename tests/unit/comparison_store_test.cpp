#include "table/comparison_store.hpp"

#include <SQLiteCpp/SQLiteCpp.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "store/store.hpp"
#include "unit/fitted_digests.hpp"

namespace nas::testing {
namespace {

class ComparisonStoreTest : public ::testing::Test {
 protected:
  static ComparedSearch search(std::int64_t seed) {
    return {.algorithm = 0,
            .seed = seed,
            .search_seconds = 0.25,
            .ended_by = "3 evaluations",
            .trajectory = {.candidates = {4, 1, 4},
                           .trained = {1, 2, 2},
                           .seconds = {0.1, 0.30000000000000004, 0.30000000000000004},
                           .fitness = {1.5, -2.0, 1e300, 0.0, 1.5, -2.0},
                           .steps = {400, 450, 5'000'000'000}}};
  }
  /// Changes the file past the class.
  void change(const std::string& sql) const {
    SQLite::Database(file_.string(), SQLite::OPEN_READWRITE).exec(sql);
  }
  /// What reading everything complains about.
  [[nodiscard]] std::string complaint() const {
    return message_of<InputError>([this] {
      const ComparisonStore store(file_, ComparisonStore::Mode::read_only);
      (void)store.meta("budget");
      (void)store.candidates();
      (void)store.algorithms();
      for (const int algorithm : {0, 1}) {
        store.for_each_search(algorithm, [](const ComparedSearch& /*search*/) {});
      }
    });
  }
  static constexpr const char* kFine = "nothing was thrown";
  const TemporaryFolder folder_;
  fs::path file_ = folder_.path() / "comparison.sqlite";
};

TEST_F(ComparisonStoreTest, KeepsSearchesBitwise) {
  {
    ComparisonStore store(file_);
    EXPECT_EQ(store.number_of({.name = "a", .key = "nsga2", .settings = {{"eta", 1}}}), 0);
    store.add({search(9), search(7)});
  }
  const ComparisonStore store(file_, ComparisonStore::Mode::read_only);
  EXPECT_EQ(store.seeds(0), (std::set<std::int64_t>{7, 9}));
  EXPECT_TRUE(store.seeds(1).empty());
  std::vector<std::int64_t> seeds;
  store.for_each_search(0, [&](const ComparedSearch& found) {
    seeds.push_back(found.seed);
    EXPECT_EQ(found.trajectory, search(7).trajectory);
    EXPECT_EQ(found.search_seconds, 0.25);
    EXPECT_EQ(found.ended_by, "3 evaluations");
  });
  EXPECT_EQ(seeds, (std::vector<std::int64_t>{7, 9}));
}

/// What is changed is still what a search could have been.
TEST_F(ComparisonStoreTest, AChangedDigitIsFoundAndItsSearchNamed) {
  ComparisonStore(file_).add({search(7)});
  ASSERT_EQ(complaint(), kFine);
  const std::string named = " is damaged: its SHA-256 does not fit; put a copy of the file in its ";
  for (const std::string column :
       {"search_seconds = 0.5", "ended_by = '4 evaluations'", "candidates = zeroblob(12)",
        "trained = zeroblob(12)", "seconds = zeroblob(24)", "fitness = zeroblob(48)",
        "steps = zeroblob(24)"}) {
    change("UPDATE searches SET " + column);
    EXPECT_THAT(complaint(),
                StartsWith(file_.string() + ": the search with seed 7 of algorithm 0" + named))
        << column;
    change("DELETE FROM searches");
    ComparisonStore(file_).add({search(7)});
    EXPECT_EQ(complaint(), kFine);
  }
  change("UPDATE searches SET digest = NULL");
  EXPECT_THAT(complaint(), HasSubstr(" of algorithm 0 is damaged: it has no SHA-256; put a copy"));
  change("DELETE FROM searches");
  ComparisonStore(file_).add({search(7)});
  change("UPDATE searches SET seed = 8");
  EXPECT_THAT(complaint(), HasSubstr("the search with seed 8 of algorithm 0" + named));
  change("UPDATE searches SET seed = 7, algorithm = 1");
  EXPECT_THAT(complaint(), HasSubstr("the search with seed 7 of algorithm 1" + named));
}

TEST_F(ComparisonStoreTest, JsonOfAnotherTypeIsNamedWithWhatItBelongsTo) {
  {
    ComparisonStore store(file_);
    store.set_meta("budget", nlohmann::json{{"asks", 7}});
    store.set_candidates({{.name = "x", .label = "X", .truth = {1.0}, .believed = {2.0}}});
    store.number_of({.name = "a", .key = "nsga2", .settings = {{"eta", 1}}});
  }
  ASSERT_EQ(complaint(), kFine);
  const auto expect = [this](const std::string& table, const std::string& column,
                             const std::string& value, const std::string& said) {
    change("CREATE TABLE kept AS SELECT * FROM " + table);
    change("UPDATE " + table + " SET " + column + " = '" + value + "'");
    EXPECT_THAT(complaint(), StartsWith(file_.string() + ": " + said));
    EXPECT_THAT(complaint(), HasSubstr("; put a copy of the file in its place"));
    change("DELETE FROM " + table + "; INSERT INTO " + table + " SELECT * FROM kept");
    change("DROP TABLE kept");
  };
  expect("meta", "value", "[", "the fact budget is damaged: it is no JSON: ");
  expect("candidates", "truth", "7", "the candidate x is damaged: ");
  expect("candidates", "believed", "[\"many\"]", "the candidate x is damaged: ");
  expect("algorithms", "settings", "{", "the algorithm a is damaged: it is no JSON: ");
  EXPECT_EQ(complaint(), kFine);
}

TEST_F(ComparisonStoreTest, WhoTakesTypesForGrantedNamesTheRecord) {
  const ComparisonStore store(file_);
  EXPECT_EQ(store.reading("the fact x", [] { return 7; }), 7);
  EXPECT_THAT(message_of<InputError>([&] {
                store.reading("the fact x", [] { return nlohmann::json("text").get<int>(); });
              }),
              StartsWith(file_.string() + ": the fact x is damaged: "));
}

TEST_F(ComparisonStoreTest, ASearchWhosePartsDoNotFitTogetherIsNamed) {
  {
    ComparisonStore store(file_);
    store.set_candidates({5, {.name = "a", .label = "a", .truth = {1, 2}, .believed = {1, 2}}});
    store.add({search(7)});
  }
  ASSERT_EQ(complaint(), kFine);
  for (const std::string parts :
       {"trained = x''", "trained = x'020000000100000002000000'",
        "trained = x'ffffffff0100000002000000'", "seconds = substr(seconds, 1, 16)",
        "fitness = substr(fitness, 1, 40)", "steps = substr(steps, 9)",
        "candidates = x'000000000500000000000000'", "candidates = x'00000000ffffffff00000000'"}) {
    change("UPDATE searches SET " + parts);
    {
      SQLite::Database file(file_.string(), SQLite::OPEN_READWRITE);
      fit_digests(file, "searches",
                  "algorithm, seed, search_seconds, ended_by, candidates, trained, seconds, "
                  "fitness, steps");
    }
    EXPECT_THAT(complaint(),
                HasSubstr("the search with seed 7 of algorithm 0 is damaged: its asks"))
        << parts;
    change("DELETE FROM searches");
    ComparisonStore(file_).add({search(7)});
  }
}

TEST_F(ComparisonStoreTest, ASearchWithoutAsksIsKept) {
  ComparisonStore store(file_);
  store.add({{.algorithm = 2, .seed = 1, .ended_by = "nothing"}});
  store.for_each_search(
      2, [](const ComparedSearch& found) { EXPECT_EQ(found.trajectory, Trajectory{}); });
  EXPECT_EQ(store.seeds(2).size(), 1U);
}

TEST_F(ComparisonStoreTest, NumbersAlgorithmsByTheirNames) {
  ComparisonStore store(file_);
  EXPECT_EQ(store.number_of({.name = "a", .key = "nsga2", .settings = {}}), 0);
  EXPECT_EQ(store.number_of({.name = "b", .key = "nsga2", .settings = {}}), 1);
  EXPECT_EQ(store.number_of({.name = "a", .key = "other", .settings = {}}), 0);
  ASSERT_EQ(store.algorithms().size(), 2U);
  EXPECT_EQ(store.algorithms()[0].key, "nsga2");
}

TEST_F(ComparisonStoreTest, SaysWhatItIs) {
  ComparisonStore store(file_);
  EXPECT_EQ(store.meta("kind"), "comparison");
  EXPECT_EQ(store.meta("version"), 1) << "which analysis/ reads";
  EXPECT_FALSE(store.meta("budget"));
}

TEST_F(ComparisonStoreTest, ReplacesItsCandidates) {
  ComparisonStore store(file_);
  store.set_candidates({{.name = "x", .label = "X", .truth = {1.0}, .believed = {2.0}},
                        {.name = "y", .label = "Y", .truth = {1.0}, .believed = {2.0}}});
  store.set_candidates({{.name = "z", .label = "Z", .truth = {0.1, 2.0}, .believed = {3.0, 4.0}}});
  const auto candidates = store.candidates();
  ASSERT_EQ(candidates.size(), 1U);
  EXPECT_EQ(candidates[0].label, "Z");
  EXPECT_EQ(candidates[0].truth, (std::vector<double>{0.1, 2.0}));
  EXPECT_EQ(candidates[0].believed, (std::vector<double>{3.0, 4.0}));
}

TEST_F(ComparisonStoreTest, RefusesOtherFiles) {
  { const Store run(folder_.path() / "run.sqlite"); }
  EXPECT_EQ(message_of<InputError>([&] { ComparisonStore store(folder_.path() / "run.sqlite"); }),
            (folder_.path() / "run.sqlite").string() + ": not a comparison store of version 1");
  EXPECT_EQ(message_of<InputError>(
                [&] { ComparisonStore store(file_, ComparisonStore::Mode::read_only); }),
            file_.string() + ": no such comparison store");
  EXPECT_EQ(message_of<InputError>([&] { ComparisonStore store(folder_.path() / "none" / "x"); }),
            (folder_.path() / "none").string() + ": no such folder");
}

TEST_F(ComparisonStoreTest, HasOneWriter) {
  const ComparisonStore store(file_);
  EXPECT_NE(message_of<InputError>([&] {
              ComparisonStore second(file_);
            }).find(" is in use by another process"),
            std::string::npos);
}

}  // namespace
}  // namespace nas::testing
