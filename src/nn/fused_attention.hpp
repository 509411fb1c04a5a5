#pragma once

#include <torch/types.h>

#include "kernels/attention.hpp"

namespace nas::nn {

/// What raw scores are computed from in the fused kernel: q and k (B, H, T, d), whatever has been
/// done to them before, and for Score::additive the direction v (d).
struct FusedScores {
  kernels::Score score = kernels::Score::product;
  torch::Tensor q;
  torch::Tensor k;
  torch::Tensor direction{};
};

/// Causal attention by blocks of queries, forward and backward (kernels/attention.hpp): no matrix
/// of all scores, no mask and no random number is stored, only the weights, for the backward pass.
/// On the CPU, float32 and float64; as many threads as LibTorch has, with the same result for any
/// number, except for LibTorch's own sums over heads. Not for second derivatives.
///
/// @param divisors  expands to (B, H, T, 1), positive and finite.   @param v  (B, H, T, d).
/// @return (B, T, H d), the weighted values.
torch::Tensor fused_attention(const FusedScores& scores,
                              const kernels::RowNormalization& normalization,
                              const torch::Tensor& divisors, const torch::Tensor& v,
                              const kernels::Dropout& dropout);

}  // namespace nas::nn
