#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/parameters.hpp"
#include "data/corpus.hpp"
#include "nn/transformer.hpp"
#include "store/evaluation.hpp"

namespace nas {

/// How much and how one evaluation trains: the fidelity and the optimiser. From the `training` section.
struct TrainingSettings {
  explicit TrainingSettings(const Parameters& parameters);

  std::int64_t steps;
  std::int64_t batch_size;
  std::int64_t micro_batch;  ///< sequences of a step that are computed at once; 0 = all
  bool recompute_layers;     ///< for gradients (nn::TransformerArray::recompute_layers)
  std::string optimizer;     ///< of optimizers()
  double learning_rate;
  std::string schedule;  ///< of the rate after the warm-up
  std::int64_t warmup_steps;
  double weight_decay;
  double clip_norm;                       ///< infinite for 0, which clips nothing
  std::vector<std::int64_t> checkpoints;  ///< validation steps, ascending, the last one = steps
  std::int64_t evaluation_batch_size;
  std::int64_t validation_windows;  ///< scored of a split, evenly spaced over it; 0 = all
  bool score_test;                  ///< also score the test split, once, at the end
  double checkpoint_minutes;

  /// Of a step: a batch, or the largest part of it whose gradients are computed at once.
  [[nodiscard]] std::int64_t sequences_at_once() const;

  /// Learning rate of step s = 1 .. S: linear warm-up of W steps, then f (constant; or what begins at the full rate and ends
  /// above 0: cosine, as PyTorch's CosineAnnealingLR, Loshchilov & Hutter 2017; linear; wsd, constant until the last fifth).
  ///
  ///   rate(s) = r s / W for s <= W,  else r f(p),  p = (s - 1 - W) / (S - W)
  ///   f(p) = 1;  (1 + cos(pi p)) / 2;  1 - p;  min(1, 5 (1 - p))
  [[nodiscard]] double rate(std::int64_t step) const;
};

/// Where, how and under which limits a training run is made. Threads, numerical mode and kind of device change its result by
/// rounding, a device without kernels of its own (ops/device_operations.hpp) also by other dropout masks, nothing else does.
struct TrainingContext {
  std::string device = "cpu";
  int threads = 1;
  NumericalMode numerical_mode = NumericalMode::exact;
  std::int64_t memory_limit = 0;  ///< bytes of one training run; 0 = none
  double time_limit = 0.0;        ///< seconds of one training run; 0 = none
  /// Folder for the checkpoints of unfinished training runs; empty: none is written.
  std::filesystem::path checkpoint_folder;
  /// Whether a training run goes on with a warning where its checkpoint cannot be written: where its
  /// result reaches the record by another way.
  bool does_without_checkpoints = false;
  /// Called about once per second for an array, and at its validations: steps taken, of how many,
  /// and the latest training loss (NaN: not known yet), which is read when it is checked anyway.
  std::function<void(std::int64_t step, std::int64_t steps, double loss)> on_step{};
};

/// One training run: what is trained, and with which seeds.
struct TrainingJob {
  Architecture architecture;
  TrainingSettings settings;
  std::uint64_t run_seed = 0;
  std::int64_t replicate = 0;
  /// Mean validation nll above which the run is stopped early, by validation step.
  std::map<std::int64_t, double> stop_above{};
  std::string checkpoint_name{};  ///< of its file in the checkpoint folder; no white space
  /// Validation step at which the run leaves its array as Status::paused, to go on from its
  /// checkpoint when another call asks for more; 0: it is trained to the end.
  std::int64_t until = 0;
};

/// The file of a training run's checkpoint.
std::filesystem::path checkpoint_file(const std::filesystem::path& folder, const std::string& name,
                                      std::int64_t replicate);

/// Saves the weights that a checkpoint holds, by their names, as an archive of LibTorch.
/// @return SHA-256 of the file.
/// @throws UnreadableCheckpoint (training/checkpoint.hpp), MachineError.
std::string save_weights(const std::filesystem::path& checkpoint, const std::string& name,
                         std::int64_t replicate, const std::filesystem::path& file);

/// Reads weights that save_weights has written.
/// @param model   of the architecture that they are of.
/// @param digest  SHA-256 that the file must have; empty: unknown.
/// @throws UnreadableCheckpoint naming the parameter that is missing or of another shape, or where
/// this is no archive, or another than the digest's; MachineError if the file cannot be read.
void load_weights(const std::filesystem::path& file, nn::Transformer& model,
                  const std::string& digest = "");

/// Whether two jobs may be trained in one array: models are alike but for the mechanism
/// (nn::alike), and so are the sizes of batches and the windows that are scored.
bool fit_together(const TrainingJob& a, const TrainingJob& b);

/// Places of jobs, by which fit together: ascending in a group and by the groups' first.
std::vector<std::vector<std::size_t>> fitting_groups(std::span<const TrainingJob> jobs);

/// The result of one training run.
struct TrainingResult {
  Status status = Status::failed;
  std::string reason{};
  std::vector<CurvePoint> curve{};
  Scores test{};  ///< of the trained model; no tokens unless asked for
  /// By split (Corpus::further); the test split, too, of another task than next tokens.
  std::map<std::string, Scores> further{};
  /// Training and validation, over all processes that worked on it; in an array, its share: what
  /// the array took, divided by the number of models in it.
  double seconds = 0.0;
  /// The part of `seconds` in which its thread computed: what a neighbour on the machine does not stretch. Counts one thread.
  double cpu_seconds = 0.0;
  /// Largest memory of tensors at once, in an array the share of it; 0 where the device does not count.
  std::int64_t peak_bytes = 0;
};

/// Trains jobs together, as one array of models; those that do not fit together, as
/// several, one after the other.
///
/// Initial values, data order and dropout of a job draw from generators seeded by (run seed,
/// replicate, purpose, tensor name or epoch or step). On the CPU, a job's result depends on nothing
/// else: it is bitwise that of the job alone. A job that has finished, diverged or is stopped early
/// leaves the array, which goes on with the others; so does one that comes to its `until`, or was
/// there before. Every `checkpoint_minutes`, when asked to stop
/// and at its end, each job's state goes to its checkpoint file, from which a call continues
/// bitwise, in whatever array the job is then. The file stays: the caller removes it once the
/// result is safe, and not before it is `ok`, where it is paused. One that is damaged, or of another training run, is reported and not continued
/// from. Divergence is a result, and so is too little memory under memory_limit: then every job of
/// the array that is not finished says so.
///
/// @param jobs  at least one.   @return results in their order.
/// @throws std::logic_error for an `until` that is no validation step; StopRequested after writing checkpoints; what nn::rethrow_as_failure() says of models
/// that cannot be built or computed; MachineError where a checkpoint cannot be written (but with
/// does_without_checkpoints) or read.
std::vector<TrainingResult> train(std::span<const TrainingJob> jobs, const Corpus& corpus,
                                  const TrainingContext& context);

/// Seconds that a whole training run is expected to take here: some steps and a validation batch are timed (about a second).
double expected_seconds(const TrainingJob& job, const Corpus& corpus,
                        const TrainingContext& context);

/// The number of models in an array that is worth its while here: copies of `job` are trained in
/// arrays of 1, 2, 4, ... for some steps each, while a model's share of a step falls by more than
/// 3 % and memory suffices.
///
/// @param most  >= 1: no wider than this.
std::int64_t best_array(const TrainingJob& job, const Corpus& corpus,
                        const TrainingContext& context, std::int64_t most);

}  // namespace nas
