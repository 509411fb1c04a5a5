#pragma once

#include <initializer_list>
#include <regex>
#include <string>

#include <SQLiteCpp/SQLiteCpp.h>

namespace nas::testing {

/// Makes tables ones to which digests were added later, as to those of version 2 of a store: their
/// rows may lack them.
inline void add_digests_late(SQLite::Database& file, std::initializer_list<std::string> tables = {
                                                         "meta", "evaluations", "asks"}) {
  for (const auto& table : tables) {
    std::string sql =
        file.execAndGet("SELECT sql FROM sqlite_master WHERE name = '" + table + "'").getText();
    sql = std::regex_replace(sql, std::regex("--[^\n]*"), "");
    sql = std::regex_replace(sql, std::regex(",\\s*digest\\s+(TEXT|BLOB)"), "");
    std::string columns;
    SQLite::Statement names(file, "SELECT name FROM pragma_table_info('" + table + "')");
    while (names.executeStep()) {
      columns += (columns.empty() ? "\"" : ", \"") + names.getColumn(0).getString() + "\"";
    }
    file.exec("CREATE TABLE kept AS SELECT * FROM " + table + "; DROP TABLE " + table);
    file.exec(sql + "; ALTER TABLE " + table + " ADD COLUMN digest TEXT");
    file.exec("INSERT INTO " + table + " (" + columns + ") SELECT " + columns + " FROM kept");
    file.exec("DROP TABLE kept");
  }
}

}  // namespace nas::testing
