#include "search/measured_by.hpp"
#include "search/objective.hpp"

namespace nas {
namespace {

Objective accuracy(const Parameters& /*settings*/) {
  return {
      .unit = "1",
      .maximise = true,
      .trained = [](const Evaluation& evaluation) { return quality(evaluation, "accuracy"); },
      .range =
          [](const nlohmann::json& /*facts*/) {
            return std::optional<Range>({.best = 1.0, .worst = 0.0});
          },
      .limits = {.least = 0.0, .most = 1.0},
      .unavailable = [](const nlohmann::json& facts) { return not_measured(facts, "accuracy"); }};
}

NAS_REGISTER_OBJECTIVE(
    {.key = "accuracy",
     .summary = "share of the validation targets that the model ranks first; maximised",
     .settings = {},
     .file = __FILE__},
    accuracy);

}  // namespace
}  // namespace nas
