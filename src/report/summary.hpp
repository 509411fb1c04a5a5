#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/visibility.hpp"
#include "indicators/indicators.hpp"
#include "statistics/statistics.hpp"
#include "store/store.hpp"

namespace NAS_PUBLIC nas {

/// An objective as a run recorded it.
struct ObjectiveRecord {
  std::string name;
  std::string key;
  std::string unit;
  std::string source{};  ///< analytic, measured or trained; empty where the record does not say
  bool maximise = false;
  double best = 0.0;  ///< the fixed range's ends, in the objective's own unit and sense
  double worst = 1.0;

  /// From the minimisation form to the objective's own sense, and back.
  [[nodiscard]] double natural(double fitness) const { return maximise ? -fitness : fitness; }
  [[nodiscard]] double scaled(double fitness) const;  ///< 0 = best, 1 = worst
  /// What a candidate without a usable answer has, in minimisation form.
  [[nodiscard]] double penalty() const;
  /// Name, unit, and "max" where it is maximised: "latency (ms)", "accuracy (max)".
  [[nodiscard]] std::string title() const;
};

/// One candidate as a report shows it.
struct RankedCandidate {
  std::string candidate;        ///< canonical name
  std::string_view label;       ///< for people; lives as long as the summary
  std::vector<double> values;   ///< one per objective, in its own unit and sense
  std::vector<double> fitness;  ///< the same in minimisation form
  /// Of each value, a mean over n training runs: s / sqrt(n). Nothing for n = 1, and where the value is no mean.
  std::vector<std::optional<double>> standard_errors;
  bool on_front = false;    ///< not dominated by another candidate that is ok
  std::int64_t n = 0;       ///< evaluations used: the usable ones
  std::int64_t wanted = 0;  ///< evaluations that it should have: n is less where some failed
  /// Where a replicate was stopped early, the first step at which one was; the values are then
  /// means over training runs that may differ in steps.
  std::optional<std::int64_t> stopped_at;
  std::int64_t first_ask = -1;  ///< ask at which it first came; -1: outside the search
  std::int64_t times_asked = 0;
  std::vector<const Evaluation*> evaluations;  ///< of RunSummary::evaluations

  /// The first usable one, or nullptr.
  [[nodiscard]] const Evaluation* usable_evaluation() const;
  /// Over the usable ones of what each has of a value; nothing where none has it.
  using ValueOf = std::function<std::optional<double>(const Evaluation&)>;
  [[nodiscard]] std::optional<Estimate> mean(const ValueOf& value_of) const;
};

/// An ask with what answered it.
struct AnsweredAsk : Ask {
  std::string_view candidate{};    ///< canonical name; lives as long as the summary
  Status status = Status::failed;  ///< see Judgement: the record says by its fitness, a penalty,
                                   ///< that the candidate failed or broke a constraint
  std::string reason{};            ///< why that is not ok; empty if it is
  /// What the search believed of the candidate from then on, of what was trained to its end; empty
  /// where it believed nothing, see Belief.
  Point believed{};
  std::int64_t trainings = 0;  ///< that the search had begun by then, for this ask included
  double seconds = 0.0;        ///< of training, likewise
};

/// A control that was trained on the baseline's seeds, see study/stages/controls.hpp.
struct ControlSummary {
  std::string name;
  RankedCandidate measured;
};

/// A candidate that broke a constraint.
struct RejectedCandidate {
  std::string candidate;
  std::string label;
  std::string reason;
  bool trained = false;  ///< whether what its training runs found broke it
  std::int64_t first_ask = 0;
};

/// A batch of asks: a generation, for generational algorithms. Values are those of the first objective, in its own sense.
struct BatchSummary {
  std::int64_t batch = 0;
  std::int64_t asked = 0;
  std::int64_t failures = 0;
  std::int64_t rejected = 0;  ///< asks for candidates that break a constraint
  double best = 0.0;          ///< of those of this batch that are ok; infinite if there are none
  double mean = 0.0;          ///< over its usable asks
  double best_so_far = 0.0;

  [[nodiscard]] std::int64_t usable() const { return asked - failures - rejected; }
};

/// What a search by rungs has done at one.
struct RungSummary {
  std::int64_t step = 0;
  std::int64_t reached = 0;  ///< candidates that were paused there
  std::int64_t went_on = 0;  ///< of these
};

/// What evaluations cost, and what became of them.
struct Effort {
  std::int64_t evaluations = 0;  ///< without those rejected before training
  std::int64_t rejected = 0;     ///< by constraints, before training
  std::int64_t stopped_early = 0;
  std::vector<const Evaluation*> failures;  ///< of RunSummary::evaluations
  double train_seconds = 0.0;

  void add(const Evaluation& evaluation);
};

/// A run, digested: what tables and files are made from. Needs nothing but the store.
/// Move-only, since ranking points into evaluations.
struct RunSummary {
  explicit RunSummary(const Store& store);
  RunSummary(RunSummary&&) = default;
  RunSummary& operator=(RunSummary&&) = default;
  RunSummary(const RunSummary&) = delete;
  RunSummary& operator=(const RunSummary&) = delete;

  nlohmann::json config, facts;
  nlohmann::json schema;                    ///< see record_schema(); null where none is recorded
  std::vector<nlohmann::json> sessions;     ///< see Store::sessions
  std::vector<ObjectiveRecord> objectives;  ///< at least one
  std::string ended_by;                     ///< what ended the search; empty where unknown
  nlohmann::json labels;                    ///< names for people, by canonical name
  /// Facts that are passed on as they are recorded: elapsed_seconds, planned_asks, planned_trainings, reference_point, truth,
  /// truth_splits, count_models; null where unknown, but the reference point, which was always the same.
  nlohmann::json further;
  Points last_population;  ///< scaled objectives; empty where unknown
  nlohmann::json retest;   ///< see to_record(RetestOutcome); null: there was none
  /// What a process works on at present, the store's facts "asking" and "at_work", for readers that
  /// know whether one does; else null.
  nlohmann::json asking, at_work;
  std::vector<AnsweredAsk> asks;  ///< read before the evaluations that answer them
  /// Training runs that are paused at a rung, so far; those that another stage has trained on as they were before.
  std::vector<Evaluation> paused;
  /// While somebody writes, there may be more by then. Their identities are shortened, see whole_identity().
  std::vector<Evaluation> evaluations;
  std::vector<Indicator> indicators;
  std::map<std::string_view, const Evaluation*> by_id;  ///< those that are paused, too
  /// Asks, out of `asks`, whose training run was paused at a rung, with their fitness there.
  std::vector<AnsweredAsk> rung_asks;
  std::vector<RungSummary> rungs;  ///< ascending
  /// Usable candidates that the search asked for. One objective: the best first. Several: the
  /// front, then the others, both by the first objective. Those that were stopped early come last,
  /// and are neither best nor on the front as long as another one is ok.
  ///
  /// A candidate's fitness is what the search believes of it, see Belief.
  std::vector<RankedCandidate> ranking;
  std::vector<std::size_t> front;           ///< the non-dominated ones in ranking
  std::optional<std::size_t> knee;          ///< in ranking; where a front has three or more
  std::optional<RankedCandidate> baseline;  ///< if it has a usable evaluation
  /// Those that have a usable evaluation; those of a re-test are in `retest`.
  std::vector<ControlSummary> controls;
  std::vector<RejectedCandidate> rejected;  ///< in order of their first ask
  std::vector<BatchSummary> batches;
  Effort search;            ///< evaluations that asks caused
  Effort outside;           ///< the others: of the baseline, controls and the re-test
  std::int64_t reused = 0;  ///< asks answered by an earlier evaluation

  /// Asks of both kinds.
  [[nodiscard]] std::size_t num_asked() const { return asks.size() + rung_asks.size(); }
  [[nodiscard]] std::string label(const std::string& candidate) const;
  /// Whether a table answered, each evaluation being the mean over its training runs of a mechanism.
  [[nodiscard]] bool answered_by_means() const;
  [[nodiscard]] bool several() const { return objectives.size() > 1; }
  /// Whether listed mechanisms were trained in place of a search; `retest` compares them.
  [[nodiscard]] bool listed() const { return config.contains("mechanisms"); }
  [[nodiscard]] bool constrained() const { return !constraints_.empty(); }
  /// The asks that each evaluation has answered, in their order; none of those at a rung.
  [[nodiscard]] std::map<std::string_view, std::vector<const AnsweredAsk*>> asks_by_id() const;
  /// A candidate of the ranking; nullptr where it is not there.
  [[nodiscard]] const RankedCandidate* ranked(std::string_view candidate) const;
  /// The same of one that may be the baseline, too.
  [[nodiscard]] const RankedCandidate* find(std::string_view candidate) const;
  /// An objective's value in one evaluation, in its own sense, as far as it is recorded.
  [[nodiscard]] std::optional<double> value(const Evaluation& evaluation,
                                            std::size_t objective) const;

 private:
  void read_meta(const Store& store);
  [[nodiscard]] std::vector<const Evaluation*> evaluations_of(const Ask& ask) const;
  [[nodiscard]] std::string broken_constraint(const Ask& ask) const;
  [[nodiscard]] Status status(const Ask& ask) const;
  [[nodiscard]] std::string reason(const AnsweredAsk& ask) const;
  void note_stop(RankedCandidate& candidate) const;
  void pause_trained_on();
  void digest_answers();
  void digest_spending();
  void digest_rungs();
  void digest_asks();
  void digest_efforts();
  void digest_batches();
  void find_front();
  void find_baseline(const std::optional<nlohmann::json>& record);
  void find_controls(const nlohmann::json& record);
  [[nodiscard]] std::optional<RankedCandidate> recorded_candidate(
      const nlohmann::json& record) const;
  void complete(RankedCandidate& candidate) const;

  std::vector<std::string> constraints_;                   ///< "flops <= 4e+06"
  std::map<std::string_view, std::size_t> places_;         ///< in ranking, by candidate
  std::map<std::string_view, const Ask*> answered_alone_;  ///< by evaluation: asks of no other one
};

/// A computed value of an evaluation ("perplexity"), nothing where it has none.
std::optional<double> computed_value(const Evaluation& evaluation, const std::string& name);

/// A measured number of an evaluation ("train_seconds"), 0 where there is none.
double measured_number(const Evaluation& evaluation, const char* name);

}  // namespace nas
