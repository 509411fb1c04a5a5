#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/parameters.hpp"
#include "data/corpus.hpp"
#include "nn/transformer.hpp"
#include "store/evaluation.hpp"

namespace nas {

/// How much and how one evaluation trains: the fidelity and the optimiser. From the `training`
/// section.
struct TrainingSettings {
  explicit TrainingSettings(const Parameters& parameters);

  std::int64_t steps;
  std::int64_t batch_size;
  double learning_rate;
  bool cosine;  ///< after the warm-up: half a cosine to 0 (Loshchilov & Hutter 2017) instead of a
                ///< constant rate
  std::int64_t warmup_steps;
  double weight_decay;
  double clip_norm;
  std::vector<std::int64_t> checkpoints;  ///< validation steps, ascending, the last one = steps
  std::int64_t evaluation_batch_size;
  std::int64_t validation_windows;  ///< scored of a split, evenly spaced over it; 0 = all
  bool score_test;                  ///< also score the test split, once, at the end
  double checkpoint_minutes;

  /// Learning rate of step 1 .. steps: linear warm-up, then constant or cosine.
  [[nodiscard]] double rate(std::int64_t step) const;
};

/// Where, how and under which limits a training runs. Threads and numerical mode change its result
/// by rounding, another kind of device by other dropout masks, nothing else does.
struct TrainingContext {
  std::string device = "cpu";
  int threads = 1;
  NumericalMode numerical_mode = NumericalMode::exact;
  std::int64_t memory_limit = 0;  ///< bytes; 0 = none
  /// Folder for the checkpoint of an unfinished training, and the name of its file there; empty:
  /// none is written.
  std::filesystem::path checkpoint_folder;
  std::string checkpoint_name;
  /// Mean validation nll above which the training is stopped early, by validation step.
  std::map<std::int64_t, double> stop_above;
  /// Where the trained weights are saved; empty: nowhere.
  std::filesystem::path weights_file;
};

/// What one training came to.
struct TrainingResult {
  Status status = Status::failed;
  std::string reason;
  std::vector<CurvePoint> curve;
  Scores test{};         ///< of the trained model; no tokens unless asked for
  double seconds = 0.0;  ///< training and validation, over all processes that worked on it
  /// The part of `seconds` in which its thread computed: what a neighbour on the machine does not
  /// stretch. Counts one thread.
  double cpu_seconds = 0.0;
  std::int64_t peak_bytes =
      0;  ///< largest memory of tensors at once; 0 where the device does not count
};

/// Trains one architecture once for each replicate: the unit of training is a mechanism with a list
/// of seeds.
///
/// Initial values, data order and dropout draw from generators seeded by (run seed, replicate,
/// purpose, tensor name or epoch or step); results depend on nothing else. Every
/// `checkpoint_minutes`, and when asked to stop, the state goes to the checkpoint file, from which
/// the same call continues bit-identically. Divergence and lack of memory are results.
///
/// @throws StopRequested after writing a checkpoint.
std::vector<TrainingResult> train(const Architecture& architecture, const Corpus& corpus,
                                  const TrainingSettings& settings, std::uint64_t run_seed,
                                  std::span<const std::int64_t> replicates,
                                  const TrainingContext& context);

/// Seconds that a whole training is expected to take here: some steps and a validation batch are
/// timed (about a second).
double expected_seconds(const Architecture& architecture, const Corpus& corpus,
                        const TrainingSettings& settings, const TrainingContext& context);

}  // namespace nas
