#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/measurement.hpp"

namespace nas {

/// The task that an evaluation of a record is the result of, to be measured again.
/// @throws InputError as read_task() does where it would be measured otherwise here.
Task recorded_task(const Evaluation& evaluation, const Measurement& measurement);

/// How much of a record is made again, and how.
struct ReproductionSettings {
  std::int64_t count = 1;  ///< evaluations, >= 1; all where there are no more
  /// What is different here, of the settings that change no result: "evaluation.workers=4".
  std::vector<std::string> overrides{};
  bool force_device = false;  ///< also on another kind of device than the recorded one
};

/// An evaluation of a record that was made again, beside what is recorded.
struct Reproduced {
  std::string label;  ///< of the candidate, for people, with what tuning has tried
  std::int64_t replicate = 0;
  double seconds = 0.0;  ///< of training
  /// Fields of the comparable record (canonical_json) that differ, "values.perplexity: 12.5 -> 12.6"
  /// each, the recorded value first: what became of it, its curve, its values. Empty: it is equal.
  std::vector<std::string> differences{};
  /// What it was made with otherwise than here, as far as that is known and may change last digits:
  /// "LibTorch 1.13.1 -> 2.6.0". Empty: nothing.
  std::string environment{};
  /// Whether all that may change them is recorded: not of older programs, nor of workers elsewhere.
  bool environment_known = false;
  /// |again - recorded| / |recorded| of the mean nll at the end of the curve; empty where the two
  /// curves do not end at the same step.
  std::optional<double> loss_difference{};
};

/// What came of a part of a record that was made again.
struct Reproduction {
  std::string problem;             ///< key
  bool trains = true;              ///< else the problem answers without training
  std::int64_t possible = 0;       ///< recorded evaluations that can be made again
  std::int64_t drawn = 0;          ///< of these
  std::vector<Reproduced> made{};  ///< in the order in which they were there
  /// How many of them differ from the record.
  [[nodiscard]] std::int64_t num_different() const {
    return std::count_if(made.begin(), made.end(),
                         [](const auto& one) { return !one.differences.empty(); });
  }
};

/// Makes evaluations of a run again, from nothing, by threads of this process, under the recorded
/// configuration, and compares them with the record. Nothing is written: no checkpoints, no models,
/// nothing to the run's folder.
///
/// They are drawn at random by the run's seed: the same ones each time, and with a larger count
/// these and others. Of the search, the tuning and the re-test alike, but not what is no result that
/// must come again: what was rejected before training, is paused, or may_be_retried(). What was
/// measured before training (latency) is taken from the record.
///
/// @param run       a run's folder, or its store.
/// @param listener  is told after each evaluation, the last one of `made`; may be empty.
/// @throws InputError where the record has nothing to make again, or this program would make it
/// otherwise: other plug-ins, corpus, results version (the identity of an evaluation says all of
/// that) or kind of device; before anything is trained. StopRequested; MachineError.
Reproduction reproduce(const std::filesystem::path& run, const ReproductionSettings& settings,
                       const std::function<void(const Reproduction&)>& listener = {});

}  // namespace nas
