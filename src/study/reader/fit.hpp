#pragma once

#include <vector>

#include "search/algorithm.hpp"
#include "study/reader/experiment.hpp"

namespace nas {

/// Fits an experiment's algorithm to its space and its objectives: fills search_facts, population,
/// decomposition, and the settings that were left to be fitted.
/// @return what the algorithm cannot do, and settings that do not fit; "name" is the algorithm.
std::vector<Misfit> fit_algorithm(Experiment& experiment);

}  // namespace nas
