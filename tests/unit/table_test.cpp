#include "table/table.hpp"

#include <bit>
#include <iterator>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "small_table.hpp"
#include "table/answer.hpp"
#include "table/format.hpp"
#include "table/replay.hpp"

namespace nas {
namespace {

using namespace testing;

class TableTest : public ::testing::Test {
 protected:
  Table write(const TableContent& content) const {
    write_table(content, file_);
    return Table(file_);
  }
  [[nodiscard]] std::string bytes() const { return read_bytes(file_); }
  /// What reading these bytes complains about.
  [[nodiscard]] std::string refusal(const std::string& bytes) const {
    std::ofstream(file_, std::ios::binary) << bytes;
    return message_of<InputError>([&] { (void)Table(file_); });
  }

  TemporaryFolder folder_;
  fs::path file_ = folder_.path() / "small.table";
};

void expect_same(const Evaluation& recorded, const Evaluation& replayed) {
  EXPECT_EQ(canonical_json(recorded), canonical_json(replayed));
  for (const auto* name : {"train_seconds", "cpu_seconds", "peak_bytes"}) {
    EXPECT_EQ(recorded.measured.contains(name), replayed.measured.contains(name)) << name;
    if (recorded.measured.contains(name)) {
      EXPECT_EQ(recorded.measured.at(name), replayed.measured.at(name)) << name;
    }
  }
  for (std::size_t i = 0; i < recorded.curve.size(); ++i) {
    EXPECT_EQ(recorded.curve[i].seconds, replayed.curve[i].seconds);
  }
}

TEST_F(TableTest, ReadsAVersionOfAFileOnce) {
  const auto table = write(small_content());
  EXPECT_EQ(&Table(file_).facts(), &table.facts()) << "one content in memory";
  auto content = small_content();
  content.name = "other";
  const auto other = write(content);
  EXPECT_EQ(other.facts().at("name"), "other");
  EXPECT_NE(&other.facts(), &table.facts());
}

TEST_F(TableTest, GivesBackEveryEvaluation) {
  const auto table = write(small_content());
  EXPECT_EQ(table.num_mechanisms(), 12);
  EXPECT_EQ(table.num_replicates(), 3);
  EXPECT_EQ(table.steps(), (std::vector<std::int64_t>{10, 20, 40}));
  for (const auto& cell : small_cells()) {
    const auto mechanism = table.find(cell.candidate);
    ASSERT_TRUE(mechanism);
    EXPECT_EQ(table.mechanism(*mechanism), cell.candidate);
    EXPECT_TRUE(table.has(*mechanism, cell.replicate));
    expect_same(cell, table.evaluation(*mechanism, cell.replicate));
  }
  EXPECT_FALSE(table.find("dot"));
}

TEST_F(TableTest, ReplaysDrawFromTheReplicatesThatMostMechanismsHave) {
  auto cells = small_cells();
  const auto raced = cells[4].candidate;
  for (const std::int64_t replicate : {3, 4}) cells.push_back(small_evaluation(raced, replicate));
  const auto table = write(small_content(cells));
  EXPECT_EQ(table.num_replicates(), 3);
  EXPECT_EQ(table.most_replicates(), 5);
  const auto mechanism = *table.find(raced);
  EXPECT_TRUE(table.has(mechanism, 4));
  EXPECT_FALSE(table.has(mechanism == 0 ? 1 : 0, 4));
  EXPECT_EQ(recorded_replicates(table, mechanism).size(), 5U) << "what is true of it is in all";
  const Replay replay(table, ReplayMode::noisy, 1);
  for (std::int64_t n = 0; n < 10; ++n) EXPECT_LT(replay.replicate(mechanism, n), 3);
}

TEST_F(TableTest, NumbersReadBackInEveryBit) {
  auto cells = small_cells();
  auto& cell = cells[4];
  cell.status = Status::diverged;
  cell.reason = "\"nll\" is 'infinite'; see §2";
  using Limits = std::numeric_limits<double>;
  std::vector<double> numbers{Limits::denorm_min(),
                              Limits::max(),
                              -Limits::min(),
                              Limits::infinity(),
                              -Limits::infinity(),
                              0.1,
                              3.0,
                              0x1p53 + 2.0,
                              1e300};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    cell.values["value \"" + std::to_string(i)] = numbers[i];
  }
  cell.curve[0].valid.nll = numbers[0];
  cell.curve[1].valid.nll = numbers[3];
  cell.curve[0].valid.tokens = (std::int64_t{1} << 53) + 1;
  const auto table = write(small_content(cells));
  const auto read = table.evaluation(*table.find(cell.candidate), cell.replicate);
  EXPECT_EQ(read.reason, cell.reason);
  ASSERT_EQ(read.values.size(), cell.values.size());
  for (const auto& [name, value] : cell.values) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(read.values.at(name)),
              std::bit_cast<std::uint64_t>(value))
        << name;
  }
  expect_same(cell, read);
  EXPECT_EQ(read.curve[0].valid.tokens, cell.curve[0].valid.tokens);
}

TEST_F(TableTest, FailedTrainingRunsKeepWhatTheyHave) {
  auto cells = small_cells();
  auto& diverged = cells[4];
  diverged.status = Status::diverged;
  diverged.reason = "validation loss is not finite at step 20";
  diverged.curve.pop_back();
  diverged.curve[1].valid.nll = std::numeric_limits<double>::quiet_NaN();
  diverged.curve[1].train_nll = std::numeric_limits<double>::infinity();
  diverged.values = {{"parameters", 7.0}};
  auto& rejected = cells[5];
  rejected.status = Status::rejected;
  rejected.reason = "sees later tokens";
  rejected.curve.clear();
  rejected.measured = {{"pid", 3}};
  const auto table = write(small_content(cells));
  expect_same(cells[4], table.evaluation(*table.find(cells[4].candidate), cells[4].replicate));
  expect_same(cells[5], table.evaluation(*table.find(cells[5].candidate), cells[5].replicate));
  EXPECT_EQ(table.seconds(*table.find(rejected.candidate), rejected.replicate), 0.0);
}

TEST_F(TableTest, MissingCellsAreExplicit) {
  auto cells = small_cells();
  const auto gone = cells[7];
  cells.erase(cells.begin() + 7);
  const auto table = write(small_content(cells));
  const auto mechanism = *table.find(gone.candidate);
  EXPECT_FALSE(table.has(mechanism, gone.replicate));
  EXPECT_TRUE(table.has(mechanism, 0));
  const auto complaint = "the table has no replicate 1 of " + gone.candidate;
  EXPECT_THAT([&] { (void)table.evaluation(mechanism, 1); },
              ::testing::ThrowsMessage<InputError>(complaint));
  EXPECT_THAT([&] { (void)table.seconds(mechanism, 1); },
              ::testing::ThrowsMessage<InputError>(complaint));
}

TEST_F(TableTest, FactsAreThoseOfEveryCell) {
  auto content = small_content();
  content.sources.push_back({{"cells", 36}});
  const auto table = write(content);
  EXPECT_EQ(table.facts().at("name"), "small");
  EXPECT_EQ(table.facts().at("semantics"), "corrected");
  EXPECT_EQ(table.facts().at("unigram_perplexity"), 40.0);
  EXPECT_EQ(table.facts().at("sources").at(0).at("cells"), 36);
  EXPECT_EQ(table.sha256().size(), 64U);
}

TEST_F(TableTest, ChargesProcessorSecondsWhereRecorded) {
  auto cells = small_cells();
  cells[0].measured.erase("cpu_seconds");
  const auto table = write(small_content(cells));
  EXPECT_EQ(table.seconds(0, 0), cells[0].measured.at("train_seconds"));
  EXPECT_EQ(table.seconds(0, 1), cells[1].measured.at("cpu_seconds"));
}

TEST_F(TableTest, MeasuredObjectivesAreTheMedianOverReplicates) {
  auto cells = small_cells();
  std::swap(cells[0].measured["latency"], cells[2].measured["latency"]);
  cells[3].measured.erase("latency");
  const auto table = write(small_content(cells));
  EXPECT_EQ(table.evaluation(0, 0).measured.at("latency"), cells[1].measured.at("latency"));
  EXPECT_EQ(table.evaluation(1, 0).measured.at("latency"), cells[4].measured.at("latency"));
}

TEST_F(TableTest, TheChecksumIsOfTheContentAlone) {
  const auto sum = write(small_content()).sha256();
  SQLite::Database(file_.string(), SQLite::OPEN_READWRITE)
      .exec("PRAGMA page_size = 512; CREATE INDEX i ON trainings (perplexity); VACUUM");
  EXPECT_EQ(Table(file_).sha256(), sum);
  auto cells = small_cells();
  cells[3].curve[1].seconds += 1e-9;
  EXPECT_NE(write(small_content(cells)).sha256(), sum);
  cells = small_cells();
  cells[3].values["another"] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(write(small_content(cells)).sha256(), sum);
  EXPECT_EQ(write(small_content()).sha256(), sum);
}

TEST_F(TableTest, APublicationIsReadAndMakesNoOtherTable) {
  const auto before = write(small_content());
  EXPECT_EQ(before.publication(), nlohmann::json::object());
  auto content = small_content();
  content.publication = {
      {"licence", "CC BY 4.0"},
      {"corpus_licence", "none"},
      {"version", "1.0.0"},
      {"changelog", {{{"version", "1.0.0"}, {"date", "2026-01-31"}, {"text", "first"}}}},
      {"a key of later versions", 3}};
  const auto table = write(content);
  EXPECT_EQ(table.publication(), content.publication);
  EXPECT_EQ(table.sha256(), before.sha256());
  EXPECT_EQ(table.facts(), before.facts());
}

TEST_F(TableTest, APublicationOfOtherTypesIsRefused) {
  const std::vector<std::pair<nlohmann::json, std::string>> mistakes{
      {{{"licence", 5}}, "licence = 5, must be a text"},
      {{{"corpus_licence", nullptr}}, "corpus_licence = null, must be a text"},
      {{{"version", {1, 0}}}, "version = [1,0], must be a text"},
      {{{"changelog", "first"}}, "changelog = \"first\", must be a list of objects"},
      {{{"changelog", {{{"version", "1"}, {"date", "x"}}}}}, "changelog: text is missing"},
      {{{"changelog", {{{"version", "1"}, {"date", 1}, {"text", ""}}}}},
       "changelog: date = 1, must be a text"},
      {{{"gates", "passed"}}, "gates = \"passed\", must be an object"},
      {{{"gates", {{"gates", nlohmann::json::array()}}}}, "gates.verdict is missing"},
      {{{"gates", {{"verdict", ""}, {"gates", {{{"name", "counts"}}}}}}},
       "gates.gates: words is missing"}};
  for (const auto& [publication, complaint] : mistakes) {
    auto content = small_content();
    content.publication = publication;
    EXPECT_EQ(message_of<InputError>([&] { (void)write(content); }),
              file_.string() + ": publication: " + complaint);
  }
  auto content = small_content();
  content.publication = {{"licence", "mine"}};
  (void)write(content);
  change_table(file_, "UPDATE publication SET value = '{'");
  EXPECT_THAT(message_of<InputError>([&] { (void)Table(file_); }),
              HasSubstr(": publication: licence: it is no JSON"));
  change_table(file_, "DROP TABLE publication; CREATE TABLE publication (other)");
  EXPECT_THAT(message_of<InputError>([&] { (void)Table(file_); }),
              HasSubstr("no such column: key"));
}

TEST_F(TableTest, OnlyTheFileIsLookedAt) {
  const auto sum = write(small_content()).sha256();
  for (const auto* suffix : {"-wal", "-journal", "-shm"}) {
    std::ofstream(file_.string() + suffix) << "left by another file";
  }
  EXPECT_EQ(Table(file_).sha256(), sum);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 4);
}

TEST_F(TableTest, WhatCannotBeIsRefused) {
  const auto refusal_of = [this](const auto& change) {
    auto cells = small_cells();
    change(cells[3]);
    return message_of<InputError>([&] { (void)write(small_content(cells)); });
  };
  EXPECT_THAT(refusal_of([](Evaluation& cell) { cell.curve.clear(); }),
              HasSubstr(", replicate 0: it was finished, but its curve has no point"));
  EXPECT_THAT(refusal_of([](Evaluation& cell) { cell.measured.erase("train_seconds"); }),
              HasSubstr("it was finished, but its train_seconds are missing"));
}

TEST_F(TableTest, DamagedFilesAreRefused) {
  write(small_content());
  const auto whole = bytes();
  EXPECT_THAT(refusal(whole.substr(0, whole.size() - 4096)), HasSubstr("small.table: is damaged"));
  EXPECT_THAT(refusal(whole.substr(0, 80)), HasSubstr("small.table: is damaged"));
  EXPECT_THAT(refusal("M" + whole.substr(1)), HasSubstr("small.table: not a readable table"));
  EXPECT_THAT(refusal(""), HasSubstr("not a table of version 2"));
  auto newer = whole;
  newer[63] = 3;
  EXPECT_THAT(refusal(newer),
              HasSubstr("small.table: not a table of version 2 (its version is 3)"));
  auto other = whole;
  other[71] = 0;
  EXPECT_THAT(refusal(other), HasSubstr("small.table: not a table of version 2"));
  EXPECT_EQ(refusal(whole), "nothing was thrown");
  fs::remove(file_);
  EXPECT_THAT([&] { (void)Table(file_); },
              ::testing::ThrowsMessage<InputError>(HasSubstr("no such table")));
  EXPECT_THAT([&] { (void)Table(folder_.path()); },
              ::testing::ThrowsMessage<InputError>(HasSubstr("not a readable table")));
}

/// A table that somebody has changed by SQL, with a checksum that fits.
class ForeignTable : public TableTest {
 protected:
  ForeignTable() { write(small_content()); }

  /// Changes a copy. Opens it with a fitting checksum.
  void change(const std::string& sql) const {
    fs::copy_file(file_, changed_, fs::copy_options::overwrite_existing);
    change_table(changed_, sql);
  }
  /// What opening it after a change complains about.
  [[nodiscard]] std::string refusal(const std::string& sql) const {
    change(sql);
    return message_of<InputError>([this] { (void)Table(changed_); });
  }
  /// The same where a part of meta has another value.
  [[nodiscard]] std::string refusal_with(const std::string& pointer,
                                         const nlohmann::json& value) const {
    auto meta = meta_;
    meta[nlohmann::json::json_pointer(pointer)] = value;
    return refusal(update(meta));
  }
  [[nodiscard]] static std::string text_of(std::string text) {
    for (std::size_t i = 0; (i = text.find('\'', i)) != std::string::npos; i += 2) {
      text.insert(i, "'");
    }
    return "'" + text + "'";
  }
  static std::string update(const nlohmann::json& meta) {
    std::string sql = "DELETE FROM meta WHERE key <> 'sha256';";
    for (const auto& [key, value] : meta.items()) {
      sql += "INSERT INTO meta VALUES (" + text_of(key) + ", " + text_of(value.dump()) + ");";
    }
    return sql;
  }
  /// SQL after which a table takes any value anywhere.
  static std::string unbind(const std::string& table) {
    return "CREATE TABLE copy AS SELECT * FROM " + table + "; DROP TABLE " + table +
           "; ALTER TABLE copy RENAME TO " + table + ";";
  }

  fs::path changed_ = folder_.path() / "changed.table";
  const nlohmann::json meta_{{"name", "small"},
                             {"identity", small_identity()},
                             {"facts", small_facts()},
                             {"sources", nlohmann::json::array()}};
  const Texts tables_{"meta", "mechanisms", "trainings", "curves"};
  const std::string first_ = small_mechanisms().front() + ", replicate ";
};

TEST_F(ForeignTable, OpensUnchanged) {
  EXPECT_EQ(refusal(update(meta_)), "nothing was thrown");
  for (const auto& table : tables_) EXPECT_EQ(refusal(unbind(table)), "nothing was thrown");
}

/// A query on such a table would not end, and fill the disk.
TEST_F(ForeignTable, TablesThatAreComputedAreRefused) {
  for (const std::string table : {"meta", "curves"}) {
    change("SELECT 1");
    SQLite::Database(changed_.string(), SQLite::OPEN_READWRITE)
        .exec("ALTER TABLE " + table + " RENAME TO kept; CREATE VIEW " + table +
              " AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) "
              "SELECT kept.* FROM kept, r");
    EXPECT_THAT([&] { (void)Table(changed_); },
                ::testing::ThrowsMessage<InputError>(HasSubstr(
                    "changed.table: holds the view " + table + ", a table must hold tables")));
  }
}

TEST_F(ForeignTable, TheChecksumMustFit) {
  change("SELECT 1");
  SQLite::Database(changed_.string(), SQLite::OPEN_READWRITE)
      .exec("UPDATE curves SET tokens = tokens + 1 WHERE mechanism = 3 AND step = 40");
  const auto complaint = "changed.table: its content does not fit its checksum: it was altered";
  EXPECT_THAT([&] { (void)Table(changed_); },
              ::testing::ThrowsMessage<InputError>(HasSubstr(complaint)));
  EXPECT_THAT(refusal("DELETE FROM meta WHERE key = 'sha256'"), HasSubstr(complaint));
}

TEST_F(ForeignTable, CellsMustBeInTheTable) {
  const std::string file = "changed.table: ";
  const std::string training = "UPDATE trainings SET ";
  const std::string of_one = " WHERE mechanism = 11 AND replicate = 2";
  EXPECT_THAT(refusal(training + "replicate = 1000000" + of_one),
              HasSubstr(file + "trainings.replicate = 1000000, must be an integer in [0, 999999]"));
  EXPECT_THAT(refusal(training + "replicate = 999998" + of_one),
              HasSubstr(file + "trainings.replicate = 999998, must be so small that there are at "
                               "most 10000000 cells, with 12 mechanisms"));
  EXPECT_THAT(refusal(training + "replicate = -1" + of_one),
              HasSubstr("trainings.replicate = -1, must be"));
  EXPECT_THAT(refusal(training + "replicate = 3" + of_one),
              HasSubstr("curves.replicate = 2, must be that of a row in trainings"));
  EXPECT_THAT(refusal(training + "mechanism = 12" + of_one),
              HasSubstr("trainings.mechanism = 12, must be an integer in [0, 11]"));
  EXPECT_THAT(refusal("UPDATE curves SET mechanism = -1" + of_one),
              HasSubstr("curves.mechanism = -1, must be an integer in [0, 11]"));
  EXPECT_THAT(refusal("DELETE FROM trainings; DELETE FROM curves"),
              HasSubstr(file + "trainings: no row, must have at least one"));
  EXPECT_THAT(refusal(unbind("trainings") +
                      "INSERT INTO trainings SELECT * FROM trainings WHERE mechanism = 0"),
              HasSubstr("trainings: two rows of " + first_ + "0"));
}

/// Of every part of meta: it is missing, or something else stands there.
TEST_F(ForeignTable, EveryKeyIsCheckedForItsType) {
  int refused = 0;
  const auto expect_refusal = [&](const std::string& place, const std::string& complaint) {
    EXPECT_THAT(complaint, HasSubstr("changed.table: meta: ")) << place;
    EXPECT_THAT(complaint, Not(HasSubstr("json.exception"))) << place;
    ++refused;
  };
  const auto mutate = [&](const std::string& place, bool required) {
    const nlohmann::json::json_pointer pointer(place);
    const auto given = meta_.at(pointer);
    auto without = meta_;
    without.at(pointer.parent_pointer()).erase(pointer.back());
    if (required) expect_refusal(place + " missing", refusal(update(without)));
    for (const nlohmann::json& other :
         {nlohmann::json("x"), nlohmann::json(nullptr), nlohmann::json(true), nlohmann::json(-1),
          nlohmann::json(0.5), nlohmann::json::array({nullptr}), nlohmann::json::array(),
          nlohmann::json::object({{"x", "y"}})}) {
      if (other.type() == given.type() && !other.is_array()) continue;
      if (other.is_array() && other.empty() && given.is_array()) continue;
      if (other.is_number() && given.is_number_float()) continue;
      expect_refusal(place + " = " + other.dump(), refusal_with(place, other));
    }
  };
  for (const auto* key : {"name", "identity", "facts", "sources"}) {
    mutate(std::string("/") + key, true);
  }
  mutate("/identity/semantics", true);
  mutate("/identity/model", true);
  for (const auto& item : meta_.at("identity").at("model").items()) {
    mutate("/identity/model/" + item.key(), true);
  }
  for (const auto* key : {"bytes_per_token", "unigram_perplexity", "device"}) {
    mutate(std::string("/facts/") + key, false);
  }
  EXPECT_GT(refused, 100);
  EXPECT_THAT(refusal_with("/identity/model/width", 1.5),
              HasSubstr("meta: model.width = 1.5, must be an integer in [1, 2^30]"));
  for (const auto* text : {"{\"name\": ", ""}) {
    EXPECT_THAT(refusal("UPDATE meta SET value = '" + std::string(text) + "' WHERE key = 'facts'"),
                HasSubstr("changed.table: meta: facts: it is no JSON"));
  }
}

TEST_F(ForeignTable, MeasuredObjectivesHaveANumber) {
  const auto place = "changed.table: " + small_mechanisms()[1] + ": measured";
  const auto refusal_of = [this](const std::string& measured) {
    return refusal("UPDATE mechanisms SET measured = '" + measured + "' WHERE mechanism = 1");
  };
  EXPECT_EQ(refusal_of("{}"), "nothing was thrown");
  EXPECT_THAT(refusal_of("[]"), HasSubstr(place + " = [], must be an object"));
  EXPECT_THAT(refusal_of("{\"latency\": 3}"),
              HasSubstr(place + ".latency = 3, must be an object with a number \"value\""));
  EXPECT_THAT(refusal_of("{\"latency\": {\"value\": \"3\"}}"), HasSubstr("must be an object with"));
  EXPECT_THAT(refusal_of("{"), HasSubstr(place + ": it is no JSON"));
}

TEST_F(ForeignTable, MechanismsAndStepsAreInOrder) {
  EXPECT_THAT(refusal("UPDATE mechanisms SET name = 'additive|a' WHERE mechanism = 1"),
              HasSubstr("changed.table: mechanisms.name = \"additive|a\", must be greater than the "
                        "one before it"));
  EXPECT_THAT(refusal("UPDATE mechanisms SET mechanism = 20 WHERE mechanism = 11"),
              HasSubstr("mechanisms.mechanism = 20, must be an integer in [11, 11]"));
  EXPECT_THAT(refusal("UPDATE curves SET step = 21 WHERE mechanism = 2 AND replicate = 1 AND "
                      "step = 20"),
              HasSubstr(small_mechanisms()[2] + ", replicate 1: its curve has step 21, must have "
                                                "step 20 there, as others have"));
  EXPECT_THAT(refusal("UPDATE curves SET step = -2 WHERE step = 20"),
              HasSubstr("curves.step = -2, must be an integer in [-1, "));
  EXPECT_THAT(refusal(unbind("curves") + "UPDATE curves SET step = 10"),
              HasSubstr(first_ + "0: its curve has step 10, must have one after step 10"));
}

TEST_F(ForeignTable, CellsThatCannotBeAreRefused) {
  const auto curve = [this](const std::string& change, int replicate, int step) {
    return refusal("UPDATE curves SET " + change + " WHERE mechanism = 0 AND replicate = " +
                   std::to_string(replicate) + " AND step = " + std::to_string(step));
  };
  const auto training = [this](const std::string& change, int replicate) {
    return refusal("UPDATE trainings SET " + change +
                   " WHERE mechanism = 0 AND replicate = " + std::to_string(replicate));
  };
  EXPECT_THAT(refusal("DELETE FROM curves WHERE mechanism = 0"),
              HasSubstr(first_ + "0: it was finished, but its curve has no point"));
  EXPECT_THAT(curve("nll = NULL", 1, 20),
              HasSubstr("changed.table: " + first_ + "1: a loss at step 20 = nan, must be finite"));
  EXPECT_THAT(curve("train_nll = -9e999", 0, 10), HasSubstr("a loss at step 10 = -inf"));
  EXPECT_THAT(curve("batch_mean_nll = NULL", 0, 40), HasSubstr("a loss at step 40 = nan"));
  EXPECT_THAT(curve("tokens = 0", 0, 10), HasSubstr("targets in 10 batches) cannot be"));
  EXPECT_THAT(curve("batches = 0", 0, 10), HasSubstr("targets in 0 batches) cannot be"));
  EXPECT_THAT(curve("correct = 1001", 0, 10), HasSubstr("1001 correct of 1000"));
  EXPECT_THAT(curve("tokens = 9223372036854775807", 0, 10),
              HasSubstr("curves.tokens = 9223372036854775807, must be an integer in [-1, "));
  EXPECT_THAT(curve("seconds = NULL", 0, 10),
              HasSubstr("its seconds at step 10 = nan, must be from 0 to train_seconds = "));
  EXPECT_THAT(curve("seconds = -5.0", 0, 10), HasSubstr("its seconds at step 10 = -5, must be "));
  EXPECT_THAT(curve("seconds = 1e9", 0, 10), HasSubstr("its seconds at step 10 = 1e+09, must be "));
  EXPECT_THAT(training("train_seconds = NULL", 1), HasSubstr("its train_seconds are missing"));
  EXPECT_THAT(training("cpu_seconds = -1.0", 2),
              HasSubstr(first_ + "2: cpu_seconds = -1, must be finite and at least 0"));
  EXPECT_THAT(training("peak_bytes = 9e999", 2), HasSubstr("peak_bytes = inf, must be finite"));
  EXPECT_EQ(training("cpu_seconds = NULL, peak_bytes = NULL", 2), "nothing was thrown");
  EXPECT_THAT(refusal("DELETE FROM curves WHERE mechanism = 3; "
                      "DELETE FROM trainings WHERE mechanism = 3"),
              HasSubstr("trainings: no row of " + small_mechanisms()[3] + ", must have at least"));
}

/// Whatever stands in a file: it is refused in words, or everything in it can be read.
class AnyTable : public ForeignTable {
 protected:
  /// @return whether it could be read.
  [[nodiscard]] bool read() const {
    try {
      const Table table(changed_);
      for (std::int64_t mechanism = 0; mechanism < table.num_mechanisms(); ++mechanism) {
        for (std::int64_t replicate = 0; replicate < table.num_replicates(); ++replicate) {
          if (table.has(mechanism, replicate)) (void)table.evaluation(mechanism, replicate);
        }
      }
      return true;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("changed.table: "));
      return false;
    }
  }

  RandomEngine random_{3};
};

TEST_F(AnyTable, AChangedValueIsRefusedOrHarmless) {
  std::vector<std::pair<std::string, std::string>> columns;
  for (const auto& table : tables_) {
    const SQLite::Database sqlite(file_.string());
    SQLite::Statement info(sqlite, "SELECT name FROM pragma_table_info('" + table + "')");
    while (info.executeStep()) columns.emplace_back(table, info.getColumn(0).getString());
  }
  const Texts values{
      "NULL", "''",   "'x'",   "'[]'",   "'{\"a\": 1}'", "x'ff'", "CAST(x'ff' AS TEXT)",
      "0",    "-1",   "1",     "0.5",    "-0.0",         "9e999", "9223372036854775807",
      "1e18", "'ok'", "'dot'", "'null'", "-9e999"};
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    const auto& [table, column] =
        columns[static_cast<std::size_t>(random_.below(std::ssize(columns)))];
    const auto& value = values[static_cast<std::size_t>(random_.below(std::ssize(values)))];
    change(unbind(table) + "UPDATE " + table + " SET " + column + " = " + value +
           " WHERE rowid % 7 = " + std::to_string(random_.below(7)));
    if (!read()) ++refused;
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace nas
