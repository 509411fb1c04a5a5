#include "report/columns.hpp"

#include <algorithm>
#include <numeric>

namespace nas {

namespace {

/// The width of each column, none of which can be less, so that lines have the given one if they
/// can: first spare columns go, then the widest shrink.
std::vector<std::size_t> fitted_widths(std::vector<Column>& columns, std::size_t width) {
  constexpr std::size_t kNarrowest = 10;
  std::vector<std::size_t> widths;
  for (const auto& column : columns) {
    std::size_t widest = 0;
    for (const auto& cell : column.cells) widest = std::max(widest, width_of(cell));
    widths.push_back(widest);
  }
  const auto too_wide = [&] {
    return std::accumulate(widths.begin(), widths.end(), 2 * widths.size()) > width;
  };
  for (auto i = columns.size(); i-- > 0 && too_wide();) {
    if (!columns[i].spare) continue;
    columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(i));
    widths.erase(widths.begin() + static_cast<std::ptrdiff_t>(i));
  }
  while (too_wide()) {
    const auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= kNarrowest) break;
    --*widest;
  }
  return widths;
}

}  // namespace

std::string aligned(std::vector<Column> columns, std::size_t width) {
  std::erase_if(columns, [](const Column& column) {
    return std::all_of(column.cells.begin(), column.cells.end(),
                       [](const auto& cell) { return cell.empty(); });
  });
  for (auto& column : columns) {
    column.cells.insert(column.cells.begin(), column.header);
    // A mark in an unnamed column is there or not; a missing value must differ from a cut one.
    for (auto& cell : column.cells) {
      if (cell.empty() && !column.header.empty()) cell = "-";
    }
  }
  const auto widths = fitted_widths(columns, width);
  const auto num_rows = columns.empty() ? 0 : columns.front().cells.size();
  std::string text;
  for (std::size_t row = 0; row < num_rows; ++row) {
    std::vector<std::string> lines(1);
    std::size_t begin = 0;  // of the column
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto parts = folded(columns[i].cells[row], widths[i], 0, /*whole_words=*/false);
      lines.resize(std::max(lines.size(), parts.size()));
      for (std::size_t part = 0; part < parts.size(); ++part) {
        auto& line = lines[part];
        const auto blanks = widths[i] - width_of(parts[part]);
        line += std::string(begin + 2 + (columns[i].left ? 0 : blanks) - width_of(line), ' ');
        line += parts[part];
      }
      begin += 2 + widths[i];
    }
    for (auto& line : lines) {
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + '\n';
    }
  }
  return text;
}

}  // namespace nas
