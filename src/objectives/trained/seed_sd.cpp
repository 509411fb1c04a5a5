#include <cmath>
#include <limits>
#include <vector>

#include "search/objective.hpp"

namespace nas {
namespace {

/// Of ln(perplexity), so that it is a relative spread: 0.01 is one percent of the perplexity. Fewer
/// than two usable replicates have none, which is worse than any.
double standard_deviation(Objective::Evaluations evaluations) {
  std::vector<double> values;
  double sum = 0.0;
  for (const auto* evaluation : evaluations) {
    if (!is_usable(*evaluation)) continue;
    values.push_back(std::log(quality(*evaluation, "perplexity")));
    sum += values.back();
  }
  if (values.size() < 2) return std::numeric_limits<double>::infinity();
  const auto n = static_cast<double>(values.size());
  double squares = 0.0;
  for (const double value : values) squares += (value - sum / n) * (value - sum / n);
  return std::sqrt(squares / (n - 1.0));
}

Objective seed_sd(const Parameters& /*settings*/) {
  return {.unit = "nat",
          .across = standard_deviation,
          .min_replicates = 2,
          .range = [](const nlohmann::json& /*facts*/) {
            return std::optional<Range>({.best = 0.0, .worst = 0.2});
          }};
}

NAS_REGISTER_OBJECTIVE({.key = "seed_sd",
                        .summary = "standard deviation of the validation nll per token between "
                                   "replicates (n - 1 in the denominator)",
                        .settings = {},
                        .file = __FILE__},
                       seed_sd);

}  // namespace
}  // namespace nas
