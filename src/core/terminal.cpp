#include "core/terminal.hpp"

#include <cstdlib>
#include <string_view>

#include <unistd.h>

namespace nas {

bool is_terminal(int file) {
  const char* kind = std::getenv("TERM");
  return isatty(file) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

}  // namespace nas
