#include "cli/status_lines.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/format.hpp"
#include "report/text.hpp"

namespace nas {

namespace {

constexpr const char* kEraseBelow = "\r\x1b[J";  // from the cursor's line to the end of the screen

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

StatusLines::StatusLines(std::ostream& out, std::function<int()> width)
    : out_(out), width_(std::move(width)) {}

StatusLines::~StatusLines() {
  if (!shown_.empty()) out_ << kEraseBelow << join(shown_, "\n") << '\n' << std::flush;
}

std::size_t StatusLines::columns() const {
  constexpr int kNarrowest = 20;
  return static_cast<std::size_t>(std::max(kNarrowest, width_() - 1));
}

void StatusLines::show(const std::vector<std::string>& lines) {
  shown_.clear();
  for (const auto& line : lines) {
    shown_.push_back(shortened(printable(line.substr(0, line.find('\n'))), columns()));
  }
  out_ << kEraseBelow << join(shown_, "\n") << '\r';
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
