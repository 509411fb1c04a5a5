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

/// A number of a record by its key; nothing where it has none.
template <class Key>
std::optional<double> number_at(const nlohmann::json& record, const Key& key) {
  const auto found = record.find(key);
  if (found == record.end() || !found->is_number()) return std::nullopt;
  return found->template get<double>();
}

}  // namespace nas
