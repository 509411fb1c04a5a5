#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/parameters.hpp"
#include "core/visibility.hpp"
#include "evaluation/judgement.hpp"
#include "search/objective.hpp"

namespace NAS_PUBLIC nas {

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
  /// Records a measurement under its name, which says of another name than the key what it is of.
  void record_measured(nlohmann::json measurement, Evaluation& evaluation) const;
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
  /// @return why a value of the quantity breaks it: "flops = 5e+06, must be <= 4e+06"; empty if it does not.
  [[nodiscard]] std::string violation(double value) const;
};

/// What an experiment minimises, and under which constraints. All vectors are in the order of the
/// objectives and in minimisation form.
struct ObjectiveSet {
  std::vector<ChosenObjective> objectives;
  std::vector<Constraint> constraints{};

  /// A failure's scaled value of every objective: ten times the range beyond the best.
  static constexpr double kFailure = 10.0;

  /// Everything that needs no training; status `rejected` if that breaks a constraint.
  /// @param known    measured values of the same function by name (an object), where there are any.
  /// @param measure  what takes those that are missing, by name, in place of Objective::measured; may be empty.
  void screen(const Subject& subject, const nlohmann::json& known, Evaluation& evaluation,
              const std::function<nlohmann::json(const std::string&)>& measure = {}) const;
  /// @return which constraint by formula a candidate breaks, and how; empty if none.
  [[nodiscard]] std::string violation_by_formula(const Subject& subject) const;
  /// @return which constraint on what training finds the replicates of a candidate break together,
  /// and how; empty if none, or where too few replicates are there to know.
  [[nodiscard]] std::string violation_by_training(Objective::Evaluations evaluations) const;
  /// Records what training found: what is wanted or constrained and not among the values under its
  /// own name becomes measured[name] = {"value": ...}.
  void record_trained(Evaluation& evaluation) const;

  /// The joint result of a candidate's replicates, at least one. Ranges must be set.
  ///
  /// Values are means over the usable replicates (or what an objective makes of all of them), those of a failure where they are
  /// not finite. A failed replicate fails the candidate, with the worst status among them, unless an objective or a constraint
  /// judges failures (divergence_rate): one that diverges with four of five seeds is not to compete with the fifth. Constraints
  /// on what training finds are tested on the values over all replicates, so that no lucky seed passes alone. A candidate is
  /// stopped_early if any replicate was: its values are then means over training runs that may differ in steps.
  [[nodiscard]] Judgement judge(Objective::Evaluations evaluations) const;
  [[nodiscard]] std::vector<double> failure() const;
  /// @return fitness with every objective scaled by its range.
  [[nodiscard]] std::vector<double> scaled(const std::vector<double>& fitness) const;

  /// Whether an objective or a constraint judges failed replicates (see Objective::judges_failures).
  [[nodiscard]] bool judges_failures() const;

  /// An objective, or what a constraint is on, of a name; nullptr if there is none.
  [[nodiscard]] const ChosenObjective* find(const std::string& name) const;

  /// An objective, or what a constraint is on, that a training run in an array does not have (see
  /// Objective::alone); nullptr if there is none.
  [[nodiscard]] const ChosenObjective* needs_lone_trainings() const;

  /// For the record: name, key, unit, sense and range of each, null where it is not known.
  [[nodiscard]] nlohmann::json record() const;

 private:
  [[nodiscard]] std::vector<double> measured_values(Objective::Evaluations evaluations) const;
};

}  // namespace nas
