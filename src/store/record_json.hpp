#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace nas {

/// Reads JSON of a record, or of a file of unknown origin.
/// @throws InputError if it is no JSON, or nested so deeply that what recurses through it would end
/// the process.
nlohmann::json parse_record(std::string_view text);

}  // namespace nas
