#include "core/run_program.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"

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

}  // namespace

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) == 0) return ends;
  throw MachineError("no pipe: " + std::generic_category().message(errno));
}

ChildProcess::ChildProcess(const std::vector<std::string>& words, Streams streams, bool own_group)
    : own_group_(own_group) {
  posix_spawn_file_actions_t files{};
  posix_spawn_file_actions_init(&files);
  for (int stream = 0; const int file : {streams.input, streams.output, streams.errors}) {
    if (file < 0) posix_spawn_file_actions_addopen(&files, stream, "/dev/null", O_RDWR, 0);
    if (file >= 0) posix_spawn_file_actions_adddup2(&files, file, stream);
    ++stream;
  }
  sigset_t none{};
  sigemptyset(&none);
  auto ignored = none;  // by this process; a program is to see its pipe break
  for (const int signal : {SIGPIPE, SIGXFSZ}) sigaddset(&ignored, signal);
  posix_spawnattr_t attributes{};
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &ignored);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                            (own_group ? POSIX_SPAWN_SETPGROUP : 0));
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));  // NOLINT
  argv.push_back(nullptr);
  const int failed = posix_spawnp(&id_, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  runs_ = failed == 0;
  if (runs_) return;
  id_ = 0;
  failure_ = std::generic_category().message(failed);
}

bool ChildProcess::running(bool wait) {
  siginfo_t ended{};
  while (runs_ && waitid(P_PID, static_cast<id_t>(id_), &ended,
                         WEXITED | WNOWAIT | (wait ? 0 : WNOHANG)) != 0) {
    runs_ = errno == EINTR;
  }
  if (runs_ && ended.si_pid != 0) {
    runs_ = false;
    status_ = ended.si_status + (ended.si_code == CLD_EXITED ? 0 : 128);
  }
  return runs_;
}

void ChildProcess::end() {
  if (id_ == 0) return;
  kill(own_group_ ? -id_ : id_, SIGKILL);  // the number is its own until it is waited for
  running(/*wait=*/true);
  waitpid(std::exchange(id_, 0), nullptr, 0);
}

ProgramResult run_program(std::vector<std::string> arguments, Output kept) {
  const auto [read_from, write_to] = make_pipe();
  ChildProcess child(arguments, {.output = kept == Output::all ? write_to : -1, .errors = write_to},
                     /*own_group=*/false);
  close(write_to);
  ProgramResult result{.started = child.failure().empty(),
                       .output = "cannot be started: " + child.failure()};
  if (result.started) {
    result.output = read_end(read_from);
    child.running(/*wait=*/true);
    result.status = child.status();
  }
  close(read_from);
  return result;
}

std::string last_line(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text.substr(text.find_last_of('\n') + 1);
}

}  // namespace nas
