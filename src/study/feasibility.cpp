#include "study/feasibility.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "core/format.hpp"
#include "report/text.hpp"
#include "statistics/statistics.hpp"
#include "study/ranges.hpp"

namespace nas {

namespace {

std::vector<const Constraint*> decided_by_formula(const ObjectiveSet& objectives) {
  std::vector<const Constraint*> decided;
  for (const auto& constraint : objectives.constraints) {
    if (constraint.quantity.objective.analytic) decided.push_back(&constraint);
  }
  return decided;
}

std::string percent(double share) { return number_text(100.0 * share) + " %"; }

std::string texts(const std::vector<Feasibility::Part>& parts) {
  std::vector<std::string> all;
  for (const auto& part : parts) all.push_back(part.text);
  return join(all, " and ");
}

}  // namespace

std::string Feasibility::text() const {
  const auto counts = std::to_string(passing) + " of " + std::to_string(combinations);
  if (whole) return counts + " combinations satisfy " + texts(parts);
  const auto [low, high] = share_interval(passing, combinations);
  return counts + " random combinations satisfy " + texts(parts) + ": " + percent(low) + " to " +
         percent(high) + " of the space";
}

void Feasibility::require_any() const {
  if (!whole || passing > 0) return;
  const auto none = "constraints: none of the " + std::to_string(combinations) +
                    " combinations of the space satisfies " + texts(parts);
  std::vector<std::string> excluding;
  for (const auto& part : parts) {
    if (part.passing > 0) continue;
    excluding.push_back(part.text + " excludes all, the " + (part.at_most ? "least" : "largest") +
                        " value is " + shortest(part.at_most ? part.least : part.most));
  }
  throw InputError(none + (excluding.empty() ? " together" : ": " + join(excluding, "; ")));
}

std::optional<Feasibility> feasibility(const ObjectiveSet& objectives, const SearchSpace& space,
                                       const Problem& problem) {
  const auto constraints = decided_by_formula(objectives);
  if (constraints.empty()) return std::nullopt;
  Feasibility found;
  for (const auto* constraint : constraints) {
    found.parts.push_back({.text = constraint->text(),
                           .at_most = constraint->at_most,
                           .least = std::numeric_limits<double>::infinity(),
                           .most = -std::numeric_limits<double>::infinity()});
  }
  const auto genotypes = shown_combinations(space);
  found.whole = static_cast<std::int64_t>(genotypes.size()) == space.num_combinations();
  for (const auto& genotype : genotypes) {
    const auto subject = problem.subject(problem.canonical(genotype));
    if (!subject) return std::nullopt;
    bool all = true;
    for (std::size_t i = 0; i < constraints.size(); ++i) {
      const double value = constraints[i]->quantity.objective.analytic(*subject);
      const bool passes = constraints[i]->violation(value).empty();
      auto& part = found.parts[i];
      part.passing += passes ? 1 : 0;
      part.least = std::min(part.least, value);
      part.most = std::max(part.most, value);
      all &= passes;
    }
    ++found.combinations;
    found.passing += all ? 1 : 0;
  }
  return found;
}

std::string baseline_warning(const ObjectiveSet& objectives, const std::string& baseline,
                             const Problem& problem) {
  if (baseline.empty()) return {};
  const auto candidate = problem.parse(baseline);
  const auto subject = problem.subject(candidate);
  if (!subject) return {};
  const auto why = objectives.violation_by_formula(*subject);
  if (why.empty()) return {};
  return "the baseline " + problem.label(candidate.name) + " breaks a constraint, " + why +
         ": it will not be trained, and nothing is compared with it";
}

}  // namespace nas
