#pragma once

namespace nas {

/// Whether an open file is a terminal on which lines can be rewritten: none of TERM=dumb.
/// @param file  STDOUT_FILENO, STDERR_FILENO.
bool is_terminal(int file);

}  // namespace nas
