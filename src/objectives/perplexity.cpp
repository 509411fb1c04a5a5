#include "search/objective.hpp"

namespace nas {
namespace {

/// exp(nll / tokens) at the end of the curve: every validation token weighs the same.
Objective perplexity() {
  return {
      .unit = "1",
      .value =
          [](const Evaluation& evaluation) { return evaluation.curve.back().valid.perplexity(); },
      .penalty = 1e9};
}

NAS_REGISTER_OBJECTIVE({.key = "perplexity",
                        .summary = "validation perplexity, token-weighted: exp(nll / tokens)",
                        .settings = {},
                        .file = __FILE__},
                       perplexity);

}  // namespace
}  // namespace nas
