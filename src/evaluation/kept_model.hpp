#pragma once

#include <filesystem>
#include <string>

#include "store/evaluation.hpp"

namespace nas {

/// The SHA-256 that stands beside weights that a run has kept (models/ID.pt), in models/ID.json.
/// @param weights     of which the file beside differs by its extension.
/// @param evaluation  the training run that they are said to be of.
/// @return 64 hexadecimal digits; empty where they have no description, which is written after them.
/// @throws InputError naming the file beside, where it cannot be read, describes another training
/// run, or other values than are recorded of this one.
std::string kept_digest(const std::filesystem::path& weights, const Evaluation& evaluation);

}  // namespace nas
