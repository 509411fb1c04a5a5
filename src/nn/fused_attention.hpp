#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "kernels/attention.hpp"

namespace nas::nn {

/// What raw scores of M models are computed from in the fused kernel: q and k (M, B, H, T, d),
/// whatever has been done to them before, and for Score::additive the directions v (M, d).
struct FusedScores {
  kernels::Score score = kernels::Score::product;
  torch::Tensor q;
  torch::Tensor k;
  torch::Tensor direction{};
};

/// What the fused kernel does for one model of an array.
struct ModelAttention {
  kernels::Score score = kernels::Score::product;
  kernels::RowNormalization normalization{};
  kernels::Dropout dropout{};
  std::int64_t direction = -1;  ///< its row of the directions; -1: it has none
};

/// Causal attention by blocks of queries, forward and backward (kernels/attention.hpp), of all
/// models of an array: no matrix of all scores, no mask and no random number is stored, only the
/// weights, for the backward pass. On the CPU, float32 and float64; as many threads as LibTorch
/// has, with the same result for any number and in any array. Not for second derivatives.
///
/// @param q, k, v     (R, B, H, T, d).
/// @param directions  (M, d), of the models with additive scores; undefined where there are none.
/// @param inverse_temperature  (R, B, H, T, 1), what scores are multiplied by.
/// @return (R, B, T, H d), the weighted values.
torch::Tensor fused_attention(const std::vector<ModelAttention>& models, const torch::Tensor& q,
                              const torch::Tensor& k, const torch::Tensor& v,
                              const torch::Tensor& directions,
                              const torch::Tensor& inverse_temperature);

}  // namespace nas::nn
