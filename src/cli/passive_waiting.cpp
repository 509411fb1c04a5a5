#include "cli/passive_waiting.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <system_error>

#include <unistd.h>

namespace nas {

namespace {

constexpr const char* kPolicy = "OMP_WAIT_POLICY";

const char* of_process(const char* name) { return std::getenv(name); }

}  // namespace

bool should_wait_passively(std::int64_t threads, const EnvironmentVariable& variable) {
  return threads > 1 && variable(kPolicy) == nullptr && variable("GOMP_SPINCOUNT") == nullptr;
}

void wait_passively(std::int64_t threads, char* const* argv) {
  if (!should_wait_passively(threads, of_process)) return;
  // What is set now is found by the new process, so that it does not start another one.
  std::error_code error;
  if (setenv(kPolicy, "PASSIVE", /*overwrite=*/0) == 0) {
    // By its name: executed as /proc/self/exe it would be listed as "exe".
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    if (!error) execv(program.c_str(), argv);
  }
  if (!error) error = std::error_code(errno, std::generic_category());
  std::cerr << "warning: OpenMP's threads spin while they wait (" << error.message()
            << "), slow on a busy machine: set " << kPolicy << "=PASSIVE\n";
}

}  // namespace nas
