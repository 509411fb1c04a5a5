#include "search/objective_set.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/format.hpp"

namespace nas {

double ChosenObjective::value(const Evaluation& evaluation) const {
  const auto unrecorded = [&] {
    return std::logic_error("nothing that " + name + " is computed from was recorded of " +
                            evaluation.candidate);
  };
  try {
    if (objective.analytic) return evaluation.values.at(name);
    if (objective.measured) return evaluation.measured.at(name).at("value").get<double>();
    return objective.trained(evaluation);
  } catch (const std::out_of_range&) {  // their own texts name a container
    throw unrecorded();
  } catch (const nlohmann::json::exception&) {
    throw unrecorded();
  }
}

double ChosenObjective::value(Objective::Evaluations evaluations) const {
  if (objective.across) return objective.across(evaluations);
  double sum = 0.0;
  double n = 0.0;
  for (const auto* evaluation : evaluations) {
    if (!is_usable(*evaluation)) continue;
    sum += value(*evaluation);
    n += 1.0;
  }
  return sum / n;
}

void ChosenObjective::compute_before_training(const Subject& subject, const nlohmann::json* known,
                                              Evaluation& evaluation) const {
  if (objective.analytic) {
    evaluation.values[name] = objective.analytic(subject);
  } else if (objective.measured) {
    evaluation.measured[name] = known != nullptr ? *known : objective.measured(subject);
  }
}

double ChosenObjective::scaled(double minimised_value) const {
  if (!range) throw std::logic_error("objective " + name + " has no range");
  const double best = minimised(range->best);
  return (minimised_value - best) / (minimised(range->worst) - best);
}

std::string Constraint::text() const {
  return quantity.name + (at_most ? " <= " : " >= ") + shortest(bound);
}

std::string Constraint::violation(const Evaluation& evaluation) const {
  const double value = quantity.value(evaluation);
  if (at_most ? value <= bound : value >= bound) return {};
  return quantity.name + " = " + shortest(value) + ", must be " + (at_most ? "<= " : ">= ") +
         shortest(bound);
}

namespace {

void reject_violations(const std::vector<Constraint>& constraints, bool trained,
                       Evaluation& evaluation) {
  for (const auto& constraint : constraints) {
    if (constraint.quantity.needs_training() != trained) continue;
    if (auto why = constraint.violation(evaluation); !why.empty()) {
      evaluation.status = Status::rejected;
      evaluation.reason = std::move(why);
      return;
    }
  }
}

}  // namespace

void ObjectiveSet::screen(const Subject& subject, const nlohmann::json& known,
                          Evaluation& evaluation) const {
  const auto compute = [&](const ChosenObjective& quantity) {
    if (evaluation.values.contains(quantity.name) || evaluation.measured.contains(quantity.name)) {
      return;
    }
    const auto found = known.find(quantity.name);
    quantity.compute_before_training(subject, found == known.end() ? nullptr : &*found, evaluation);
  };
  // By formula first: what that rejects need not be measured.
  for (const bool measured : {false, true}) {
    const auto now = [measured](const ChosenObjective& quantity) {
      return static_cast<bool>(quantity.objective.measured) == measured;
    };
    for (const auto& constraint : constraints) {
      if (!now(constraint.quantity)) continue;
      compute(constraint.quantity);
      reject_violations({constraint}, false, evaluation);
      if (evaluation.status == Status::rejected) return;
    }
    for (const auto& objective : objectives) {
      if (now(objective)) compute(objective);
    }
  }
}

void ObjectiveSet::check_trained(Evaluation& evaluation) const {
  if (is_usable(evaluation)) reject_violations(constraints, true, evaluation);
  for (const auto& objective : objectives) {
    const bool recorded =
        objective.name == objective.key && evaluation.values.contains(objective.name);
    if (!objective.objective.trained || recorded || !is_usable(evaluation)) continue;
    evaluation.measured.emplace(objective.name,
                                nlohmann::json{{"value", objective.value(evaluation)}});
  }
}

std::vector<double> ObjectiveSet::failure() const {
  std::vector<double> values;
  for (const auto& objective : objectives) {
    const double best = objective.minimised(objective.range->best);
    const double worst = objective.minimised(objective.range->worst);
    values.push_back(best + kFailure * (worst - best));
  }
  return values;
}

std::vector<double> ObjectiveSet::fitness(Objective::Evaluations evaluations) const {
  auto values = failure();
  if (std::none_of(evaluations.begin(), evaluations.end(),
                   [](const auto* evaluation) { return is_usable(*evaluation); })) {
    return values;
  }
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    const double value = objectives[i].minimised(objectives[i].value(evaluations));
    if (std::isfinite(value)) values[i] = value;
  }
  return values;
}

std::vector<double> ObjectiveSet::scaled(const std::vector<double>& fitness) const {
  std::vector<double> values;
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    values.push_back(objectives[i].scaled(fitness[i]));
  }
  return values;
}

const ChosenObjective* ObjectiveSet::needs_lone_trainings() const {
  for (const auto& objective : objectives) {
    if (objective.objective.alone) return &objective;
  }
  for (const auto& constraint : constraints) {
    if (constraint.quantity.objective.alone) return &constraint.quantity;
  }
  return nullptr;
}

nlohmann::json ObjectiveSet::record() const {
  auto json = nlohmann::json::array();
  for (const auto& objective : objectives) {
    json.push_back({{"name", objective.name},
                    {"key", objective.key},
                    {"unit", objective.objective.unit},
                    {"maximise", objective.maximise},
                    {"best", objective.range->best},
                    {"worst", objective.range->worst}});
  }
  return json;
}

}  // namespace nas
