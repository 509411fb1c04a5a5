#pragma once

#include <nlohmann/json.hpp>

namespace nas {

/// JSON Schema (2020-12) of a configuration, also of nas-compare's, made from what sections and
/// plug-ins declare: for editors, which complete and check a file with it. It knows every key, type,
/// range and choice; what several settings must be together only the programs check.
nlohmann::json schema_json();

}  // namespace nas
