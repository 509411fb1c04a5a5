// Standard C and the dynamic loader alone: what is linked here is loaded for every word.

#include "cli/start.hpp"

#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>
#include <unistd.h>

namespace nas {

namespace {

/// Set for the second stage, which takes it away at once.
constexpr const char* kSecondStage = "NAS_SECOND_STAGE";

/// A function of a library, which stays loaded; nullptr where it cannot be had.
template <class Function>
Function* function_of(const char* library, int mode, const char* name) {
  void* const handle = dlopen(library, mode);
  return handle == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle, name));
}

/// Does not return, unless this process cannot begin anew.
void begin_second_stage(char** argv) {
  // By its name: executed as /proc/self/exe it would be listed as "exe".
  std::array<char, PATH_MAX> program{};
  const auto length = readlink("/proc/self/exe", program.data(), program.size() - 1);
  if (length <= 0 || setenv(kSecondStage, "1", /*overwrite=*/1) != 0) return;
  execv(program.data(), argv);
  unsetenv(kSecondStage);
}

}  // namespace

int start(const char* program, int argc, char** argv) {
  if (std::getenv(kSecondStage) == nullptr) {
    auto* const words = function_of<decltype(nas_words)>(NAS_BASE_LIBRARY, RTLD_LAZY, "nas_words");
    const int code = words == nullptr ? kBeyondWords : words(program, argc, argv);
    if (code != kBeyondWords) return code;
    begin_second_stage(argv);
  } else {
    unsetenv(kSecondStage);
  }
  // Global: plug-ins find attnas there, and it finds the BLAS.
  auto* const whole =
      function_of<decltype(nas_program)>(NAS_LIBRARY, RTLD_NOW | RTLD_GLOBAL, "nas_program");
  if (whole != nullptr) return whole(program, argc, argv);
  std::fprintf(stderr, "%s: %s\n", argv[0], dlerror());
  return 127;  // as of a program whose libraries are not found
}

}  // namespace nas
