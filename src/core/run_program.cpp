#include "core/run_program.hpp"

#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace nas {

namespace {

/// What is read from the pipe until its end; only the last part is kept.
std::string read_end(int file) {
  constexpr std::size_t kLength = 4096;
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const auto size = read(file, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(size));
    if (text.size() > kLength) text.erase(0, text.size() - kLength);
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 127;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

ProgramResult run_program(std::vector<std::string> arguments, Output kept) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return {.output = "no pipe: " + std::generic_category().message(errno)};
  }
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
  if (kept == Output::all) {
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  pid_t child = -1;
  const int failed = posix_spawnp(&child, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]);
  ProgramResult result{.started = failed == 0,
                       .output = "cannot be started: " + std::generic_category().message(failed)};
  if (result.started) {
    result.output = read_end(ends[0]);
    result.status = wait_for(child);
  }
  close(ends[0]);
  return result;
}

std::string last_line(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text.substr(text.find_last_of('\n') + 1);
}

}  // namespace nas
