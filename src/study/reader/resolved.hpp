#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "study/reader/experiment.hpp"

namespace nas {

/// Sections, the space apart, that a search alone reads.
std::vector<std::string> sections_of_search();

/// The configuration as it could be written in a file with nothing left to a default; where
/// mechanisms are listed, without what a search alone needs.
/// @param sections  that the problem reads, see ProblemKind.
nlohmann::json resolved_configuration(const Experiment& experiment,
                                      const std::vector<std::string>& sections);

}  // namespace nas
