#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace nas {

/// How the differences of two values are looked for; nullptr is a value that is not there.
struct FieldRules {
  bool elements = false;  ///< lists element by element, else as a whole
  /// Whether what differs at a path counts for nothing; empty: nothing does.
  std::function<bool(const std::string& path, const nlohmann::json* before,
                     const nlohmann::json* now)>
      ignores{};
};

/// Where two values differ, each "path: before -> now" ("absent" where one has no such value). Maps
/// are compared key by key; the path of a key is that of its map, a dot and the key.
/// @param path  of the values; empty: theirs are the paths of keys.
std::vector<std::string> differences(const nlohmann::json& before, const nlohmann::json& now,
                                     const FieldRules& rules = {}, const std::string& path = "");

}  // namespace nas
