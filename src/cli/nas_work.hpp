#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace nas {

/// What a process ends with that SIGTERM ended.
inline constexpr int kLeft = 143;

/// Where and how nas-work works.
struct Place {
  std::filesystem::path folder;  ///< for checkpoints; empty: none
  bool scratch = false;          ///< nobody else sees that folder, which is made
  std::vector<std::string> overrides;
  std::optional<std::int64_t> number{};  ///< of the process, which decides about its device
};

/// Measures the orders of standard input. @return exit code.
int work(Place place);

}  // namespace nas
