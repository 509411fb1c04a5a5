#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "core/visibility.hpp"
#include "kernels/attention.hpp"
#include "ops/dropout.hpp"
#include "ops/score_vectors.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

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
  // Its rows of the tensors of these names (AttentionTensors); -1: it has none.
  std::int64_t direction = -1;
  std::int64_t distance_biases = -1;
  std::int64_t sums = -1;
  std::int64_t sinks = -1;  ///< kernels::sink() must have them
  /// Query i sees the keys j <= i with i - j < window or j < globals; 0: all.
  std::int64_t window = 0;
  std::int64_t globals = 0;
};

/// The same for an array of R models.
struct ArrayAttention {
  std::vector<ModelAttention> of_models;
  Masks masks;                  ///< of the weights
  bool rounds_factors = false;  ///< on devices: of products, to TensorFloat-32
  /// What kernels of a device read of both (DeviceOperations::described()), in its memory.
  torch::Tensor on_device{};
  std::optional<kernels::PairForm> pairs{};  ///< on the CPU, of float32
};

/// What attention is computed from, or the gradients w.r.t. these. Each row n of the last four is of
/// one model, ModelAttention says which; undefined: no model has one.
struct AttentionTensors {
  torch::Tensor q;     ///< (R, B, T, H d)
  torch::Tensor k, v;  ///< (R, B, T, G d), G a divisor of H: head h reads h / (H / G)
  torch::Tensor inverse_temperature;  ///< (R, B, H, T, 1), what scores are multiplied by
  torch::Tensor directions{};         ///< (N, ..., d), of models with additive scores
  torch::Tensor distance_biases{};    ///< (N, H, T): element i - j is added to score s_ij
  /// (N, B, H, T), float64 whatever the others are: c_i - c_j is added to score s_ij.
  torch::Tensor sums{};
  torch::Tensor sinks{};  ///< (N, H): the score of a key without a value
};

/// Causal attention by blocks of queries, forward and backward (kernels/attention.hpp), of all
/// models of an array: no matrix of all scores, no mask and no random number is stored, weights on
/// devices and where no query sees more than kernels::kMostKeptKeys keys, for the backward pass.
/// float32 and float64, on the CPU and on devices with kernels of their own
/// (ops/device_operations.hpp); on the CPU by as many threads as LibTorch has, with the same result
/// for any number and in any array. Not for second derivatives.
///
/// With a window, time and memory are in proportion to it. Gradients w.r.t. biases, sums and sinks
/// are computed where they are asked for.
///
/// @return (R, B, T, H d), the weighted values.
torch::Tensor fused_attention(ArrayAttention attention, const AttentionTensors& tensors);

}  // namespace nn
}  // namespace nas
