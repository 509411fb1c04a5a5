#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "report/summary.hpp"

namespace nas {

/// The README.md of an exported model: what it is made of, its scores with n beside the baseline's,
/// the verdict of a re-test, data and training, and how to use it. Its numbers are the record's.
///
/// @param evaluation  the training run that the weights are of.
/// @param config      see model_config().
/// @param origin      of the weights, see TrainedModel::origin().
std::string model_card(const RunSummary& run, const Evaluation& evaluation,
                       const nlohmann::ordered_json& config, const std::string& origin);

}  // namespace nas
