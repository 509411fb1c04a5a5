#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/parameters.hpp"

/// Settings in a line: positive(number("learning_rate", 3e-4, 0.0, "peak learning rate")).
namespace nas::setting {

inline Setting any(std::string name, Value value, std::string help) {
  return {.name = std::move(name), .default_value = std::move(value), .help = std::move(help)};
}

inline Setting at_least(double min, Setting setting) {
  setting.min = min;
  return setting;
}

inline Setting at_most(double max, Setting setting) {
  setting.max = max;
  return setting;
}

inline Setting below(double max, Setting setting) {
  setting.max_exclusive = true;
  return at_most(max, std::move(setting));
}

/// Above its least value.
inline Setting positive(Setting setting) {
  setting.min_exclusive = true;
  return setting;
}

inline Setting integer(std::string name, std::int64_t value, double min, std::string help) {
  return at_least(min, any(std::move(name), value, std::move(help)));
}

inline Setting number(std::string name, double value, double min, std::string help) {
  return at_least(min, any(std::move(name), value, std::move(help)));
}

/// In [min, max].
inline Setting integer(std::string name, std::int64_t value, double min, double max,
                       std::string help) {
  return at_most(max, integer(std::move(name), value, min, std::move(help)));
}

inline Setting number(std::string name, double value, double min, double max, std::string help) {
  return at_most(max, number(std::move(name), value, min, std::move(help)));
}

inline Setting text(std::string name, std::string value, std::string help) {
  return any(std::move(name), std::move(value), std::move(help));
}

inline Setting choice(std::string name, std::string value, std::vector<std::string> choices,
                      std::string help) {
  auto setting = text(std::move(name), std::move(value), std::move(help));
  setting.choices = std::move(choices);
  return setting;
}

}  // namespace nas::setting
