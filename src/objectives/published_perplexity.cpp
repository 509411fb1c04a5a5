#include "search/objective.hpp"

namespace nas {
namespace {

/// exp of the mean of batch means, as the published EvoAttention code counts it (science: a small
/// last batch weighs as much as a full one).
Objective published_perplexity() {
  return {.unit = "1",
          .value =
              [](const Evaluation& evaluation) {
                return evaluation.curve.back().valid.published_perplexity();
              },
          .penalty = 1e9};
}

NAS_REGISTER_OBJECTIVE({.key = "published_perplexity",
                        .summary = "validation perplexity as the published code counts it: exp of "
                                   "the mean of batch means",
                        .settings = {},
                        .file = __FILE__},
                       published_perplexity);

}  // namespace
}  // namespace nas
