#include "cli/page.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <iostream>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/format.hpp"
#include "core/installed.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

/// What is read from the pipe until its end; only the last part is kept.
std::string read_end(int file) {
  constexpr std::size_t kKept = 4096;
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const auto size = read(file, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(size));
    if (text.size() > kKept) text.erase(0, text.size() - kKept);
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 127;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Python's tracebacks end with the line that says what went wrong.
std::string last_line(std::string text) {
  text.erase(text.find_last_not_of(" \n") + 1);
  return text.substr(text.find_last_of('\n') + 1);
}

/// For people who copy it into a shell.
std::string quoted(const std::string& word) {
  const std::string plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {.status = 127, .errors = "no pipe"};
  auto words = arguments;
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
  pid_t child = -1;
  const int failed = posix_spawnp(&child, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]);
  ProgramResult result{.status = 127, .errors = "cannot be started"};
  if (failed == 0) {
    result.errors = read_end(ends[0]);
    result.status = wait_for(child);
  }
  close(ends[0]);
  return result;
}

std::optional<std::string> find_python() {
  std::vector<std::string> candidates{"python3", "/usr/bin/python3"};
  const char* wanted = std::getenv("NAS_PYTHON");
  if (wanted != nullptr && *wanted != '\0') candidates.insert(candidates.begin(), wanted);
  for (const auto& python : candidates) {
    if (run_program({python, "-c", "import numpy, scipy"}).status == 0) return python;
  }
  return std::nullopt;
}

Page page_of_run(const fs::path& folder) {
  return {.script = "report.py", .arguments = {folder.string()}, .file = folder / "report.html"};
}

Page page_of_comparison(const fs::path& folder) {
  return {.script = "compare.py",
          .arguments = {(folder / "comparison.sqlite").string(), "--output", folder.string()},
          .file = folder / "compare.html"};
}

Page page_of_attention(const fs::path& folder) {
  return {
      .script = "attention.py", .arguments = {folder.string()}, .file = folder / "attention.html"};
}

std::optional<fs::path> find_analysis_script(const std::string& name) {
  std::error_code unknown;
  for (const auto& folder : shared_folders()) {
    const auto script = folder / "analysis" / name;
    if (fs::is_regular_file(script, unknown)) return script;
  }
  return std::nullopt;
}

void write_page(const Page& page, const std::optional<std::string>& python,
                const std::optional<fs::path>& script, std::ostream& out, std::ostream& err) {
  if (!script || !python) {
    out << "for a page about it: " << python.value_or("python3") << ' '
        << (script ? quoted(script->string()) : "analysis/" + page.script);
    for (const auto& argument : page.arguments) out << ' ' << quoted(argument);
    out << (python ? "" : "  (needs Python with numpy and scipy)") << '\n';
    return;
  }
  // -B: nothing is left beside the script.
  std::vector<std::string> words{*python, "-B", script->string()};
  words.insert(words.end(), page.arguments.begin(), page.arguments.end());
  const auto result = run_program(words);
  if (result.status == 0) {
    out << "and " << page.file.string() << ", to be opened in a browser\n";
    return;
  }
  const auto why = last_line(result.errors);
  err << "warning: " << page.file.string() << " was not written: "
      << (why.empty() ? "exit code " + std::to_string(result.status) : printable(why)) << '\n';
}

void write_page(const Page& page) {
  write_page(page, find_python(), find_analysis_script(page.script), std::cout, std::cerr);
}

}  // namespace nas
