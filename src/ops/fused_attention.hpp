#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "kernels/attention.hpp"
#include "ops/dropout.hpp"
#include "ops/score_vectors.hpp"

namespace nas::nn {

/// A similarity in the fused kernel: a score of the mapped q and k.
struct FusedSimilarity {
  kernels::Score score = kernels::Score::product;
  VectorMap map{};
  torch::Tensor direction{};  ///< v of Score::additive, (M, ..., d), of the module's M models
};

/// What the fused kernel does for one model of an array.
struct ModelAttention {
  kernels::Score score = kernels::Score::product;
  kernels::RowNormalization normalization{};
  std::int64_t direction = -1;  ///< its row of the directions; -1: it has none
};

/// The same for an array of R models.
struct ArrayAttention {
  std::vector<ModelAttention> of_models;
  Masks masks;  ///< of the weights
  /// What kernels of a device read of both (DeviceOperations::described()), in its memory.
  torch::Tensor on_device{};
};

/// What attention is computed from, or the gradients w.r.t. these.
struct AttentionTensors {
  torch::Tensor q, k, v;              ///< (R, B, T, H d)
  torch::Tensor inverse_temperature;  ///< (R, B, H, T, 1), what scores are multiplied by
  torch::Tensor directions{};  ///< (N, ..., d), of models with additive scores; undefined: none has
};

/// Causal attention by blocks of queries, forward and backward (kernels/attention.hpp), of all
/// models of an array: no matrix of all scores, no mask and no random number is stored, only the
/// weights, for the backward pass. float32 and float64, on the CPU and on devices with kernels of
/// their own (ops/device_operations.hpp); on the CPU by as many threads as LibTorch has, with the
/// same result for any number and in any array. Not for second derivatives.
///
/// @return (R, B, T, H d), the weighted values.
torch::Tensor fused_attention(ArrayAttention attention, const AttentionTensors& tensors);

}  // namespace nas::nn
