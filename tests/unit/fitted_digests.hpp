#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <SQLiteCpp/SQLiteCpp.h>

#include "store/database.hpp"
#include "store/rows.hpp"

namespace nas::testing {

/// Writes the digests that fit the rows of a table, of these columns; the first is the key.
inline void fit_digests(SQLite::Database& file, const std::string& table,
                        const std::string& columns) {
  std::vector<Texts> rows;
  SQLite::Statement select(file, "SELECT " + columns + " FROM " + table);
  while (select.executeStep()) {
    auto& row = rows.emplace_back();
    for (int i = 0; i < select.getColumnCount(); ++i)
      row.push_back(select.getColumn(i).getString());
  }
  SQLite::Statement update(file, "UPDATE " + table + " SET digest = ? WHERE CAST(" +
                                     columns.substr(0, columns.find(',')) + " AS TEXT) = ?");
  for (const auto& row : rows) {
    const auto digest = row_digest(row);
    update.bind(1, static_cast<const void*>(digest.data()), static_cast<int>(digest.size()));
    update.bind(2, row.front());
    update.exec();
    update.reset();
  }
}

/// Changes a store past its class, by who makes the digests of facts, evaluations and asks fit.
inline void change_fitted(const std::filesystem::path& store, const std::string& sql) {
  SQLite::Database file(store.string(), SQLite::OPEN_READWRITE);
  file.exec(sql);
  for (const auto& table : {kMeta, kEvaluations, kAsks}) {
    fit_digests(file, table.name, table.columns);
  }
}

}  // namespace nas::testing
