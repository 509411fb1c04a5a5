#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace nas {

/// Why a problem whose facts name another task than next_token does not measure a value; empty where
/// it does.
std::string not_measured(const nlohmann::json& facts, const std::string& value);

}  // namespace nas
