#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/retest_outcome.hpp"
#include "statistics/statistics.hpp"
#include "study/stages/controls.hpp"
#include "study/stages/further_trainings.hpp"
#include "study/stages/rates.hpp"

namespace nas {

/// Learning rates that a pilot begins with, as factors of the configuration's own.
inline constexpr double kGateRates[] = {0.25, 0.5, 1.0, 2.0, 4.0};
/// Seeds that choose among them, and others that judge.
inline constexpr std::int64_t kGateTuningSeeds = 3, kGateSeeds = 8;
/// Windows, in tokens: attention must be better than the first, how far back the task asks is said by the second.
inline constexpr std::int64_t kGateWindows[] = {2, 4}, kReportedWindows[] = {8, 16, 32};

/// A model of a pilot. Values are mean nll on the validation split, in nats per target, or where accuracy is
/// the measure the share of wrong answers there, seed by seed; NaN where a training run failed.
struct PilotModel {
  std::string name;              ///< "baseline", or that of a Control
  std::string candidate;         ///< canonical name
  TunedRate tuned{};             ///< its rate is that with which it is judged
  std::vector<double> judged{};  ///< by judging seed, the same for all models
  std::vector<double> test{};    ///< the same on the test split
};

/// The least share of its perplexity, or of all answers, by which the baseline must be able to improve.
inline constexpr double kRoom = 0.05;

/// A condition of a task on which attention can be compared.
struct Gate {
  std::string name;
  bool passed = false;
  std::string words{};  ///< with the figures
};

/// What a pilot says of a task.
struct GatesOutcome {
  Measure measure = Measure::perplexity;  ///< of the first objective that training determines
  double least = 0.0;                     ///< that there can be, as values of a PilotModel
  std::vector<Gate> gates{};
  /// The baseline minus a control, in nats or as a share of answers, p by Holm over those of the gates; by the name of the control.
  std::vector<std::pair<std::string, PairedComparison>> comparisons{};
  std::int64_t failed_seeds = 0, seeds = 0;  ///< of the baseline, at its best rate
  bool bimodal = false;                      ///< more than one seed in twenty fails

  [[nodiscard]] bool passed() const;
  /// In sentences.
  [[nodiscard]] std::string verdict() const;
};

/// Judges a pilot by a measure, "less" being its mean nll or share of wrong answers:
///
/// - the baseline is better than no mixer and than windows 2 and 4: less, p of the paired
///   t-test by Holm below 0.05;
/// - it is better than the best count model of its training tokens: the upper end of the 95 %
///   interval of its mean lies below what counts have;
/// - its best rate is no end of those that were tried, nor is that of a control;
/// - the configuration's own rate is not shown to be worse than the best one (paired t-test over the
///   choosing seeds, p >= 0.05);
/// - room: the lower end of the 95 % interval of the baseline's mean lies farther above the least than kRoom, or at
///   least one of its seeds in five fails.
///
/// A seed fails where its training run does, and beyond the line of failures_of() between the baseline's seeds and
/// the plateau: the least that the worst seed of no mixer, window 2 or window 4 has. The worst, as a control may
/// solve a task now and then. That more than one in twenty fails is no failed gate: the task is bimodal,
/// to be judged by success rates, too.
///
/// @param models  the baseline first; controls that the task does not have may be missing.
/// @param counts  see Problem::counts; null: there are none, and no such gate.
/// @param own_rate  the configuration's.
/// @param least  see GatesOutcome; 0: no error at all, or not known.
GatesOutcome judge_gates(const std::vector<PilotModel>& models, const nlohmann::json& counts,
                         double own_rate, Measure measure = Measure::perplexity,
                         double least = 0.0);

/// Trains a pilot: the baseline, no mixer and the windows with each learning rate and the choosing seeds, and with further
/// rates while the best is at an end (find_rates); then each at its best rate with the judging seeds. Everything is recorded in
/// the work's store, recalled from there, and judged; the record is kept as "gates", too.
/// @param work  whose experiment lists no search.
nlohmann::json train_gates(const StageWork& work);

/// The rates that a record has found as a configuration takes them, but those whose gate fails at an end of what was
/// tried, which a comparison finds itself: "rates: [baseline 0.004, no mixer 0.008]".
std::string rates_text(const nlohmann::json& record);

/// A pilot before it is trained.
struct GatesPlan {
  /// What makes of a configuration one of a pilot: its controls listed in place of a search.
  std::vector<std::string> overrides;
  std::int64_t trainings = 0;
  std::string text;  ///< "116 training runs: baseline, ... with 5 learning rates and 3 seeds; ..."
};
/// @throws InputError where its problem trains nothing or has no baseline.
GatesPlan plan_gates(const Experiment& experiment);

}  // namespace nas
