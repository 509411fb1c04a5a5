#include "study/session/feasibility.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "core/format.hpp"
#include "report/text.hpp"
#include "statistics/statistics.hpp"

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

std::string Feasibility::counted(std::int64_t number, const std::string& what) const {
  const auto counts = std::to_string(number) + " of " + std::to_string(combinations);
  if (whole) return counts + " combinations " + what;
  const auto [low, high] = share_interval(number, combinations);
  return counts + " random combinations " + what + ": " + percent(low) + " to " + percent(high) +
         " of the space";
}

std::string Feasibility::models_text() const {
  return counted(models, "are models") + "; others are rejected, e.g.: " + refusal;
}

std::string Feasibility::text() const { return counted(passing, "satisfy " + texts(parts)); }

void Feasibility::require_any() const {
  if (!whole || passing > 0) return;
  if (models == 0) {
    throw InputError("space: none of its " + std::to_string(combinations) +
                     " combinations is a model, e.g.: " + refusal);
  }
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

std::optional<Feasibility> feasibility(const ObjectiveSet& objectives, const ShownCandidates& shown,
                                       const Problem& problem) {
  const auto constraints = decided_by_formula(objectives);
  Feasibility found;
  for (const auto* constraint : constraints) {
    found.parts.push_back({.text = constraint->text(),
                           .at_most = constraint->at_most,
                           .least = std::numeric_limits<double>::infinity(),
                           .most = -std::numeric_limits<double>::infinity()});
  }
  found.whole = shown.whole;
  for (const auto& candidate : shown.candidates) {
    ++found.combinations;
    if (!candidate.refusal.empty()) {
      if (found.refusal.empty()) found.refusal = candidate.refusal;
      continue;
    }
    ++found.models;
    const auto subject =
        constraints.empty() ? std::optional<Subject>() : problem.subject(candidate);
    if (!constraints.empty() && !subject) return std::nullopt;
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
    found.passing += all ? 1 : 0;
  }
  if (constraints.empty() && found.refusal.empty()) return std::nullopt;
  return found;
}

std::string baseline_warning(const ObjectiveSet& objectives, const std::string& baseline,
                             const Problem& problem) {
  if (baseline.empty()) return {};
  const auto candidate = problem.parse(baseline);
  const auto untrained = ": it will not be trained, and nothing is compared with it";
  if (!candidate.refusal.empty()) {
    return "the baseline " + problem.label(candidate.name) + " is no model, " + candidate.refusal +
           untrained;
  }
  const auto subject = problem.subject(candidate);
  if (!subject) return {};
  const auto why = objectives.violation_by_formula(*subject);
  if (why.empty()) return {};
  return "the baseline " + problem.label(candidate.name) + " breaks a constraint, " + why +
         untrained;
}

}  // namespace nas
