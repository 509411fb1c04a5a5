#include "core/terminal.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

namespace nas {

bool is_terminal(int file) {
  const char* kind = std::getenv("TERM");
  return isatty(file) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

namespace {

/// Of standard output, or else standard error, whichever says one; else 0.
unsigned short size_now(unsigned short winsize::*which) {
  for (const int file : {STDOUT_FILENO, STDERR_FILENO}) {
    winsize size{};
    if (ioctl(file, TIOCGWINSZ, &size) == 0 && size.*which > 0) return size.*which;
  }
  return 0;
}

}  // namespace

int terminal_width() {
  int width = size_now(&winsize::ws_col);
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    const std::string_view text(columns);
    int given = 0;
    (void)std::from_chars(text.data(), text.data() + text.size(), given);
    if (given > 0 && (width == 0 || given < width)) width = given;
  }
  constexpr int kUsual = 100;
  return width > 0 ? width : kUsual;
}

int terminal_height() {
  constexpr int kUsual = 24;
  const int height = size_now(&winsize::ws_row);
  return height > 0 ? height : kUsual;
}

std::size_t line_width() {
  constexpr int kNarrowest = 20;
  if (isatty(STDOUT_FILENO) != 1) return std::numeric_limits<std::size_t>::max();
  return static_cast<std::size_t>(std::max(kNarrowest, terminal_width()));
}

}  // namespace nas
