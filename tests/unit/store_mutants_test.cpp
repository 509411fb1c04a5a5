// Stores that are changed at random, past the class: what is read of one is what was written, or it
// is refused in words. AnyTable in table_test.cpp is the same of tables.

#include <cstddef>
#include <exception>
#include <iterator>
#include <optional>

#include <SQLiteCpp/SQLiteCpp.h>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/seed.hpp"
#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "store/database.hpp"
#include "store/store.hpp"
#include "unit/fitted_digests.hpp"
#include "unit/small_table.hpp"

namespace nas::testing {
namespace {

constexpr int kMutants = 100;  // of a kind

/// The facts that the store of these tests has.
const Texts& facts() {
  static const Texts kFacts{"at_work",    "baseline", "config", "elapsed_seconds",
                            "ended_by",   "facts",    "labels", "last_population",
                            "objectives", "sessions"};
  return kFacts;
}

/// Bytes that are no UTF-8 are marks here: WhatIsNoTextIsRefused is about them.
std::string line_of(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// What readers of a run get from its store.
struct Contents {
  std::string records{};  ///< evaluations and parts of them, asks, and the order of their answers
  std::string facts{};
};

Contents read_all(const Store& store) {
  Contents contents;
  const auto add = [&contents](const nlohmann::json& record) {
    contents.records += line_of(record);
  };
  for (const auto& evaluation : store.evaluations()) add(evaluation);
  for (const auto& part : store.partials()) add(part);
  for (const auto& ask : store.asks()) {
    add({{"number", ask.number},
         {"batch", ask.batch},
         {"genotype", ask.genotype},
         {"evaluations", ask.evaluations},
         {"reused", ask.reused},
         {"fitness", ask.fitness},
         {"until", ask.until}});
  }
  add(store.tells());
  for (const auto& key : facts()) {
    contents.facts += key + " " + line_of(store.meta(key).value_or(nullptr));
  }
  for (const auto& session : store.sessions()) contents.facts += line_of(session);
  for (const auto& environment : store.environments()) contents.facts += line_of(environment);
  (void)store.indicators();  // without checksums: they follow from the asks
  (void)store.num_asked();
  (void)store.num_evaluations();
  return contents;
}

/// A part of a training run.
Evaluation paused_evaluation(const std::string& mechanism) {
  auto part = small_evaluation(mechanism, 0);
  part.status = Status::paused;
  part.curve.pop_back();
  return part;
}

/// A store of each kind of record, as a process leaves it that has ended.
void write_store(const fs::path& file) {
  const auto mechanisms = small_mechanisms();
  std::vector<Evaluation> evaluations;
  for (std::size_t i = 0; i < 4; ++i) {
    for (const std::int64_t replicate : {0, 1}) {
      evaluations.push_back(small_evaluation(mechanisms[i], replicate));
    }
  }
  auto& diverged = evaluations.back();
  diverged.status = Status::diverged;
  diverged.reason = "a loss that is not finite";
  diverged.curve.back().train_nll = std::numeric_limits<double>::quiet_NaN();
  const auto part = paused_evaluation(mechanisms[4]);
  std::vector<Ask> asks;
  for (const auto& evaluation : evaluations) {
    const std::int64_t number = std::ssize(asks);
    asks.push_back({.number = number,
                    .batch = number / 4,
                    .genotype = evaluation.candidate,
                    .evaluations = {evaluation.id},
                    .fitness = {evaluation.values.at("perplexity")}});
  }
  asks.push_back({.number = std::ssize(asks),
                  .batch = 2,
                  .genotype = part.candidate,
                  .evaluations = {part.id},
                  .fitness = {40.0},
                  .until = part.curve.back().step});
  Store store(file);
  store.begin_session({{"torch", "1.13.1"}});
  store.add(evaluations);
  store.add_partials({part});
  store.add_asks(asks);
  store.add_tell(0, asks[1]);
  store.add_tell(1, asks[0]);
  store.add_indicator({.asked = 4, .batch = 0, .evaluated = 4, .front = 1, .value = 0.5});
  store.set_meta("config", {{"name", "small"}, {"training", {{"steps", 40}}}});
  store.set_meta("facts", small_facts());
  store.set_meta("baseline", {{"evaluations", nlohmann::json::array({evaluations.front().id})},
                              {"fitness", nlohmann::json::array({1.5})}});
  store.set_meta("objectives", nlohmann::json::parse(R"([{"name": "perplexity", "key": "perplexity",
      "unit": "1", "maximise": false, "best": 1.5}])"));
  store.set_meta("last_population", nlohmann::json::parse("[[0.25, 0.5], [0.75, 1]]"));
  store.set_meta("labels", {{mechanisms[0], "the first"}});
  store.set_meta("elapsed_seconds", 12.5);
  store.set_meta("at_work", nullptr);
  store.set_meta("ended_by", "the algorithm");
}

class AnyStore : public ::testing::Test {
 protected:
  /// What becomes of a changed row's checksum.
  enum class Digest { left, fitted };

  struct Table {
    std::string name{};
    Texts columns{};  ///< quoted, without the digest; the first is the key
    bool has_digest = false;
  };

  AnyStore() {
    write_store(file_);
    whole_ = read_bytes(file_);
    expected_ = read_all(Store(file_, Store::Mode::read_only));
    const SQLite::Database sqlite(file_.string());
    for (const std::string name :
         {"meta", "evaluations", "partials", "asks", "tells", "indicators"}) {
      auto& table = tables_.emplace_back();
      table.name = name;
      SQLite::Statement columns(sqlite, "SELECT name FROM pragma_table_info('" + name + "')");
      while (columns.executeStep()) {
        const auto column = columns.getColumn(0).getString();
        if (column == "digest") {
          table.has_digest = true;
        } else {
          table.columns.push_back("\"" + column + "\"");
        }
      }
    }
  }

  template <class Items>
  const auto& pick(const Items& items) {
    return items[static_cast<std::size_t>(random_.below(std::ssize(items)))];
  }

  /// Puts a file in the store's place, without what readers have left beside it.
  void put(const std::string& bytes) const {
    for (const auto* suffix : {"-wal", "-shm", "-journal"}) fs::remove(file_.string() + suffix);
    std::ofstream(file_, std::ios::binary) << bytes;
  }

  /// What `work` makes of a mutant; nothing where that is refused, by a message that names the file.
  template <class Work>
  auto unless_refused(const std::string& mutant, Work work) const
      -> std::optional<decltype(work())> {
    try {
      return work();
    } catch (const InputError& error) {  // exit code 2
      EXPECT_THAT(error.what(), HasSubstr(file_.string())) << mutant;
    } catch (const MachineError& error) {  // exit code 75
      EXPECT_THAT(error.what(), HasSubstr(file_.string())) << mutant;
    } catch (const std::exception& error) {
      ADD_FAILURE() << mutant << " passes for a defect of the program: " << error.what();
    }
    return std::nullopt;
  }

  /// Reads a mutant as a run is read, and checks it as `nas-run verify` does. Where no checksum was
  /// changed, nothing else than what was written may be believed.
  /// @return whether it was refused.
  [[nodiscard]] bool is_refused(const std::string& mutant, Digest digest = Digest::left) const {
    const auto contents =
        unless_refused(mutant, [this] { return read_all(Store(file_, Store::Mode::read_only)); });
    const auto check =
        unless_refused(mutant, [this] { return Store(file_, Store::Mode::read_only).check(); });
    if (!contents) return true;
    const bool named = !check || !check->damaged.empty() || !check->inconsistencies.empty();
    const bool same_records = contents->records == expected_.records;
    const bool same_facts = contents->facts == expected_.facts;
    switch (digest) {
      case Digest::left:
        EXPECT_TRUE(same_records) << mutant << ": other records are believed";
        // One whose key was changed is not looked for.
        EXPECT_TRUE(same_facts || named) << mutant << ": other facts are believed";
        break;
      case Digest::fitted:
        break;
    }
    return false;
  }

  /// Changes a cell of the whole store. @return what was changed; empty where SQLite refused that, as it does two equal keys.
  std::string change_cell(Digest digest) {
    // $ is the cell's value.
    static const Texts kValues{"NULL",
                               "''",
                               "'x'",
                               "'[]'",
                               "'{}'",
                               "'null'",
                               "'true'",
                               "'ok'",
                               "'paused'",
                               "'{\"a\": 1}'",
                               "'{\"e\": 0}'",
                               "'[1, \"a\", null]'",
                               "'[{}]'",
                               "x'ff'",
                               "CAST(x'ff' AS TEXT)",
                               "0",
                               "-1",
                               "1",
                               "0.5",
                               "1e18",
                               "9e999",
                               "-9e999",
                               "9223372036854775807",
                               "substr($, 2)",
                               "substr($, 1, length($) / 2)",
                               "replace($, '1', '2')",
                               "replace($, '\":', '\":-')",
                               "upper($)",
                               "$ || $",
                               "hex(zeroblob(3000))",
                               "replace(hex(zeroblob(100000)), '0', '[')"};
    put(whole_);
    SQLite::Database sqlite(file_.string(), SQLite::OPEN_READWRITE);
    sqlite.exec("PRAGMA synchronous = OFF");
    const auto& table = pick(tables_);
    const auto& column = pick(table.columns);
    auto value = pick(kValues);
    for (auto at = value.find('$'); at != std::string::npos; at = value.find('$', at)) {
      value.replace(at, 1, column);
      at += column.size();
    }
    const auto rows = sqlite.execAndGet("SELECT count(*) FROM " + table.name).getInt64();
    const auto& key = table.columns.front();
    const auto sql = "UPDATE " + table.name + " SET " + column + " = " + value + " WHERE " + key +
                     " = (SELECT " + key + " FROM " + table.name + " LIMIT 1 OFFSET " +
                     std::to_string(random_.below(rows)) + ")";
    try {
      sqlite.exec(sql);
    } catch (const SQLite::Exception&) {
      return "";
    }
    if (digest == Digest::fitted && table.has_digest) {
      fit_digests(sqlite, table.name, join(table.columns));
    }
    return sql;
  }

  /// @return how many of so many mutants with one changed cell are refused.
  int num_refused(Digest digest) {
    int refused = 0;
    for (int i = 0; i < kMutants; ++i) {
      const auto changed = change_cell(digest);
      if (!changed.empty() && is_refused(changed, digest)) ++refused;
    }
    return refused;
  }

  const TemporaryFolder temporary_;
  fs::path file_ = temporary_.path() / "store.sqlite";
  std::string whole_;
  Contents expected_;
  std::vector<Table> tables_;
  RandomEngine random_{9};
};

TEST_F(AnyStore, AsItWasWrittenItIsReadAndVerified) {
  EXPECT_FALSE(is_refused("the whole store"));
  const auto check = Store(file_, Store::Mode::read_only).check();
  EXPECT_TRUE(check.damaged.empty());
  EXPECT_EQ(check.verified, std::ssize(facts()) + 8 + 1 + 9 + 2)
      << "facts, evaluations, a part, asks, tells";
}

TEST_F(AnyStore, AChangedByteIsRefusedOrHarmless) {
  constexpr std::int64_t kHeader = 100;
  int refused = 0;
  for (int i = 0; i < kMutants; ++i) {
    auto bytes = whole_;
    for (auto more = 1 + random_.below(10); more > 0; --more) {
      const auto place = random_.below(i % 2 == 0 ? kHeader : std::ssize(bytes));
      bytes[static_cast<std::size_t>(place)] = static_cast<char>(random_.below(256));
    }
    put(bytes);
    if (is_refused("bytes, mutant " + std::to_string(i))) ++refused;
  }
  EXPECT_GT(refused, kMutants / 3);
}

TEST_F(AnyStore, ACutFileIsRefusedOrHarmless) {
  int refused = 0;
  for (int i = 0; i < kMutants; ++i) {
    const auto size = random_.below(std::ssize(whole_));
    put(whole_.substr(0, static_cast<std::size_t>(size)));
    if (is_refused("cut to " + std::to_string(size) + " bytes")) ++refused;
  }
  EXPECT_GT(refused, kMutants / 2);
}

TEST_F(AnyStore, AChangedCellIsRefusedOrHarmless) {
  EXPECT_GT(num_refused(Digest::left), kMutants / 3);
}

/// Whoever makes the digest fit is believed, but ends no program.
TEST_F(AnyStore, AChangedCellWhoseDigestFitsIsRefusedOrRead) {
  EXPECT_GT(num_refused(Digest::fitted), kMutants / 10);
}

/// It has no JSON: an export of it would end as by a defect of the program.
TEST_F(AnyStore, WhatIsNoTextIsRefused) {
  const std::pair<std::string, std::string> texts[] = {{"evaluations", "candidate"},
                                                       {"evaluations", "reason"},
                                                       {"partials", "candidate"},
                                                       {"asks", "genotype"}};
  for (const auto& [table, column] : texts) {
    put(whole_);
    SQLite::Database(file_.string(), SQLite::OPEN_READWRITE)
        .exec("UPDATE " + table + " SET digest = NULL, " + column + " = CAST(x'ff' AS TEXT)");
    EXPECT_THAT(
        message_of<InputError>([this] { (void)read_all(Store(file_, Store::Mode::read_only)); }),
        HasSubstr(" is damaged: "))
        << table << '.' << column;
  }
}

}  // namespace
}  // namespace nas::testing
