#pragma once

#include <optional>
#include <string>
#include <vector>

namespace nas {

/// Takes `--name VALUE` out of the words of a command line.
/// @throws InputError if the value is missing.
std::optional<std::string> take_option(std::vector<std::string>& words, const std::string& name);

}  // namespace nas
