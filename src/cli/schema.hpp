#pragma once

#include <nlohmann/json.hpp>

namespace nas {

/// JSON Schema (draft 7) of a configuration file, made from what sections and plug-ins declare: for
/// editors, which complete and check a file with it. It knows every key, type, range and choice;
/// what several settings must be together only nas-run checks.
nlohmann::json schema_json();

}  // namespace nas
