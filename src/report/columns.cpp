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

/// A row from its column `first` on, whose earlier ones are blank.
std::string row_text(const std::vector<Column>& columns, const std::vector<std::size_t>& widths,
                     std::size_t row, std::size_t first = 0) {
  std::vector<std::string> lines(1);
  std::size_t begin = 0;  // of the column
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto cell = i < first ? std::string() : columns[i].cells[row];
    const auto parts = folded(cell, widths[i], 0, /*whole_words=*/false);
    lines.resize(std::max(lines.size(), parts.size()));
    for (std::size_t part = 0; part < parts.size(); ++part) {
      auto& line = lines[part];
      const auto blanks = widths[i] - width_of(parts[part]);
      line += std::string(begin + 2 + (columns[i].left ? 0 : blanks) - width_of(line), ' ');
      line += parts[part];
    }
    begin += 2 + widths[i];
  }
  std::string text;
  for (auto& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

/// Whether the names are folded into more than two lines.
bool are_broken(const std::vector<Column>& columns, const std::vector<std::size_t>& widths) {
  constexpr std::size_t kMostLines = 2;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i].name) continue;
    return std::any_of(columns[i].cells.begin(), columns[i].cells.end(), [&](const auto& cell) {
      return folded(cell, widths[i], 0, /*whole_words=*/false).size() > kMostLines;
    });
  }
  return false;
}

/// Each row below a line with its name and what stands before that.
std::string below_names(std::vector<Column> columns, std::size_t width) {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [](const Column& column) { return column.name; });
  auto before = static_cast<std::size_t>(found - columns.begin());
  const auto names = found->cells;
  const auto spare_behind = static_cast<std::size_t>(
      std::count_if(found, columns.end(), [](const Column& column) { return column.spare; }));
  columns.erase(found);
  const auto all = columns.size();
  const auto widths = fitted_widths(columns, width);
  before -= std::max(all - columns.size(), spare_behind) - spare_behind;  // the last ones go first
  std::vector<Column> head(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(before));
  std::vector<std::size_t> head_widths(widths.begin(),
                                       widths.begin() + static_cast<std::ptrdiff_t>(before));
  const auto begin = std::accumulate(head_widths.begin(), head_widths.end(), 2 * (before + 1));
  head.push_back({.header = {}, .cells = names, .left = true});
  head_widths.push_back(std::max<std::size_t>(width, begin + 8) - begin);
  std::string text;
  for (std::size_t row = 0; row < names.size(); ++row) {
    text += row_text(head, head_widths, row) + row_text(columns, widths, row, before);
  }
  return text;
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
  auto fitted = columns;
  const auto widths = fitted_widths(fitted, width);
  if (are_broken(fitted, widths)) return below_names(std::move(columns), width);
  const auto num_rows = fitted.empty() ? 0 : fitted.front().cells.size();
  std::string text;
  for (std::size_t row = 0; row < num_rows; ++row) text += row_text(fitted, widths, row);
  return text;
}

}  // namespace nas
