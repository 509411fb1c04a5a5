#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "search/objective_set.hpp"
#include "statistics/failures.hpp"
#include "statistics/sequential.hpp"
#include "statistics/statistics.hpp"
#include "store/evaluation.hpp"

namespace nas {

/// Why a candidate is re-tested: it is on the search's front, among the best of its only objective, listed in place of a
/// search, the baseline, or a control: the baseline with less of what it is about (study/stages/controls.hpp).
enum class Role { front, top, listed, baseline, control };
std::string_view to_string(Role role);

/// A candidate that was trained again on seeds that the search has not used.
struct Retested {
  Role role = Role::top;
  std::string candidate;  ///< canonical name
  std::string label;      ///< for people
  /// What the search saw, one per objective, in minimisation form; empty where it saw nothing.
  std::vector<double> search{};
  std::int64_t search_n = 0;  ///< usable evaluations behind it
  /// {learning_rate, rate_at_end, rates}: what it is trained at, whether that is an end of those that
  /// were tried, and what these had. Null: the configuration's.
  nlohmann::json rate{};
  std::string differs{};  ///< in what else than its label says it differs from the baseline
  /// One per seed, seeds in one order for all candidates; the baseline has the most.
  std::vector<Evaluation> evaluations;
};

/// What mechanisms are compared by, on the test split: mean nll, whose differences are ratios of perplexities; or the share of
/// wrong answers, where accuracy is the first objective that training determines. Less is better of both.
enum class Measure { perplexity, accuracy };
/// "perplexity", "accuracy".
std::string to_string(Measure measure);
/// "test perplexity", "test accuracy".
std::string title(Measure measure);
/// That of a record; one without a word of it is of perplexity.
Measure measure_of(const nlohmann::json& retest);
/// That of mechanisms which are judged by some objectives.
Measure measure_of(const ObjectiveSet& objectives);
/// A difference for people: in percent of the perplexity, or in points of accuracy, below 0 where
/// the first is better (an error rate that is lower by 0.02 is -2).
double shown_difference(Measure measure, double difference);

/// Two candidates compared pair by pair of equal seeds.
/// @note Where seeds are added until something is decided (RetestOutcome::until), interval and p hold
/// however often that is looked at (compare_anytime), but for controls, whose seeds are given.
struct Contrast {
  PairedComparison paired;
  Measure measure = Measure::perplexity;
  /// Corrected for all comparisons of its family, each pair of equal evaluations once; the interval is not.
  double p_holm = 1.0;
  /// That the mean lies beyond RetestOutcome::until (p_beyond), corrected among its like.
  double p_beyond = 1.0;
  /// Of equal shares of failures (compare_shares), corrected likewise; nothing where none fails.
  std::optional<double> p_shares{};
};

/// What the fresh seeds say of one candidate.
struct RetestedCandidate {
  Role role = Role::top;
  std::string candidate;
  std::string label;
  std::vector<std::string> evaluations;  ///< ids
  std::vector<double> search;
  std::int64_t search_n = 0;
  std::int64_t n = 0;  ///< usable ones of the evaluations
  /// One per objective, on the validation split, in the objective's own sense; nothing where no
  /// seed was usable. An objective over all replicates (seed_sd) has no error.
  std::vector<std::optional<Estimate>> retest;
  std::optional<Estimate> test{};  ///< of title(measure); nothing without a test split
  /// Its runs by the measure (nll, share of errors), NaN where one came to nothing; those that solved
  /// the task (Failures), and the median of title(measure) of these.
  std::vector<double> runs{};
  std::optional<Share> solved{};
  std::optional<double> median_solved{};
  nlohmann::json rate{};  ///< see Retested
  std::string differs{};
  /// See front_probability; nothing for fewer than 8 seeds, and for those that take no part:
  /// controls, and rejected ones.
  std::optional<double> non_dominated_probability{};
  /// By the measure, on the test split; all of a re-test are one family, its controls another. Nothing where one of its seeds
  /// failed, unless an objective judges failures.
  std::optional<Contrast> against_baseline{};
  /// From the best control, likewise; all but controls are a family.
  std::optional<Contrast> against_control{};
  /// From the baseline, one per objective, by validation values in the objective's own unit and sense; those of an objective
  /// are a family. Nothing as above, and for what training does not determine, or a single training run does not have.
  std::vector<std::optional<Contrast>> differences{};
  std::string rejected{};  ///< which constraint it breaks, and how; empty: none
};

/// What a re-test found out.
struct RetestOutcome {
  std::int64_t replicates = 0;
  double confidence = 0.95;  ///< of all intervals, and of the verdict
  Measure measure = Measure::perplexity;
  /// Share of the baseline's perplexity, or of all answers, within which a mechanism is taken for as good, where seeds
  /// are added until all are decided; nothing where their number is given.
  std::optional<double> until{};
  /// By the measure, of all but controls: the plateau is the best mean of controls that need no
  /// attention (kPlateaus), or chance.
  Failures failures{};
  bool at_one_rate = false;  ///< whether all are trained at the configuration's learning rate
  bool voided = false;  ///< whether a control was better, and listed mechanisms were not trained
  std::string seen_before{};  ///< which of its seeds something was chosen by; empty: none known
  std::string objective;      ///< the first that training determines
  std::size_t objective_index = 0;  ///< of it
  std::vector<RetestedCandidate> candidates;
  /// By how much the search's scores of that objective were better than those of the fresh seeds,
  /// in its unit: mean over the winners (role front or top).
  std::optional<double> optimism{};
  std::optional<double> baseline_optimism{};  ///< the same of the baseline, which was not selected
  /// What selection adds: the difference of the two, as the seeds move both alike; `optimism`
  /// itself where there is no baseline. And as a share of the winners' values with the fresh seeds.
  std::optional<double> flattery{};
  std::optional<double> flattery_share{};

  /// @return the candidate of role baseline; nullptr if there is none.
  [[nodiscard]] const RetestedCandidate* baseline() const;
  /// @return the control that is best by its mean on the test split, those with failures left out; nullptr if there is none.
  [[nodiscard]] const RetestedCandidate* best_control() const;
  /// A share as a difference of the measure: of errors, or in nats.
  [[nodiscard]] double bound(double share) const;
  /// What the seeds of a candidate have come to against the baseline; open where nothing is compared,
  /// and where failures may still come that would move the mean (runs_for_within).
  [[nodiscard]] Decision decision(const RetestedCandidate& candidate) const;
  /// Runs of a candidate without which "within" is not said: as many as exclude a share of failures that moves the mean by the
  /// bound, bound / cost. Where none of all rows has failed in so many runs, the task is one whose runs do not fail, and
  /// kFewestWithin are enough. Nothing where no number is, or nothing is decided.
  [[nodiscard]] std::optional<std::int64_t> runs_for_within() const;
};

/// Controls that need no attention, by their names.
inline constexpr std::string_view kPlateaus[] = {"no mixer", "window 2", "window 4"};
inline constexpr std::int64_t kFewestWithin = 12;

/// Turns the evaluations of a re-test into what they say.
///
/// Values that are not finite count as failed. Comparisons use the seeds at which both candidates
/// have a test nll.
/// @param retested  at least one, all with equally many evaluations, at least one; with `until` some
///                  may have fewer: those of the first seeds.
/// @param until     see RetestOutcome.
/// @param chance    nll or share of errors of guessing, where no control says what failures have.
RetestOutcome judge(const std::vector<Retested>& retested, const ObjectiveSet& objectives,
                    double confidence, std::optional<double> until = {},
                    double chance = std::numeric_limits<double>::quiet_NaN());

/// The record of a re-test: objects with JSON null in place of what is unknown or not finite.
nlohmann::json to_record(const RetestOutcome& outcome);

}  // namespace nas
