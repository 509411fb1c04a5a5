#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/text.hpp"

namespace nas {

/// A column of a table for a terminal. An empty cell is a value that does not exist.
struct Column {
  std::string header;
  std::vector<std::string> cells{};
  bool left = false;   ///< aligned to the left
  bool spare = false;  ///< left out where lines would be too long, the last such column first
  /// Above the rest of its row where it would be folded into more than two lines; one column at most.
  bool name = false;
};

/// Lines of columns as wide as their widest cell, two blanks apart; columns without any cell are
/// left out. What is too wide without the spare columns has its widest ones folded.
/// @param columns  of equally many cells.   @param width  characters of a line.
std::string aligned(std::vector<Column> columns, std::size_t width = kAnyWidth);

}  // namespace nas
