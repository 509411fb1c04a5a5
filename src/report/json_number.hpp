#pragma once

#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

namespace nas {

/// A number of a digest: null where it is not finite, which JSON does not know.
inline nlohmann::json json_number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}
/// The same of one that may be missing, which is null, too.
inline nlohmann::json json_number(const std::optional<double>& value) {
  return value ? json_number(*value) : nlohmann::json();
}

}  // namespace nas
