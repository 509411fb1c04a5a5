#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/parameters.hpp"
#include "core/visibility.hpp"
#include "study/stages/further_trainings.hpp"

namespace NAS_PUBLIC nas {

/// What is tuned: the optimiser's settings that a mechanism is most sensitive to.
struct TuningPoint {
  double learning_rate = 0.0;
  double weight_decay = 0.0;

  friend bool operator==(const TuningPoint&, const TuningPoint&) = default;
};

/// The settings that are tried for every tuned mechanism: first the configuration's own, then a
/// low-discrepancy sequence (the R2 sequence of the plastic number, its start from the seed) of
/// learning rates, uniform in their logarithm over the range and rounded to three digits, and
/// choices of weight decay. A longer sequence begins with the shorter ones.
///
/// @param tuning    see tuning_settings().
/// @param training  the section `training`.
/// @see Roberts (2018), The unreasonable effectiveness of quasirandom sequences.
std::vector<TuningPoint> tuning_points(const Parameters& tuning, const Parameters& training,
                                       std::uint64_t seed, std::int64_t trials);

/// One training run of a mechanism (all its replicates) under settings of its own.
struct TuningTrial {
  TuningPoint point;
  std::vector<Evaluation> evaluations{};  ///< one per replicate
  /// Of the first objective that training determines, in its own sense; nothing where a replicate
  /// failed.
  std::optional<double> value{};
};

/// A mechanism with what tuning tried.
struct TunedMechanism {
  std::string candidate;
  std::vector<TuningTrial> trials;
  std::optional<std::size_t> best{};  ///< of trials; nothing where all failed
};

/// The section `training` with the settings of a trial.
Parameters tuned_training(const Parameters& training, const TuningPoint& point);

/// Gives the baseline, and as many of the search's best mechanisms as `winners` says, the same
/// trials, each with the search's own seeds, and selects by the validation split. Recorded as
/// "tuning".
/// Where nothing is to be tuned, what an earlier process has recorded of the same mechanisms stays.
/// @return the mechanisms in this order; none where there is no tuning.
std::vector<TunedMechanism> tune(const FurtherWork& work);

/// For the plan: what is tuned, and by how many training runs.
/// @param trained  training runs of the search.
/// @param found    mechanisms that it comes to, at most.
struct TuningPlan {
  std::string text;  ///< empty: nothing
  std::int64_t trainings = 0;
};
TuningPlan tuning_plan(const Experiment& experiment, std::int64_t trained, std::int64_t found);

}  // namespace nas
