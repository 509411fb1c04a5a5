#pragma once

#include <cstdint>

#include <torch/types.h>

namespace nas::nn {

// What the steps of an array of R models read in their device's memory, so that a step takes
// nothing from the host and can be captured (ops/device_graph.hpp).

/// nas::Windows (data/corpus.hpp).
struct DeviceWindows {
  torch::Tensor tokens;   ///< int32, the stream
  torch::Tensor starts;   ///< (windows) int64
  torch::Tensor targets;  ///< (windows, length) int32; undefined: the following tokens
  std::int64_t length = 0;
  std::int32_t last_target = -1;  ///< -1: the next token of the stream
};

/// nas::TrainingOrder (training/batches.hpp) of each model, of two epochs: epoch e is in slot e
/// % 2.
struct DeviceOrders {
  torch::Tensor permutations;  ///< (R, 2, windows) int32
  torch::Tensor offsets;       ///< (R, 2) int64
  torch::Tensor steps;         ///< (R) int64: which step each model is at
};

/// What changes from step to step.
struct StepNumbers {
  torch::Tensor seeds;           ///< (..., R) int64, the bits of what dropout is drawn from
  torch::Tensor learning_rates;  ///< (..., R) float64
};

/// Numbers of the next steps, (K, R), and which row is the current one: (1) int64 below K.
struct StepTables {
  StepNumbers numbers;
  torch::Tensor row;
};

}  // namespace nas::nn
