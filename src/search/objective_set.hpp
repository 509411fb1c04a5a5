#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/parameters.hpp"
#include "search/objective.hpp"

namespace nas {

/// An objective as an experiment uses it.
struct ChosenObjective {
  std::string name;  ///< of its own within the experiment; the key unless `as` says otherwise
  std::string key;
  Parameters settings;
  Objective objective;
  bool maximise = false;
  std::optional<Range> range{};  ///< set before the search begins

  /// Its value in an evaluation that has one, in its own unit and sense.
  [[nodiscard]] double value(const Evaluation& evaluation) const;
  /// Its value over the replicates of a candidate, at least one of them usable.
  [[nodiscard]] double value(Objective::Evaluations evaluations) const;
  /// Fills the value in (see Evaluation::values, measured) if it needs no training.
  /// @param known  what an earlier evaluation of the same function measured, or nullptr.
  void compute_before_training(const Subject& subject, const nlohmann::json* known,
                               Evaluation& evaluation) const;
  [[nodiscard]] bool needs_training() const { return !objective.analytic && !objective.measured; }
  /// In minimisation form: negated where it is maximised.
  [[nodiscard]] double minimised(double value) const { return maximise ? -value : value; }
  /// In minimisation form, 0 at the best and 1 at the worst end of the range.
  [[nodiscard]] double scaled(double minimised_value) const;
};

/// A hard constraint: "flops <= 4e6".
struct Constraint {
  ChosenObjective quantity;
  bool at_most = true;
  double bound = 0.0;

  [[nodiscard]] std::string text() const;  ///< "flops <= 4e+06"
  /// @return why an evaluation breaks it: "flops = 5e+06, must be <= 4e+06"; empty if it does not.
  [[nodiscard]] std::string violation(const Evaluation& evaluation) const;
};

/// What an experiment minimises, and under which constraints. All vectors are in the order of the
/// objectives and in minimisation form.
struct ObjectiveSet {
  std::vector<ChosenObjective> objectives;
  std::vector<Constraint> constraints{};

  /// A failure's scaled value of every objective: as far beyond the worst as ten times the range.
  static constexpr double kFailure = 10.0;

  /// Everything that needs no training; status `rejected` if that breaks a constraint.
  /// @param known  measured values of the same function by name (an object), where there are any.
  void screen(const Subject& subject, const nlohmann::json& known, Evaluation& evaluation) const;
  /// The constraints on what training found; status `rejected` if one is broken. An objective that
  /// is not recorded under its own name is then measured[name] = {"value": ...}.
  void check_trained(Evaluation& evaluation) const;

  /// Values over the replicates of a candidate; those of a failure where they are not finite, or
  /// all replicates failed. Ranges must be set.
  [[nodiscard]] std::vector<double> fitness(Objective::Evaluations evaluations) const;
  [[nodiscard]] std::vector<double> failure() const;
  /// @return fitness with every objective scaled by its range.
  [[nodiscard]] std::vector<double> scaled(const std::vector<double>& fitness) const;

  /// An objective, or what a constraint is on, that a training in an array does not have (see
  /// Objective::alone); nullptr if there is none.
  [[nodiscard]] const ChosenObjective* needs_lone_trainings() const;

  /// For the record: name, key, unit, sense and range of each.
  [[nodiscard]] nlohmann::json record() const;
};

}  // namespace nas
