#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "core/error.hpp"

namespace nas {

/// Whether some of the words of a command line is one of these.
bool has_word(const std::vector<std::string>& words, const std::vector<std::string>& sought);

/// Takes `--name VALUE`, or `--name=VALUE`, out of the words of a command line.
/// @throws InputError if the value is missing.
std::optional<std::string> take_option(std::vector<std::string>& words, const std::string& name);

/// The same of an option that may be given several times.
std::vector<std::string> take_options(std::vector<std::string>& words, const std::string& name);

/// Adds an override to those of a command line for an option that stands for it.
/// @throws InputError if one of them gives the same.
void add_override(std::vector<std::string>& overrides, const std::string& option,
                  const std::string& setting, const std::string& value);

/// A number that was given under a name. @throws InputError "NAME = TEXT, must be an integer".
template <class Number>
Number parse_number(const std::string& name, std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw InputError(name + " = " + std::string(text) +
                     (std::is_integral_v<Number> ? ", must be an integer" : ", must be a number"));
  }
  return number;
}

}  // namespace nas
