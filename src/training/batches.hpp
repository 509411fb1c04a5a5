#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "data/corpus.hpp"

namespace nas {

/// Inputs and targets of some windows: (B, L) int64 each; target kNotScored where nothing is asked.
struct Batch {
  torch::Tensor input, target;
};

/// Reads windows `indices`, shifted by `offset`.
Batch read_batch(const Windows& windows, const std::vector<std::int64_t>& indices,
                 std::int64_t offset);

/// The order in which a replicate sees the training windows: every epoch a fresh permutation and offset, both functions of (run
/// seed, replicate, epoch) alone; batches are full and may span two epochs.
class TrainingOrder {
 public:
  TrainingOrder(const Windows& windows, std::int64_t batch_size, std::uint64_t run_seed,
                std::int64_t replicate);
  /// The windows in their own order, epoch after epoch, not shifted.
  static TrainingOrder unshuffled(const Windows& windows, std::int64_t batch_size);
  /// The batch of step 0, 1, ...; any order of calls gives the same batches.
  Batch batch(std::int64_t step);

  struct Epoch {
    std::int64_t number = -1;
    std::int64_t offset = 0;
    std::vector<std::int64_t> permutation;
  };
  /// @return epoch 0, 1, ...; valid until that after the next one is asked for.
  const Epoch& epoch(std::int64_t number);

 private:
  const Windows* windows_;
  std::int64_t batch_size_;
  std::uint64_t run_seed_;
  std::int64_t replicate_;
  bool shuffled_ = true;
  Epoch epochs_[2];
};

}  // namespace nas
