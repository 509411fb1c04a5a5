// Searching without training: a table of finished training runs answers.

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.hpp"
#include "genotype/costs.hpp"
#include "genotype/mechanism_name.hpp"
#include "genotype/slots.hpp"
#include "search/problem.hpp"
#include "store/replicates.hpp"
#include "table/answer.hpp"
#include "table/replay.hpp"

namespace nas {

namespace {

using Texts = std::vector<std::string>;

Semantics semantics_of(const Table& table) {
  if (table.facts().contains("space"))
    throw InputError(
        "problem.table: its candidates are choices, not mechanisms: problem.type must "
        "be tabular_choices");
  return parse_semantics(table.facts().at("semantics").get<std::string>());
}

/// What a table's mechanisms are made of, whose names have six fields: every combination of it is a
/// function of the table or a missing one.
SearchSpace space_of(const Table& table) {
  const auto semantics = semantics_of(table);
  std::vector<std::set<std::string>> chosen(paper_slots().size());
  for (std::int64_t i = 0; i < table.num_mechanisms(); ++i) {
    const auto mechanism = parse_mechanism(table.mechanism(i), semantics);
    for (std::size_t j = 0; j < paper_slots().size(); ++j) {
      chosen[j].insert(text(*paper_slots()[j], mechanism));
    }
  }
  std::vector<Gene> genes;
  for (std::size_t j = 0; j < paper_slots().size(); ++j) {
    const auto& slot = *paper_slots()[j];
    if (slot.is_number()) continue;
    genes.push_back({.name = slot.name});
    // In the paper's order, then what the paper does not know.
    for (const auto& option : options(slot)) {
      const auto key = slot.is_component() ? component_key(semantics, slot.name, option) : option;
      if (chosen[j].erase(key) > 0) genes.back().options.push_back(option);
    }
  }
  return SearchSpace(std::move(genes));
}

/// The model that the table's mechanisms were trained in.
Architecture architecture_of(const nlohmann::json& facts) {
  const auto& model = facts.at("model");
  return {.semantics = parse_semantics(facts.at("semantics").get<std::string>()),
          .layers = model.at("layers"),
          .width = model.at("width"),
          .heads = model.at("heads"),
          .context = model.at("context"),
          .vocabulary = model.at("vocabulary"),
          .feed_forward = model.at("feed_forward"),
          .match_parameters = model.value("match_parameters", false),
          .dropout = model.at("dropout")};
}

class Tabular final : public Problem {
 public:
  explicit Tabular(const ProblemInputs& inputs)
      : objectives_(inputs.objectives),
        seed_(inputs.seed),
        table_(inputs.settings.get<std::string>("table")),
        mode_(parse_replay_mode(inputs.settings.get<std::string>("mode"))),
        step_(inputs.settings.get<std::int64_t>("step")),
        replay_(table_, mode_, seed_),
        semantics_(semantics_of(table_)),
        architecture_(architecture_of(table_.facts())),
        bytes_per_token_(table_.facts().value("bytes_per_token", 0.0)),
        test_bytes_per_token_(table_.facts().value("test_bytes_per_token", 0.0)) {
    const auto& steps = table_.steps();
    if (steps.empty()) throw InputError("problem.table: none of its training runs has a curve");
    if (step_ == 0) step_ = steps.back();
    if (!std::binary_search(steps.begin(), steps.end(), step_)) {
      Texts known{"0"};
      for (const auto step : steps) known.push_back(std::to_string(step));
      throw InputError("problem.step = " + std::to_string(step_) + ", must be one of " +
                       join(known));
    }
    for (std::int64_t i = 0; i < table_.num_mechanisms(); ++i) {
      subjects_.push_back(subject(parse(table_.mechanism(i))).value());
    }
    require_recorded_replicates(inputs.evaluation);
    for (const auto& objective : objectives_->objectives) require_measured(objective);
    for (const auto& constraint : objectives_->constraints) require_measured(constraint.quantity);
  }

  [[nodiscard]] Candidate canonical(const Genotype& genotype) const override {
    return candidate_of(nas::mechanism_of(genotype, semantics_));
  }

  [[nodiscard]] Candidate parse(const std::string& name) const override {
    return candidate_of(parse_mechanism(name, semantics_));
  }

  [[nodiscard]] std::string label(const std::string& candidate) const override {
    return to_string(parse_mechanism(candidate, semantics_));
  }

  [[nodiscard]] nlohmann::json identity() const override {
    nlohmann::json identity = {{"problem", "tabular"},
                               {"table", table_.sha256()},
                               {"mode", to_string(mode_)},
                               {"step", step_},
                               {"search_seed", seed_}};
    for (const auto& constraint : objectives_->constraints) {
      identity["constraints"].push_back(constraint.text());
    }
    return identity;
  }

  /// That of a training run, as if one were made.
  [[nodiscard]] double expected_cost(const Candidate& candidate) const override {
    return forward_flops(model_of(nas::mechanism_of(candidate.genotype, semantics_)));
  }

  [[nodiscard]] bool expensive() const override { return false; }

  [[nodiscard]] std::vector<std::int64_t> rungs() const override {
    const auto& steps = table_.steps();
    return {steps.begin(), std::upper_bound(steps.begin(), steps.end(), step_)};
  }

  void screen(const Task& task, Evaluation& evaluation) override {
    take_untrained(number_of(task.candidate.name), evaluation);
  }

  void measure(const Task& task, Evaluation& evaluation) override {
    const auto step = task.until > 0 ? task.until : step_;
    auto answer = this->answer(number_of(task.candidate.name), task.replicate, step);
    if (answer.status == Status::ok && step < step_) answer.status = Status::paused;
    // What the test split says is for reports only.
    erase_test_values(answer);
    take_trained(answer, evaluation);
    objectives_->record_trained(evaluation);
  }

  [[nodiscard]] std::optional<Subject> subject(const Candidate& candidate) const override {
    return Subject{.architecture = model_of(nas::mechanism_of(candidate.genotype, semantics_))};
  }

  [[nodiscard]] nlohmann::json facts() const override {
    auto facts = table_.facts();
    for (const auto* of_the_record : {"sources", "schema"}) facts.erase(of_the_record);
    facts["table"] = {{"name", facts.at("name")},
                      {"sha256", table_.sha256()},
                      {"mechanisms", table_.num_mechanisms()},
                      {"replicates", table_.num_replicates()},
                      {"mode", to_string(mode_)},
                      {"step", step_}};
    facts.erase("name");
    // A table made before this was a fact has it in its scores.
    if (!facts.contains("valid_unknown_targets")) {
      if (const auto scores = any_scores()) {
        facts["valid_unknown_targets"] = scores->unknown_tokens;
        facts["valid_targets"] = scores->tokens;
      }
    }
    return facts;
  }

  [[nodiscard]] int num_workers() const override { return 1; }
  double calibrate_seconds(const Candidate& /*candidate*/) override { return 0.0; }

  /// Means over all replicates at the end of training, those of a failure where the means break a
  /// constraint. On the test split, where the table has what a quantity needs of it for every
  /// training run, else on the validation split.
  [[nodiscard]] GroundTruth truth() const override {
    std::vector<WholeTrainings> mechanisms;
    for (std::int64_t i = 0; i < table_.num_mechanisms(); ++i) {
      mechanisms.push_back(whole_trainings(i));
    }
    GroundTruth truth;
    const auto find_split = [&](const ChosenObjective& quantity) {
      const bool scored = std::any_of(
          mechanisms.begin(), mechanisms.end(),
          [&quantity](const auto& trainings) { return lacks(quantity, trainings.unscored); });
      if (!scored) return;
      const bool untested = std::any_of(
          mechanisms.begin(), mechanisms.end(),
          [&quantity](const auto& trainings) { return lacks(quantity, trainings.test); });
      truth.splits[quantity.name] = untested ? "validation" : "test";
    };
    for (const auto& objective : objectives_->objectives) find_split(objective);
    for (const auto& constraint : objectives_->constraints) find_split(constraint.quantity);

    for (std::int64_t i = 0; i < table_.num_mechanisms(); ++i) {
      const auto& trainings = mechanisms[static_cast<std::size_t>(i)];
      const auto deciding = [&](const ChosenObjective& quantity) {
        const auto split = truth.splits.find(quantity.name);
        return pointers(split != truth.splits.end() && split->second == "validation"
                            ? trainings.validation
                            : trainings.test);
      };
      truth.values[table_.mechanism(i)] = true_fitness(deciding);
    }
    return truth;
  }

 private:
  /// A table holds no attention dropout: a mechanism's is taken as 0.
  [[nodiscard]] Candidate candidate_of(const Mechanism& mechanism) const {
    auto function = nas::canonical(mechanism, semantics_);
    function.set("attention_dropout", 0.0);
    Candidate candidate{.name = to_string(function), .genotype = genotype_of(function)};
    try {
      (void)model_of(function);
    } catch (const InputError& error) {
      candidate.refusal = error.what();
    }
    return candidate;
  }

  /// @throws InputError if the table's models match in parameters, and this one cannot.
  [[nodiscard]] Architecture model_of(const Mechanism& mechanism) const {
    auto architecture = architecture_;
    architecture.stack = {mechanism};
    return fitted(std::move(architecture));
  }

  /// The training runs of a mechanism, by the split of their scores.
  struct WholeTrainings {
    std::vector<Evaluation> validation{};
    std::vector<Evaluation> test{};
    std::vector<Evaluation> unscored{};  ///< on no split
  };

  [[nodiscard]] WholeTrainings whole_trainings(std::int64_t mechanism) const {
    WholeTrainings trainings;
    for (const auto& recorded : recorded_replicates(table_, mechanism)) {
      Evaluation evaluation;
      evaluation.candidate = recorded.candidate;
      evaluation.replicate = recorded.replicate;
      evaluation.status = Status::ok;
      take_untrained(mechanism, evaluation);
      if (evaluation.status == Status::ok) take_trained(recorded, evaluation);
      trainings.validation.push_back(evaluation);
      trainings.test.push_back(scored_on_test(evaluation, test_bytes_per_token_));
      erase_test_values(evaluation);
      trainings.unscored.push_back(scored_on_test(std::move(evaluation), 0.0));
    }
    return trainings;
  }

  /// Whether a quantity has no value for want of scores that a usable training should have.
  static bool lacks(const ChosenObjective& quantity, const std::vector<Evaluation>& evaluations) {
    if (!quantity.needs_training()) return false;
    if (std::none_of(evaluations.begin(), evaluations.end(),
                     [](const Evaluation& evaluation) { return is_usable(evaluation); })) {
      return false;
    }
    return std::isnan(quantity.value(pointers(evaluations)));
  }

  /// Fitness over the evaluations that decide about each objective and each constraint; that of a
  /// failure where one of them failed, as in a search.
  template <class Deciding>
  [[nodiscard]] std::vector<double> true_fitness(const Deciding& deciding) const {
    for (const auto& constraint : objectives_->constraints) {
      if (breaks(constraint, deciding(constraint.quantity))) return objectives_->failure();
    }
    auto fitness = objectives_->failure();
    for (std::size_t i = 0; i < fitness.size(); ++i) {
      const auto& objective = objectives_->objectives[i];
      const auto evaluations = deciding(objective);
      if (!is_usable(worst_of(evaluations)) && !objectives_->judges_failures()) {
        return objectives_->failure();
      }
      if (std::none_of(evaluations.begin(), evaluations.end(),
                       [](const auto* evaluation) { return is_usable(*evaluation); })) {
        return objectives_->failure();
      }
      const double value = objective.minimised(objective.value(evaluations));
      if (std::isfinite(value)) fitness[i] = value;
    }
    return fitness;
  }

  /// Whether the mean over the usable evaluations breaks a constraint; what was measured before
  /// training was screened.
  static bool breaks(const Constraint& constraint, Objective::Evaluations evaluations) {
    if (!constraint.quantity.needs_training()) return false;
    const double value = constraint.quantity.value(evaluations);
    return constraint.at_most ? value > constraint.bound : value < constraint.bound;
  }

  static void erase_test_values(Evaluation& evaluation) {
    std::erase_if(evaluation.values,
                  [](const auto& item) { return item.first.starts_with("test_"); });
  }

  /// The scores at the end of some finished training run.
  [[nodiscard]] std::optional<Scores> any_scores() const {
    for (std::int64_t i = 0; i < table_.num_mechanisms(); ++i) {
      for (const auto& recorded : recorded_replicates(table_, i)) {
        if (is_usable(recorded)) return recorded.curve.back().valid;
      }
    }
    return std::nullopt;
  }

  /// A replicate that came twice would count as two.
  void require_recorded_replicates(const Parameters& evaluation) const {
    const auto replicates = evaluation.get<std::int64_t>("replicates");
    const auto racing = evaluation.get<std::int64_t>("racing_replicates");
    const auto recorded = mode_ == ReplayMode::mean ? 1 : table_.num_replicates();
    const auto refuse = [&](const char* setting, std::int64_t value, const std::string& why) {
      throw InputError(std::string("evaluation.") + setting + " = " + std::to_string(value) + why);
    };
    const auto most = ", must be at most " + std::to_string(recorded) + ": the table has no more" +
                      (mode_ == ReplayMode::mean ? " under problem.mode = mean" : "");
    if (replicates > recorded) refuse("replicates", replicates, most);
    if (racing > recorded) refuse("racing_replicates", racing, most);
    if (racing > 0 && mode_ != ReplayMode::paired) {
      refuse("racing_replicates", racing,
             ", must be 0 unless problem.mode = paired: races compare equal seeds");
    }
  }

  [[nodiscard]] std::int64_t number_of(const std::string& candidate) const {
    if (const auto number = table_.find(candidate)) return *number;
    throw InputError("the table has no " + candidate);
  }

  /// Refuses an objective that would have to be measured, or was measured in another way.
  void require_measured(const ChosenObjective& chosen) const {
    if (!chosen.objective.measured) return;
    std::set<std::string> known;
    for (std::int64_t i = 0; i < table_.num_mechanisms(); ++i) {
      const auto& measured = table_.measured(i);
      for (const auto& item : measured.items()) known.insert(item.key());
      const auto found = measured.find(chosen.name);
      if (found == measured.end()) continue;
      const auto of = found->value("objective", chosen.key);
      if (of == chosen.key) return require_settings(chosen, *found);
      throw InputError("objectives: " + chosen.name + " of this table is " + of + ", must not be " +
                       chosen.key);
    }
    throw InputError("objectives: " + chosen.name + " was not measured for this table, measured: " +
                     (known.empty() ? "nothing" : join({known.begin(), known.end()})));
  }

  /// Refuses settings of an objective that are not those of a measurement, as far as it says.
  void require_settings(const ChosenObjective& chosen, const nlohmann::json& measurement) const {
    const nlohmann::json settings = chosen.settings;
    for (const auto& [name, value] : settings.items()) {
      const auto found = measurement.find(name);
      const bool whole_context = name == "context" && value == 0 && found != measurement.end() &&
                                 *found == architecture_.context;
      if (found == measurement.end() || *found == value || whole_context) continue;
      throw InputError("objectives." + chosen.name + "." + name + " = " + value.dump() +
                       ", must be " + found->dump() + ", as measured for this table");
    }
  }

  /// The recorded evaluation that answers the n-th question for a mechanism, as it was at a step.
  [[nodiscard]] Evaluation answer(std::int64_t mechanism, std::int64_t n, std::int64_t step) const {
    if (mode_ != ReplayMode::mean) {
      return at_step(table_.evaluation(mechanism, replay_.replicate(mechanism, n)), step);
    }
    auto evaluations = recorded_replicates(table_, mechanism);
    for (auto& evaluation : evaluations) evaluation = at_step(std::move(evaluation), step);
    return mean_evaluation(evaluations, bytes_per_token_);
  }

  [[nodiscard]] Evaluation at_step(Evaluation evaluation, std::int64_t step) const {
    return ended_at(std::move(evaluation), step, bytes_per_token_);
  }

  /// What is known of a mechanism before it is trained.
  void take_untrained(std::int64_t mechanism, Evaluation& evaluation) const {
    const auto& measured = table_.measured(mechanism);
    const auto& name = table_.mechanism(mechanism);
    const auto require = [&](const ChosenObjective& chosen) {
      if (chosen.objective.measured && !measured.contains(chosen.name)) {
        throw InputError("the table has no " + chosen.name + " of " + name);
      }
    };
    for (const auto& objective : objectives_->objectives) require(objective);
    for (const auto& constraint : objectives_->constraints) require(constraint.quantity);
    objectives_->screen(subjects_[static_cast<std::size_t>(mechanism)], measured, evaluation);
  }

  /// What a recorded training run found; what it costs is charged as seconds of training.
  static void take_trained(const Evaluation& recorded, Evaluation& evaluation) {
    evaluation.status = recorded.status;
    evaluation.reason = recorded.reason;
    evaluation.curve = recorded.curve;
    // What was computed before training stays: the run may have asked for it in another way.
    evaluation.values.insert(recorded.values.begin(), recorded.values.end());
    const auto charged = charged_seconds(recorded);
    evaluation.measured["train_seconds"] = charged;
    // By the same clock: what is charged at a rung is a point's.
    if (const auto taken = recorded.measured.value("train_seconds", 0.0); taken > 0.0) {
      for (auto& point : evaluation.curve) point.seconds *= charged / taken;
    }
    if (recorded.measured.contains("peak_bytes")) {
      evaluation.measured["peak_bytes"] = recorded.measured.at("peak_bytes");
    }
  }

  const ObjectiveSet* objectives_;
  std::uint64_t seed_;
  Table table_;
  ReplayMode mode_;
  std::int64_t step_;
  Replay replay_;
  Semantics semantics_;
  Architecture architecture_;
  double bytes_per_token_;
  double test_bytes_per_token_;
  std::vector<Subject> subjects_{};  ///< of the table's mechanisms
};

Table table_of(const Parameters& settings) { return Table(settings.get<std::string>("table")); }

NAS_REGISTER_PROBLEM(
    {.key = "tabular",
     .summary = "attention mechanisms without attention dropout, answered from a table of finished "
                "training runs: nothing is trained, the recorded seconds are charged",
     .settings =
         {{.name = "table",
           .default_value = std::string(),
           .help = "file made by nas-data table pack: beside the configuration, in the "
                   "current folder, or installed",
           .required = true,
           .names_file = true},
          {.name = "mode",
           .default_value = std::string("noisy"),
           .help = "what answers: noisy, a recorded training run, drawn without replacement "
                   "for each mechanism; mean, the mean of an objective's values over all "
                   "runs; paired, the same replicate for all mechanisms",
           .choices = {"noisy", "mean", "paired"}},
          {.name = "step",
           .default_value = std::int64_t{0},
           .help = "training step whose scores answer, one of the steps of the table's curves; "
                   "0 = the last",
           .min = 0}},
     .file = __FILE__},
    [] {
      return ProblemKind{
          .sections = {"baseline"},
          .semantics = [](const Parameters& settings) { return semantics_of(table_of(settings)); },
          .space = [](const Parameters& settings) { return space_of(table_of(settings)); },
          .make = [](const ProblemInputs& inputs) -> std::shared_ptr<Problem> {
            return std::make_shared<Tabular>(inputs);
          }};
    });

}  // namespace

}  // namespace nas
