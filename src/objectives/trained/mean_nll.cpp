#include <cmath>

#include "search/objective.hpp"

namespace nas {
namespace {

/// nll / targets at the end of the curve, which is the logarithm of the perplexity.
double of_evaluation(const Evaluation& evaluation) {
  const auto recorded = evaluation.values.find("mean_nll");
  if (recorded != evaluation.values.end()) return recorded->second;
  return std::log(quality(evaluation, "perplexity"));
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
