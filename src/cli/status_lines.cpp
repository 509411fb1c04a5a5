#include "cli/status_lines.hpp"

#include <algorithm>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include "core/error.hpp"
#include "report/text.hpp"

namespace nas {

namespace {

constexpr const char* kEraseBelow = "\r\x1b[J";  // from the cursor's line to the end of the screen

}  // namespace

int terminal_width() {
  winsize size{};
  constexpr int kUsual = 100;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
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
  for (const auto& line : lines) shown_.push_back(shortened(line, columns()));
  out_ << kEraseBelow << join(shown_, "\n") << '\r';
  if (shown_.size() > 1) out_ << "\x1b[" << shown_.size() - 1 << 'A';
  out_ << std::flush;
}

}  // namespace nas
