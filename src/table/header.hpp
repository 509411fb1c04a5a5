#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace nas {

/// A column as a table's header has it: which words of the file, and of what.
struct TableColumn {
  enum class Per { table, cell, point };

  std::string name;
  bool real = false;  ///< IEEE 754 doubles, else integers
  Per per = Per::table;
  std::size_t offset = 0;  ///< words from the first column
  std::size_t size = 0;    ///< words
};

/// What a table says of itself before its columns.
struct TableHeader {
  std::string name;
  nlohmann::json identity;
  nlohmann::json facts;
  nlohmann::json sources;
  std::vector<std::string> mechanisms;  ///< ascending
  std::int64_t replicates = 0;
  std::vector<std::int64_t> steps;       ///< ascending
  std::vector<std::string> reasons;      ///< at least one
  std::vector<nlohmann::json> measured;  ///< objectives by name, of each mechanism
  std::vector<TableColumn> columns;      ///< every one that readers ask for, and others

  [[nodiscard]] std::size_t num_cells() const {
    return mechanisms.size() * static_cast<std::size_t>(replicates);
  }
};

/// Reads a header that somebody else may have written: what it returns can be relied upon, so that
/// no reader checks again. Keys of `facts` and `identity` that readers interpret have their types.
/// @param num_words  that follow the header, which the columns fill exactly.
/// @throws InputError saying what was given and what is allowed, without the file's name.
TableHeader read_table_header(std::string_view text, std::size_t num_words);

}  // namespace nas
