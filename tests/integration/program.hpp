#pragma once

#include <chrono>
#include <csignal>
#include <iostream>
#include <thread>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/programs.hpp"
#include "core/seed.hpp"
#include "core/temporary_folder.hpp"
#include "digest_file.hpp"
#include "places.hpp"
#include "prelude.hpp"

namespace nas::testing {

inline std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// How a program is started. Loading LibTorch costs more than most of what is tested, so that a
/// fork of the test, which has loaded it, does what the program does; what the loader or a library
/// reads from the environment at the beginning needs the program itself.
enum class Start { forked, executed };

/// One of the built programs as a child process; its output goes to a file.
class Program {
 public:
  /// @param prepare  done by the child before the program begins; may be empty.
  Program(const std::string& name, Texts arguments, fs::path output,
          const std::function<void()>& prepare = {}, Start start = Start::forked)
      : output_(std::move(output)) {
    arguments.insert(arguments.begin(), program_folder() + "/" + name);
    std::cout.flush();
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    const int file = open(output_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    if (prepare) prepare();
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    if (const auto forked = functions().find(name);
        start == Start::forked && forked != functions().end()) {
      const int code = forked->second(static_cast<int>(arguments.size()), argv.data());
      std::cout.flush();
      std::fflush(nullptr);
      _exit(code);  // what the test has made is its own to remove
    }
    execv(argv[0], argv.data());
    _exit(127);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (pid_ <= 0) return;
    kill(SIGKILL);
    wait();
  }

  void kill(int signal) const { ::kill(pid_, signal); }

  /// @return the exit code; 128 + signal if a signal ended it.
  int wait() {
    int status = 0;
    rusage usage{};
    wait4(pid_, &status, 0, &usage);
    peak_kib_ = usage.ru_maxrss;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  /// Of the memory that it had, once wait() has returned.
  [[nodiscard]] std::int64_t peak_kib() const { return peak_kib_; }

  /// @return whether it ended within the time; the exit code is then in `code`.
  bool wait_for(std::chrono::milliseconds time, int& code) {
    const auto end = std::chrono::steady_clock::now() + time;
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    pid_ = -1;
    code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
  }

 private:
  /// What a fork can do; another program is executed.
  static const std::map<std::string, int (*)(int, char**)>& functions() {
    static const std::map<std::string, int (*)(int, char**)> kFunctions{
        {"nas-compare", nas_compare}, {"nas-export", nas_export}, {"nas-model", nas_model},
        {"nas-run", nas_run},         {"nas-train", nas_train},   {"nas-work", nas_work}};
    return kFunctions;
  }

  fs::path output_;
  pid_t pid_ = -1;
  std::int64_t peak_kib_ = 0;
};

/// Whether the Python that programs take has torch, without which models are not shown.
inline bool python_has_torch() {
  const char* wanted = std::getenv("NAS_PYTHON");
  const std::string python = wanted != nullptr && *wanted != '\0' ? wanted : "/usr/bin/python3";
  return std::system((python + " -c 'import scipy, torch' > /dev/null 2>&1").c_str()) == 0;
}

#define SKIP_WITHOUT_TORCH() \
  if (!python_has_torch()) GTEST_SKIP() << "no Python has torch; NAS_PYTHON may name one"

/// Each test has a folder of its own.
class ProgramTest : public ::testing::Test {
 protected:
  /// Runs a program to its end. @return its exit code; what it printed is in text().
  int run(const std::string& name, const Texts& arguments,
          const std::function<void()>& prepare = {}, Start start = Start::forked) {
    fs::remove(folder_ / "output.txt");
    const auto begin = std::chrono::steady_clock::now();
    const int code = Program(name, arguments, folder_ / "output.txt", prepare, start).wait();
    took_ = std::chrono::steady_clock::now() - begin;
    return code;
  }

  /// Runs a program. @return whether it succeeded, else what it printed.
  ::testing::AssertionResult ran(const std::string& name, const Texts& arguments,
                                 const std::function<void()>& prepare = {},
                                 Start start = Start::forked) {
    const int code = run(name, arguments, prepare, start);
    if (code == 0) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << name << " ended with " << code << ":\n" << text();
  }

  /// Runs a program that must refuse its input, saying why.
  void expect_refusal(const std::string& name, const Texts& arguments, const std::string& why) {
    EXPECT_EQ(run(name, arguments), 2) << text();
    expect_text(why);
  }

  [[nodiscard]] std::string text() const { return read_file(folder_ / "output.txt"); }
  void expect_text(const std::string& part) const {
    EXPECT_NE(text().find(part), std::string::npos) << "no '" << part << "' in:\n" << text();
  }
  static nlohmann::json results_of(const fs::path& run) {
    return test::read_digest(read_file(run / "results.json"));
  }

  /// Kills a program at least `least` times before it ends, each time after a random part of the time that the last run() took:
  /// on any machine neither too early nor too late. A program that ends all the same is begun anew, with half the time.
  /// @param output  the folder that it writes.
  void kill_at_random_moments(const std::string& name, const Texts& arguments,
                              const fs::path& output, int least = 3) {
    RandomEngine random(7);
    auto longest = took_ / least;
    int code = 0;
    for (int kills = 0; kills < 2 * least; ++kills) {
      Program program(name, arguments, folder_ / "killed.txt");
      const auto moment = longest * (20 + random.below(80)) / 100;
      if (program.wait_for(std::chrono::duration_cast<std::chrono::milliseconds>(moment), code)) {
        ASSERT_EQ(code, 0) << read_file(folder_ / "killed.txt");
        if (kills >= least) return;
        ASSERT_GT(longest, std::chrono::milliseconds(20)) << "it ends before it can be killed";
        fs::remove_all(output);
        longest /= 2;
        kills = -1;
        continue;
      }
      program.kill(SIGKILL);
      program.wait();
    }
  }

  /// Kills a program once its output has a word.
  void kill_at(const std::string& word, const std::string& name, const Texts& arguments) {
    const auto output = folder_ / "killed.txt";
    fs::remove(output);
    Program program(name, arguments, output);
    int code = -1;
    while (read_file(output).find(word) == std::string::npos) {
      ASSERT_FALSE(program.wait_for(std::chrono::milliseconds(5), code)) << read_file(output);
    }
    program.kill(SIGKILL);
    program.wait();
  }

  /// A run of configs/smoke.yaml. @return its folder.
  std::string small_run(Texts overrides = {}) {
    const auto folder = (folder_ / "run").string();
    overrides.insert(overrides.begin(), {config("smoke.yaml"), "--output", folder, "--no-report"});
    EXPECT_TRUE(ran("nas-run", overrides));
    return folder;
  }

  std::string canonical_export(const fs::path& run_folder) {
    EXPECT_TRUE(ran("nas-export", {run_folder.string(), "--canonical"}));
    return text();
  }

  static std::string config(const std::string& name) {
    return source_folder() + "/configs/" + name;
  }

  const TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  std::chrono::steady_clock::duration took_{};  ///< The last run().
};

}  // namespace nas::testing
