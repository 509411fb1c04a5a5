#pragma once

#include <array>
#include <string>
#include <vector>

#include <sys/types.h>

namespace nas {

/// A pipe that programs which are started do not hold: its end to read and its end to write.
/// @throws MachineError where there is none.
std::array<int, 2> make_pipe();

/// A program that runs beside this one, without a shell; with this object ends its process group.
class ChildProcess {
 public:
  /// Its standard streams, which stay the caller's; -1: /dev/null.
  struct Streams {
    int input = -1, output = -1, errors = -1;
  };
  /// @param words  the program, looked up on PATH unless it has a slash, and its arguments.
  /// @param own_group  whether it is in a process group of its own.
  ChildProcess(const std::vector<std::string>& words, Streams streams, bool own_group = true);
  ~ChildProcess() { end(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Why it did not start; empty where it did.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// @param wait  whether to wait for its end.
  bool running(bool wait = false);
  /// Exit code; 128 + signal where one ended it; 127 where it did not start or still runs.
  [[nodiscard]] int status() const { return status_; }
  /// Kills it, and all that is in its own group.
  void end();

 private:
  pid_t id_ = 0;
  bool own_group_;
  bool runs_ = false;
  int status_ = 127;
  std::string failure_{};
};

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
