#include "search/measured_by.hpp"
#include "search/objective.hpp"

namespace nas {
namespace {

/// exp(nll / tokens) at the end of the curve: every validation token weighs the same.
Objective perplexity(const Parameters& /*settings*/) {
  return {
      .unit = "1",
      .trained = [](const Evaluation& evaluation) { return quality(evaluation, "perplexity"); },
      .range = expected_perplexity,
      .limits = {.least = 1.0},
      .unavailable = [](const nlohmann::json& facts) { return not_measured(facts, "perplexity"); }};
}

NAS_REGISTER_OBJECTIVE({.key = "perplexity",
                        .summary = "validation perplexity, token-weighted: exp(nll / tokens)",
                        .settings = {},
                        .file = __FILE__},
                       perplexity);

}  // namespace
}  // namespace nas
