#pragma once

#include <vector>

#include "core/parameters.hpp"

namespace nas {

/// The settings of an experiment's sections that belong to no plug-in: model, training and
/// evaluation of one candidate.
std::vector<Setting> model_settings();
std::vector<Setting> training_settings();
std::vector<Setting> evaluation_settings();

}  // namespace nas
