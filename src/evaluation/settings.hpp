#pragma once

#include <vector>

#include "core/parameters.hpp"

namespace nas {

/// The settings of an experiment's sections that belong to no plug-in: model, training and
/// evaluation of one candidate, and the budget of all.
std::vector<Setting> model_settings();
std::vector<Setting> training_settings();
std::vector<Setting> evaluation_settings();
/// Where a search ends, whatever its algorithm would do.
std::vector<Setting> budget_settings();
/// Of the section `fidelity`: how far which candidates are trained.
std::vector<Setting> fidelity_settings();
/// Of the section `cluster`: whether and how processes on other machines measure.
std::vector<Setting> cluster_settings();

}  // namespace nas
