#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "kernels/attention.hpp"
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
  kernels::Dropout dropout{};
  std::int64_t direction = -1;  ///< its row of the directions; -1: it has none
};

/// The vectors of an array, (R, B, T, H d) each.
struct AttentionVectors {
  torch::Tensor q, k, v;
  torch::Tensor directions{};  ///< (N, ..., d), of models with additive scores; undefined: none has
};

/// Causal attention by blocks of queries, forward and backward (kernels/attention.hpp), of all
/// models of an array: no matrix of all scores, no mask and no random number is stored, only the
/// weights, for the backward pass. On the CPU, float32 and float64; as many threads as LibTorch
/// has, with the same result for any number and in any array. Not for second derivatives.
///
/// @param inverse_temperature  (R, B, H, T, 1), what scores are multiplied by.
/// @return (R, B, T, H d), the weighted values.
torch::Tensor fused_attention(const std::vector<ModelAttention>& models,
                              const AttentionVectors& vectors,
                              const torch::Tensor& inverse_temperature);

}  // namespace nas::nn
