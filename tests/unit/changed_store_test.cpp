#include <SQLiteCpp/SQLiteCpp.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "core/warning.hpp"
#include "prelude.hpp"
#include "store/store.hpp"
#include "unit/fitted_digests.hpp"
#include "unit/forked.hpp"
#include "unit/store_fixture.hpp"

namespace nas {
namespace {

/// Stores of whose contents something is changed past the class.
class ChangedStoreTest : public StoreTest {
 protected:
  ChangedStoreTest() {
    Store store(file_);
    store.add({example("e1"), example("e2")});
    store.set_meta("objectives", nlohmann::json::parse(R"([{"name": "f", "key": "f", "unit": "1",
        "maximise": false, "best": 1.5}])"));
    store.add_asks({{.number = 0, .genotype = "g", .evaluations = {"e1"}, .fitness = {1.5}},
                    {.number = 1, .genotype = "h", .evaluations = {"e2"}, .fitness = {2.5}}});
  }
  void change(const std::string& sql) const {
    SQLite::Database(file_.string(), SQLite::OPEN_READWRITE).exec(sql);
  }
  void change_fitted(const std::string& sql) const { testing::change_fitted(file_, sql); }
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
  change_fitted("UPDATE asks SET evaluations = '[\"\"]' WHERE number = 1");
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

TEST_F(ChangedStoreTest, RecordsWhoseDigestFitsAreNamedWhereTheyCannotBeRead) {
  change_fitted("UPDATE evaluations SET curve = '[{' WHERE id = 'e1'");
  EXPECT_THAT(complaint(), HasSubstr("evaluation e1 is damaged: it is no JSON"));
  change_fitted("UPDATE evaluations SET curve = '[]', \"values\" = '{\"perplexity\":\"many\"}'");
  EXPECT_THAT(complaint(), HasSubstr("evaluation e1 is damaged: 'many' is no number"));
  change_fitted("UPDATE evaluations SET \"values\" = '{}', curve = '[{\"step\":1}]'");
  EXPECT_THAT(complaint(), HasSubstr("evaluation e1 is damaged"));
  change_fitted("UPDATE evaluations SET curve = '[]', status = 'fine'");
  EXPECT_THAT(complaint(), HasSubstr("evaluation e1 is damaged: unknown status 'fine'"));
}

TEST_F(ChangedStoreTest, AsksNameAtLeastOneEvaluation) {
  for (const std::string given : {"[]", "{}", R"({"e1": 0})", R"({"e1": -1})", R"({"e1": 1.5})",
                                  R"({"e1": 18446744073709551615})", R"({"e1": 1, "e2": 1})",
                                  "null", "7", "[7]", R"("e1")"}) {
    change_fitted("UPDATE asks SET evaluations = '" + given + "' WHERE number = 1");
    EXPECT_THAT(complaint(), HasSubstr("the record of ask 1 is damaged: ")) << given;
  }
  change_fitted("UPDATE asks SET evaluations = '{}'");
  EXPECT_THAT(complaint(), HasSubstr("evaluations = {}, must be a list of at least one, or one "));
  change_fitted(R"(UPDATE asks SET evaluations = '{"e1": 1}')");
  EXPECT_EQ(complaint(), kFine);
}

TEST_F(ChangedStoreTest, DeeplyNestedJsonIsAnError) {
  constexpr int kDepth = 200000;
  const auto nested = std::string(kDepth, '[') + std::string(kDepth, ']');
  change_fitted("UPDATE evaluations SET measured = '" + nested + "' WHERE id = 'e1'");
  EXPECT_THAT(complaint(), HasSubstr("evaluation e1 is damaged: its JSON is nested"));
  change_fitted("UPDATE evaluations SET reason = '', measured = '{\"text\":\"" +
                std::string(300, '[') + "\"}'");
  EXPECT_EQ(complaint(), kFine) << "a text may hold any number of brackets";
}

TEST_F(ChangedStoreTest, ACheckCountsNamesAndRemoves) {
  {
    Store store(file_, Store::Mode::read_only);
    const auto found = store.check();
    EXPECT_EQ(found.verified, 5);
    EXPECT_TRUE(found.damaged.empty());
    EXPECT_EQ(found.inconsistencies, "");
  }
  change("UPDATE evaluations SET replicate = 7 WHERE id = 'e1'; UPDATE asks SET batch = 9");
  Store store(file_);
  store.set_meta("finished", true);
  const auto found = store.check(true);
  EXPECT_EQ(found.verified, 3);
  EXPECT_THAT(found.damaged,
              ElementsAre(HasSubstr("evaluation e1"), HasSubstr("ask 0"), HasSubstr("ask 1")));
  EXPECT_TRUE(store.check().damaged.empty());
  EXPECT_FALSE(store.meta("finished")) << "what was removed is to be made again";
  EXPECT_EQ(store.evaluations().size(), 1U);
  EXPECT_TRUE(store.asks().empty());
}

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
    EXPECT_THAT(found.damaged, ::testing::Each(HasSubstr(" is damaged: it has no SHA-256")));
    EXPECT_EQ(found.damaged.size() + static_cast<std::size_t>(found.verified),
              static_cast<std::size_t>(rows))
        << table;
    EXPECT_FALSE(found.damaged.empty()) << table;
    store.exec("DELETE FROM " + table + "; INSERT INTO " + table +
               " SELECT * FROM kept; DROP TABLE kept");
  }
}

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

TEST_F(StoreTest, AGenotypeIsStoredWhereItIsNotTheCandidate) {
  const auto candidate = example().candidate;
  const auto asked = [&](std::int64_t number, const std::string& genotype) {
    return Ask{.number = number, .genotype = genotype, .evaluations = {"e1"}, .fitness = {0.5}};
  };
  Store store(file_);
  store.preview_asks({asked(3, candidate)});  // whose evaluation is not there yet
  store.add({example("e1"), example("e2")});
  store.add_asks({asked(0, candidate), asked(1, "as asked"), asked(2, candidate)});
  const auto genotypes = [&] {
    const SQLite::Database raw(file_.string());
    SQLite::Statement row(raw, "SELECT genotype FROM asks ORDER BY number");
    Texts found;
    while (row.executeStep()) found.push_back(row.getColumn(0).getString());
    return found;
  };
  EXPECT_EQ(genotypes(), (Texts{"", "as asked", "", candidate}));
  const auto asks = Store(file_, Store::Mode::read_only).asks();
  ASSERT_EQ(asks.size(), 4U);
  for (const auto& ask : asks) EXPECT_EQ(ask.genotype, ask.number == 1 ? "as asked" : candidate);
  store.add_asks({asked(0, candidate), asked(3, candidate)});  // again
  EXPECT_EQ(genotypes().back(), candidate) << "which was known";
  EXPECT_THAT(message_of<std::runtime_error>([&] { store.add_asks({asked(2, "another")}); }),
              HasSubstr("recorded " + candidate + " e1, now another"));
  EXPECT_EQ(store.check().verified, 6) << "asks and evaluations";
}

TEST_F(StoreTest, AFileMostOfWhichIsFreeBecomesSmall) {
  constexpr int kMany = 3000;
  const auto fill = [](Store& store) {
    std::vector<Evaluation> many;
    for (int i = 0; i < kMany; ++i) {
      many.push_back(example("e" + std::to_string(i)));
      many.back().reason = std::string(1000, 'x');
      many.back().status = i == 0 ? Status::ok : Status::failed;
    }
    store.add(many);
  };
  {
    Store store(file_);
    fill(store);
  }
  const auto full = fs::file_size(file_);
  const Store reader(file_, Store::Mode::read_only);
  {
    Store store(file_);
    EXPECT_EQ(store.forget_failures(), kMany - 1);
    EXPECT_EQ(reader.evaluations().size(), 1U);
  }
  EXPECT_LT(fs::file_size(file_), full / 10);
  EXPECT_EQ(reader.evaluations().size(), 1U) << "who had it open reads on";
  EXPECT_THAT(Store(file_).check().inconsistencies, IsEmpty());
  EXPECT_EQ(Store(file_, Store::Mode::read_only).evaluations().size(), 1U);
}

}  // namespace
}  // namespace nas
