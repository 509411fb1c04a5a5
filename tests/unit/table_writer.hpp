#pragma once

#include "prelude.hpp"
#include "table/format.hpp"

namespace nas::testing {

/// What a table is made from, which nas-data packs otherwise.
struct TableContent {
  std::string name;
  nlohmann::json identity;        ///< of every cell, without candidate and replicate
  nlohmann::json facts;           ///< what else holds for every cell
  nlohmann::json sources;         ///< a list
  std::vector<Evaluation> cells;  ///< in any order, no two of one mechanism and replicate
  nlohmann::json publication = nlohmann::json::object();
};

/// The statements that make the tables of a file. @param values  columns of `trainings`.
inline std::string table_schema(const std::set<std::string>& values) {
  std::string columns;
  for (const auto& value : values) columns += table_format::quoted(value) + " REAL, ";
  return "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
         "CREATE TABLE mechanisms (mechanism INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, "
         "measured TEXT NOT NULL);"
         "CREATE TABLE trainings (mechanism INTEGER NOT NULL REFERENCES mechanisms, replicate "
         "INTEGER NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL, train_seconds REAL, "
         "cpu_seconds REAL, peak_bytes REAL, " +
         columns +
         "PRIMARY KEY (mechanism, replicate)) WITHOUT ROWID;"
         "CREATE TABLE curves (mechanism INTEGER NOT NULL REFERENCES mechanisms, replicate INTEGER "
         "NOT NULL, step INTEGER NOT NULL, train_nll REAL, nll REAL, tokens INTEGER NOT NULL, "
         "correct INTEGER NOT NULL, pad_nll REAL, pad_tokens INTEGER NOT NULL, unknown_nll REAL, "
         "unknown_tokens INTEGER NOT NULL, batch_mean_nll REAL, batches INTEGER NOT NULL, seconds "
         "REAL, PRIMARY KEY (mechanism, replicate, step)) WITHOUT ROWID;"
         "CREATE TABLE publication (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;";
}

/// Adds rows to one of the tables, value by value.
class Insertion {
 public:
  Insertion(SQLite::Database& sqlite, const std::string& table)
      : columns_(SQLite::Statement(sqlite, "SELECT * FROM " + table).getColumnCount()),
        insert_(sqlite, "INSERT INTO " + table + " VALUES (?" + more_places() + ")") {}

  template <class... Values>
  Insertion& add(const Values&... values) {
    (insert_.bind(++column_, values), ...);
    return *this;
  }
  void end_row() {
    insert_.exec();
    insert_.reset();
    column_ = 0;
  }

 private:
  [[nodiscard]] std::string more_places() const {
    std::string text;
    for (int i = 1; i < columns_; ++i) text += ", ?";
    return text;
  }

  int columns_;
  SQLite::Statement insert_;
  int column_ = 0;
};

/// Of the replicates of a mechanism, the measured objectives with the median value, the lower of two.
inline nlohmann::json median_objectives(const std::map<std::int64_t, const Evaluation*>& cells) {
  std::map<std::string, std::multimap<double, nlohmann::json>> found;
  for (const auto& [replicate, cell] : cells) {
    for (const auto& [name, value] : cell->measured.items()) {
      if (table_format::is_measured_objective(value)) found[name].emplace(value.at("value"), value);
    }
  }
  auto medians = nlohmann::json::object();
  for (const auto& [name, values] : found) {
    medians[name] = std::next(values.begin(), (std::ssize(values) - 1) / 2)->second;
  }
  return medians;
}

/// Writes a table as docs/files.md says, whatever is in it.
inline void write_table(const TableContent& content, const fs::path& file) {
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();  // NULL in SQLite
  std::map<std::string, std::map<std::int64_t, const Evaluation*>> mechanisms;
  std::set<std::string> values;
  for (const auto& cell : content.cells) {
    mechanisms[cell.candidate][cell.replicate] = &cell;
    for (const auto& [name, value] : cell.values) values.insert(name);
  }
  fs::remove(file);
  SQLite::Database sqlite(file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  sqlite.exec("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; BEGIN");
  sqlite.exec("PRAGMA application_id = " + std::to_string(table_format::kKind.application_id) +
              "; PRAGMA user_version = " + std::to_string(table_format::kKind.version));
  sqlite.exec(table_schema(values));
  const auto add_json = [&sqlite](const std::string& table, const nlohmann::json& by_key) {
    Insertion rows(sqlite, table);
    for (const auto& [key, value] : by_key.items()) rows.add(key, value.dump()).end_row();
  };
  add_json("meta", {{"name", content.name},
                    {"identity", content.identity},
                    {"facts", content.facts},
                    {"sources", content.sources}});
  Insertion names(sqlite, "mechanisms");
  Insertion trainings(sqlite, "trainings");
  Insertion curves(sqlite, "curves");
  std::int64_t mechanism = 0;
  for (const auto& [name, replicates] : mechanisms) {
    names.add(mechanism, name, median_objectives(replicates).dump()).end_row();
    for (const auto& [replicate, cell] : replicates) {
      trainings.add(mechanism, replicate, std::string(to_string(cell->status)), cell->reason);
      table_format::visit_measured([&, cell = cell](const char* key) {
        trainings.add(cell->measured.is_object() ? cell->measured.value(key, kNothing) : kNothing);
      });
      for (const auto& value : values) {
        const auto found = cell->values.find(value);
        trainings.add(found != cell->values.end() ? found->second : kNothing);
      }
      trainings.end_row();
      for (const auto& point : cell->curve) {
        curves.add(mechanism, replicate, point.step);
        table_format::visit_numbers(
            point, [&curves](const char*, const auto& number) { curves.add(number); });
        curves.end_row();
      }
    }
    ++mechanism;
  }
  add_json("meta", {{"sha256", table_format::content_digest([&sqlite](const auto& sql) {
                       return SQLite::Statement(sqlite, sql);
                     })}});
  add_json("publication", content.publication);
  sqlite.exec("COMMIT");
}

}  // namespace nas::testing
