#include <cmath>

#include "search/objective.hpp"

namespace nas {
namespace {

/// What the task has recorded; else nll / targets at the end of the curve, which is the logarithm of the
/// perplexity.
double of_evaluation(const Evaluation& evaluation) {
  if (evaluation.values.contains("mean_nll") || evaluation.curve.empty()) {
    return quality(evaluation, "mean_nll");
  }
  const auto& valid = evaluation.curve.back().valid;
  return valid.nll / static_cast<double>(valid.tokens);
}

std::optional<Range> expected(const nlohmann::json& facts) {
  if (const auto chance = facts.find("chance"); chance != facts.end()) {
    if (const double nll = chance->at("nll"); nll > 0.0) return Range{.best = 0.0, .worst = nll};
  }
  const auto perplexity = expected_perplexity(facts);
  if (!perplexity) return std::nullopt;
  return Range{.best = 0.0, .worst = std::log(perplexity->worst)};
}

Objective mean_nll(const Parameters& /*settings*/) {
  return {.unit = "nat", .trained = of_evaluation, .range = expected, .limits = {.least = 0.0}};
}

NAS_REGISTER_OBJECTIVE({.key = "mean_nll",
                        .summary = "validation nll per scored target, nats: the logarithm of the "
                                   "perplexity",
                        .settings = {},
                        .file = __FILE__},
                       mean_nll);

}  // namespace
}  // namespace nas
