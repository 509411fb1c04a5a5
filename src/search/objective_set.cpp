#include "search/objective_set.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <utility>

#include "core/format.hpp"
#include "genotype/slots.hpp"

namespace nas {

bool is_recorded_name(const std::string& name) {
  static const std::set<std::string> kRecorded{
      // columns and fields of what is measured
      "alone", "array", "array_failure", "array_width", "asks", "batch", "candidate", "cpu_seconds",
      "curve", "device", "environment", "evaluation", "evaluations", "failed_seconds",
      "failed_tries", "first_ask", "fitness", "genotype", "host", "id", "identity", "knee", "label",
      "made_up", "measured", "mechanism", "model", "n", "number", "objectives", "on_front",
      "peak_bytes", "pid", "reason", "replicate", "replicates", "reused", "reused_from", "seconds",
      "seed", "session", "started", "status", "step", "steps", "stopped_at", "times_asked",
      "train_nll", "trained", "usable", "valid", "values", "worker", "worker_seconds",
      // sums of a split
      "nll", "tokens", "correct", "pad_nll", "pad_tokens", "unknown_nll", "unknown_tokens",
      "batch_mean_nll", "batches",
      // columns of comparisons with the baseline
      "control", "decision", "difference", "differs", "distinguished", "effect_size", "high",
      "learning_rate", "low", "p", "p_holm", "p_shares", "percent", "percent_high", "percent_low",
      "probability", "rate_at_end", "role", "runs", "solved", "solved_high", "solved_low",
      "solved_median", "unit"};
  const auto& genes = slots();
  const auto is_gene = [&name](const Slot& slot) { return slot.name == name; };
  const bool is_place = name.size() > 1 && name.front() == 'x' &&
                        name.find_first_not_of("0123456789", 1) == std::string::npos;
  return kRecorded.contains(name) || name.starts_with("test_") || is_place ||
         std::any_of(genes.begin(), genes.end(), is_gene);
}

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
    record_measured(known != nullptr ? *known : objective.measured(subject), evaluation);
  }
}

void ChosenObjective::record_measured(nlohmann::json measurement, Evaluation& evaluation) const {
  if (name != key) measurement["objective"] = key;
  evaluation.measured[name] = std::move(measurement);
}

double ChosenObjective::scaled(double minimised_value) const {
  if (!range) throw std::logic_error("objective " + name + " has no range");
  const double best = minimised(range->best);
  return (minimised_value - best) / (minimised(range->worst) - best);
}

std::string Constraint::text() const {
  return quantity.name + (at_most ? " <= " : " >= ") + shortest(bound);
}

std::string Constraint::violation(double value) const {
  if (at_most ? value <= bound : value >= bound) return {};
  return quantity.name + " = " + value_text(value) + ", must be " + (at_most ? "<= " : ">= ") +
         shortest(bound);
}

void ObjectiveSet::screen(const Subject& subject, const nlohmann::json& known,
                          Evaluation& evaluation,
                          const std::function<nlohmann::json(const std::string&)>& measure) const {
  const auto compute = [&](const ChosenObjective& quantity) {
    // What a formula gives is computed in any case: the problem records FLOPs at its own context.
    if (!quantity.objective.analytic && (evaluation.values.contains(quantity.name) ||
                                         evaluation.measured.contains(quantity.name))) {
      return;
    }
    const auto found = known.find(quantity.name);
    if (quantity.objective.measured && found == known.end() && measure) {
      quantity.record_measured(measure(quantity.name), evaluation);
      return;
    }
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
      if (constraint.quantity.needs_training()) continue;
      if (auto why = constraint.violation(constraint.quantity.value(evaluation)); !why.empty()) {
        evaluation.status = Status::rejected;
        evaluation.reason = std::move(why);
        return;
      }
    }
    for (const auto& objective : objectives) {
      if (now(objective)) compute(objective);
    }
  }
}

std::string ObjectiveSet::violation_by_formula(const Subject& subject) const {
  for (const auto& constraint : constraints) {
    const auto& formula = constraint.quantity.objective.analytic;
    if (!formula) continue;
    if (auto why = constraint.violation(formula(subject)); !why.empty()) return why;
  }
  return {};
}

std::string ObjectiveSet::violation_by_training(Objective::Evaluations evaluations) const {
  const auto n = static_cast<std::int64_t>(evaluations.size());
  for (const auto& constraint : constraints) {
    const auto& quantity = constraint.quantity;
    if (!quantity.needs_training() || n < quantity.objective.min_replicates) continue;
    const auto why = constraint.violation(quantity.value(evaluations));
    if (!why.empty()) return n > 1 ? why + " (over " + std::to_string(n) + " replicates)" : why;
  }
  return {};
}

void ObjectiveSet::record_trained(Evaluation& evaluation) const {
  if (!is_usable(evaluation)) return;
  const auto record = [&evaluation](const ChosenObjective& quantity) {
    const bool recorded =
        quantity.name == quantity.key && evaluation.values.contains(quantity.name);
    if (!quantity.objective.trained || recorded) return;
    // In place of what was recorded when it was paused, but not of a number that it is itself.
    const auto& value = evaluation.measured[quantity.name];
    if (!value.is_null() && !value.is_object()) return;
    quantity.record_measured({{"value", quantity.value(evaluation)}}, evaluation);
  };
  for (const auto& objective : objectives) record(objective);
  for (const auto& constraint : constraints) record(constraint.quantity);
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

const ChosenObjective* ObjectiveSet::find(const std::string& name) const {
  for (const auto& objective : objectives) {
    if (objective.name == name) return &objective;
  }
  for (const auto& constraint : constraints) {
    if (constraint.quantity.name == name) return &constraint.quantity;
  }
  return nullptr;
}

bool ObjectiveSet::judges_failures() const {
  return std::any_of(objectives.begin(), objectives.end(),
                     [](const auto& one) { return one.objective.judges_failures; }) ||
         std::any_of(constraints.begin(), constraints.end(),
                     [](const auto& one) { return one.quantity.objective.judges_failures; });
}

std::vector<double> ObjectiveSet::measured_values(Objective::Evaluations evaluations) const {
  auto values = failure();
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    const double value = objectives[i].minimised(objectives[i].value(evaluations));
    if (std::isfinite(value)) values[i] = value;
  }
  return values;
}

Judgement ObjectiveSet::judge(Objective::Evaluations evaluations) const {
  Judgement judgement{.fitness = failure()};
  const auto worst = worst_of(evaluations).status;
  const bool any = std::any_of(evaluations.begin(), evaluations.end(),
                               [](const auto* evaluation) { return is_usable(*evaluation); });
  if (any) judgement.measured = measured_values(evaluations);
  if (!any || (!is_usable(worst) && !judges_failures())) {
    judgement.status = worst;
    judgement.reason = failures_text(evaluations);
    return judgement;
  }
  judgement.reason = violation_by_training(evaluations);
  const bool paused = std::any_of(evaluations.begin(), evaluations.end(),
                                  [](const auto* one) { return one->status == Status::paused; });
  if (!paused && !judgement.reason.empty()) {  // what is paused may yet meet a constraint
    judgement.status = Status::rejected;
    return judgement;
  }
  judgement.fitness = judgement.measured;
  judgement.status = any_stopped(evaluations) ? Status::stopped_early
                     : paused                 ? Status::paused
                                              : Status::ok;
  if (judgement.status == Status::stopped_early) judgement.reason = stops_text(evaluations);
  return judgement;
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
                    {"best", objective.range ? nlohmann::json(objective.range->best) : nullptr},
                    {"worst", objective.range ? nlohmann::json(objective.range->worst) : nullptr}});
  }
  return json;
}

}  // namespace nas
