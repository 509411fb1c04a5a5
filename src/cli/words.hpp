#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nas {

/// Takes `--name VALUE` out of the words of a command line.
/// @throws InputError if the value is missing.
std::optional<std::string> take_option(std::vector<std::string>& words, const std::string& name);

/// The same of an option that may be given several times.
std::vector<std::string> take_options(std::vector<std::string>& words, const std::string& name);

/// "1 record", "2 records".
std::string counted(std::int64_t number, const std::string& what);

}  // namespace nas
