#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <torch/types.h>

#include "kernels/attention.hpp"

namespace nas::nn {

/// What the fused kernel computes raw scores of M models from: q and k (M, B, T, H d), whatever has
/// been done to them before, and for Score::additive the directions v (M, ..., d).
struct ScoreVectors {
  torch::Tensor q;
  torch::Tensor k;
  torch::Tensor direction{};
};

/// A similarity in the fused kernel: a score of what `vectors` makes of the models' q and k; of q
/// and k as they are, where there is no such function.
struct FusedSimilarity {
  kernels::Score score = kernels::Score::product;
  std::function<ScoreVectors(const torch::Tensor& q, const torch::Tensor& k)> vectors{};
};

/// What the fused kernel does for one model of an array.
struct ModelAttention {
  kernels::Score score = kernels::Score::product;
  kernels::RowNormalization normalization{};
  kernels::Dropout dropout{};
  std::size_t part = 0;         ///< which of the parts has its q and k,
  std::int64_t place = 0;       ///< and where
  std::int64_t direction = -1;  ///< its row of the directions; -1: it has none
};

/// The vectors of an array in parts, each with those of some models.
struct AttentionVectors {
  std::vector<torch::Tensor> q, k;  ///< each (M, B, T, H d)
  torch::Tensor v;                  ///< (R, B, T, H d)
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
