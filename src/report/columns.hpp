#pragma once

#include <string>
#include <vector>

namespace nas {

/// A column of a table for a terminal. An empty cell is a value that does not exist.
struct Column {
  std::string header;
  std::vector<std::string> cells{};
  bool left = false;  ///< aligned to the left
};

/// Lines of columns as wide as their widest cell, two blanks apart; columns without any cell are
/// left out.
/// @param columns  of equally many cells.
std::string aligned(std::vector<Column> columns);

}  // namespace nas
