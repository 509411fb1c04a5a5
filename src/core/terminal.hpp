#pragma once

#include <cstddef>

namespace nas {

/// Whether an open file is a terminal on which lines can be rewritten: none of TERM=dumb.
/// @param file  STDOUT_FILENO, STDERR_FILENO.
bool is_terminal(int file);

/// Columns of the terminal that standard output is, or else standard error, now: those that it has,
/// or COLUMNS of the environment where these are fewer; 100 where neither says it.
int terminal_width();

/// Rows of the terminal that standard output is, or else standard error, now; 24 where neither is one.
int terminal_height();

/// Characters that a line of a result, a list or a help may have on standard output: as many as a
/// terminal shows, at least 20; any number, kAnyWidth of report/text.hpp, where it is none.
std::size_t line_width();

}  // namespace nas
