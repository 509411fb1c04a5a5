#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

/// What libFuzzer calls with each input; @return 0. Whatever it throws, or require() finds, is a
/// finding.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace nas::fuzz {

inline std::string_view text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// The parts of a text between NULs.
inline std::vector<std::string> parts(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == '\0') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

inline void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what.c_str());
  std::abort();
}

/// Calls what may refuse its input by an InputError with a message, and by nothing else.
/// @return whether it took it.
template <class Call>
bool taken(Call call) {
  try {
    call();
  } catch (const InputError& error) {
    require(!std::string_view(error.what()).empty(), "a refusal says why");
    return false;
  }
  return true;
}

}  // namespace nas::fuzz
