#include <algorithm>

#include "search/objective.hpp"

namespace nas {
namespace {

Objective divergence_rate(const Parameters& /*settings*/) {
  return {.unit = "1",
          .across =
              [](Objective::Evaluations evaluations) {
                const auto failed =
                    std::count_if(evaluations.begin(), evaluations.end(),
                                  [](const auto* evaluation) { return !is_usable(*evaluation); });
                return static_cast<double>(failed) / static_cast<double>(evaluations.size());
              },
          .min_replicates = 2,
          .judges_failures = true,
          .range =
              [](const nlohmann::json& /*facts*/) {
                return std::optional<Range>({.best = 0.0, .worst = 1.0});
              }};
}

NAS_REGISTER_OBJECTIVE(
    {.key = "divergence_rate",
     .summary = "share of the replicates that failed: diverged, ran out of memory or broke",
     .settings = {},
     .file = __FILE__},
    divergence_rate);

}  // namespace
}  // namespace nas
