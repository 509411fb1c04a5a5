#include "search/measured_by.hpp"
#include "search/objective.hpp"

namespace nas {
namespace {

/// exp of the mean of batch means, as the published EvoAttention code counts it: a small last batch
/// weighs as much as a full one.
Objective published_perplexity(const Parameters& /*settings*/) {
  return {
      .unit = "1",
      .trained =
          [](const Evaluation& evaluation) { return quality(evaluation, "published_perplexity"); },
      .range = expected_perplexity,
      .limits = {.least = 1.0},
      .unavailable =
          [](const nlohmann::json& facts) { return not_measured(facts, "published_perplexity"); }};
}

NAS_REGISTER_OBJECTIVE(
    {.key = "published_perplexity",
     .summary =
         "validation perplexity as the published code counts it: exp of the mean of batch means",
     .settings = {},
     .file = __FILE__},
    published_perplexity);

}  // namespace
}  // namespace nas
