// A table: a whole file, or changes to a small one whose checksum is then made to fit, one each
// line: "TABLE COLUMN ROW VALUE". A value is written as in JSON; "delete" in its place takes the
// row away. Whatever is opened answers for each of its cells.

#include <fstream>
#include <sstream>

#include <SQLiteCpp/SQLiteCpp.h>
#include <nlohmann/json.hpp>

#include "core/durable_file.hpp"
#include "core/temporary_folder.hpp"
#include "fuzz/fuzz.hpp"
#include "table/format.hpp"
#include "table/table.hpp"
#include "unit/small_table.hpp"

namespace {

using nlohmann::json;

/// A table of two mechanisms with two replicates each.
const std::string& small_table() {
  static const std::string bytes = [] {
    const nas::TemporaryFolder folder;
    auto cells = nas::testing::small_cells();
    std::erase_if(cells, [&](const auto& cell) {
      return cell.replicate > 1 || cell.candidate > nas::testing::small_mechanisms()[1];
    });
    nas::testing::write_table(nas::testing::small_content(cells), folder.path() / "table");
    return nas::read_bytes(folder.path() / "table");
  }();
  return bytes;
}

/// The columns that SQLite knows a row of a table by.
std::string key_of(const std::string& table) {
  if (table == "meta") return "key";
  if (table == "mechanisms") return "mechanism";
  return table == "trainings" ? "mechanism, replicate" : "mechanism, replicate, step";
}

void bind(SQLite::Statement& statement, const json& value) {
  if (value.is_number_float()) {
    statement.bind(1, value.get<double>());
  } else if (value.is_number()) {
    statement.bind(1, value.get<std::int64_t>());
  } else if (value.is_null()) {
    statement.bind(1);
  } else {
    statement.bind(1, value.is_string() ? value.get<std::string>() : value.dump());
  }
}

/// Makes one change, if there is something to be changed so.
void change(SQLite::Database& sqlite, const std::string& line) {
  std::istringstream words(line);
  std::string table, column, rest;
  int row = 0;
  words >> table >> column >> row;
  std::getline(words >> std::ws, rest);
  const auto quoted = nas::table_format::quoted(table);
  const auto key = key_of(table);
  const auto where = " WHERE (" + key + ") = (SELECT " + key + " FROM " + quoted +
                     " LIMIT 1 OFFSET " + std::to_string(row) + ")";
  try {
    if (rest == "delete") {
      sqlite.exec("DELETE FROM " + quoted + where);
      return;
    }
    const auto value = json::parse(rest, nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded()) return;
    SQLite::Statement update(
        sqlite, "UPDATE " + quoted + " SET " + nas::table_format::quoted(column) + " = ?" + where);
    bind(update, value);
    update.exec();
  } catch (const SQLite::Exception&) {  // NOLINT(bugprone-empty-catch): no such place, or NOT NULL
  } catch (const json::exception&) {    // NOLINT(bugprone-empty-catch): no UTF-8
  }
}

void change_small_table(const std::filesystem::path& file, std::string_view changes) {
  std::ofstream(file, std::ios::binary) << small_table();
  SQLite::Database sqlite(file.string(), SQLite::OPEN_READWRITE);
  sqlite.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
  std::istringstream lines{std::string(changes)};
  int most = 20;
  for (std::string line; most-- > 0 && std::getline(lines, line);) change(sqlite, line);
  const auto digest = nas::table_format::content_digest(
      [&sqlite](const auto& sql) { return SQLite::Statement(sqlite, sql); });
  SQLite::Statement stamp(sqlite, "UPDATE meta SET value = ? WHERE key = 'sha256'");
  stamp.bind(1, "\"" + digest + "\"");
  stamp.exec();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto given = nas::fuzz::text(data, size);
  const nas::TemporaryFolder folder;
  const auto file = folder.path() / "table";
  if (given.starts_with("SQLite format 3")) {
    std::ofstream(file, std::ios::binary) << given;
  } else {
    change_small_table(file, given);
  }
  nas::fuzz::taken([&] {
    const nas::Table table(file);
    (void)table.facts().dump();
    for (std::int64_t mechanism = 0; mechanism < table.num_mechanisms(); ++mechanism) {
      nas::fuzz::require(table.find(table.mechanism(mechanism)) == mechanism, "names are unique");
      (void)table.measured(mechanism).dump();
      for (std::int64_t replicate = 0; replicate < table.most_replicates(); ++replicate) {
        if (!table.has(mechanism, replicate)) continue;
        (void)canonical_json(table.evaluation(mechanism, replicate)).dump();
        (void)table.seconds(mechanism, replicate);
      }
    }
  });
  return 0;
}
