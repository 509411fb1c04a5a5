#pragma once

#include <string>
#include <vector>

namespace nas {

/// What became of a child process.
struct ProgramResult {
  bool started = false;
  int status = 127;    ///< exit code; 128 + signal where one ended it; 127 where it did not start
  std::string output;  ///< of what is kept, the last 4,096 characters; where it did not start, why
};

/// What is kept of what a program writes.
enum class Output { errors, all };

/// Runs a program to its end, without a shell: its arguments are passed on as they are. It reads
/// nothing; of its output, what is not kept is dropped.
/// @param arguments  the program, looked up on PATH unless it has a slash, and its arguments.
ProgramResult run_program(std::vector<std::string> arguments, Output kept = Output::errors);

/// The last line of a text that says something: there, programs say what went wrong.
std::string last_line(std::string text);

}  // namespace nas
