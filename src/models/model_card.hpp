#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/summary.hpp"

namespace nas {

/// What model.py lacks of a model: options that plug-ins of this process compute, each as
/// "normalization softplus_norm".
/// @param config  see model_config().
std::vector<std::string> options_of_plugins(const nlohmann::ordered_json& config);

/// The README.md of an exported model: what it is made of, its scores with n beside the baseline's,
/// the verdict of a re-test, data and training, and how to use it. Its numbers are the record's.
///
/// @param evaluation  the training run that the weights are of.
/// @param config      see model_config().
/// @param origin      of the weights, see TrainedModel::origin().
std::string model_card(const RunSummary& run, const Evaluation& evaluation,
                       const nlohmann::ordered_json& config, const std::string& origin);

}  // namespace nas
