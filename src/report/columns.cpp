#include "report/columns.hpp"

#include <algorithm>

#include "report/text.hpp"

namespace nas {

std::string aligned(std::vector<Column> columns) {
  std::erase_if(columns, [](const Column& column) {
    return std::all_of(column.cells.begin(), column.cells.end(),
                       [](const auto& cell) { return cell.empty(); });
  });
  std::vector<std::string> lines(columns.empty() ? 0 : columns.front().cells.size() + 1);
  for (auto& column : columns) {
    column.cells.insert(column.cells.begin(), column.header);
    std::size_t width = 0;
    for (auto& cell : column.cells) {
      // A mark in an unnamed column is there or not; a missing value must differ from a cut one.
      if (cell.empty() && !column.header.empty()) cell = "-";
      width = std::max(width, width_of(cell));
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const auto& cell = column.cells[i];
      const std::string blanks(width - width_of(cell), ' ');
      lines[i] += "  " + (column.left ? cell + blanks : blanks + cell);
    }
  }
  std::string text;
  for (auto& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace nas
