#pragma once

#include <cstdint>

#include "kernels/cuda/stream.hpp"

namespace nas::cuda {

/// nas::Windows (data/corpus.hpp) on the device.
struct Windows {
  const std::int32_t* tokens = nullptr;
  std::int64_t num_tokens = 0;
  const std::int64_t* starts = nullptr;
  std::int64_t num_windows = 0;
  std::int64_t length = 0;                ///< L
  std::int32_t last_target = -1;          ///< -1: the next token of the stream
  const std::int32_t* targets = nullptr;  ///< (windows, L), or null
};

/// Target where nothing is asked: the convention of torch's cross-entropy.
inline constexpr std::int64_t kNotScored = -100;

/// The order of nas::TrainingOrder (training/batches.hpp), model by model. Epoch e is kept in slot
/// e % 2, so that a batch may span two: an epoch is written before its first step runs and stays
/// until its last one has run.
struct Orders {
  const std::int32_t* permutations = nullptr;  ///< (R, 2, windows)
  const std::int64_t* offsets = nullptr;       ///< (R, 2)
  const std::int64_t* steps = nullptr;         ///< (R): which step each model is at
  std::int64_t models = 0;
  std::int64_t batch_size = 0;  ///< B, at most the number of windows
};

/// input and target (R, B, L) of the models' steps.
void read_batches(const Windows& windows, const Orders& orders, std::int64_t* input,
                  std::int64_t* target, Stream stream);

/// Tables of the steps to come, one row per step, and where the current step's row is copied.
struct StepTables {
  const std::uint64_t* seeds = nullptr;  ///< (K, R)
  const double* rates = nullptr;         ///< (K, R)
  const std::int64_t* row = nullptr;     ///< one number below K
  std::int64_t models = 0;
  std::uint64_t* current_seeds = nullptr;  ///< (R)
  double* current_rates = nullptr;         ///< (R)
};

/// Copies the current row: the first kernel of a step that a CUDA graph replays.
void begin_step(const StepTables& tables, Stream stream);

/// Adds 1 to each of the counters.
void advance(std::int64_t* counters, std::int64_t count, Stream stream);

}  // namespace nas::cuda
