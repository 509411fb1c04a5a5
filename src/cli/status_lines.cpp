#include "cli/status_lines.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "core/error.hpp"
#include "core/format.hpp"
#include "report/text.hpp"

namespace nas {

namespace {

/// Lines in place of those that begin where the cursor is. The screen's rest is erased last: tmux
/// keeps of a screen that is erased from its first column what was there.
std::string in_place(const std::vector<std::string>& lines) {
  return "\r" + join(lines, "\x1b[K\n") + "\x1b[J";
}

}  // namespace

std::string abridged(const std::string& text, std::size_t columns) {
  const auto width = width_of(text);
  if (width <= columns) return text;
  // The end of a name says as much as its beginning.
  const auto begin = columns / 2;
  std::size_t characters = 0;
  std::string kept;
  for (const char c : text) {
    if (begins_character(c) && ++characters == begin + 1) kept += "\u2026";
    if (characters <= begin || characters > width - (columns - 1 - begin)) kept += c;
  }
  return kept;
}

StatusLines::StatusLines(std::ostream& out, std::function<int()> width, std::function<int()> height)
    : out_(out), width_(std::move(width)), height_(std::move(height)) {}

StatusLines::~StatusLines() {
  if (!shown_.empty()) out_ << in_place(shown_) << '\n' << std::flush;
}

std::size_t StatusLines::columns() const {
  constexpr int kNarrowest = 20;
  return static_cast<std::size_t>(std::max(kNarrowest, width_() - 1));
}

void StatusLines::show(const std::vector<std::string>& lines) {
  shown_.clear();
  // A line that goes on in the next row, or out of the screen, would not be found again.
  const auto width = static_cast<std::size_t>(std::max(1, width_() - 1));
  const auto height = static_cast<std::size_t>(std::max(1, height_()));
  for (std::size_t i = 0; i < std::min(lines.size(), height); ++i) {
    const auto& line = lines[i];
    shown_.push_back(shortened(printable(line.substr(0, line.find('\n'))), width));
  }
  draw({});
}

void StatusLines::leave(const std::string& text) {
  std::istringstream stream(printable(text));
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  draw(std::move(lines));
}

void StatusLines::draw(std::vector<std::string> lines) {
  lines.insert(lines.end(), shown_.begin(), shown_.end());
  if (shown_.empty()) lines.emplace_back();
  out_ << in_place(lines) << '\r';
  if (shown_.size() > 1) out_ << "\x1b[" << shown_.size() - 1 << 'A';
  out_ << std::flush;
}

PacedLine::PacedLine(std::ostream& out, std::function<int()> width, std::function<double()> now)
    : lines_(out, std::move(width)), now_(std::move(now)) {}

void PacedLine::show(const std::string& line, bool last) {
  constexpr double kBetween = 0.5;  // s
  const auto now = now_();
  if (!last && shown_ && now - *shown_ < kBetween) return;
  shown_ = now;
  lines_.show({line});
}

}  // namespace nas
