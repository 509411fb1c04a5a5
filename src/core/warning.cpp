#include "core/warning.hpp"

#include <iostream>
#include <string>

#include <unistd.h>

namespace nas {

void warn(std::string_view text) {
  // A progress display may stand where the cursor is.
  const char* begin = isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "";
  std::cerr << std::string(begin) + "warning: " + std::string(text) + "\n" << std::flush;
}

}  // namespace nas
