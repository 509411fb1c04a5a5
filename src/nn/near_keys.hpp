#pragma once

#include <cstdint>

#include <torch/types.h>

namespace nas::nn {

/// Queries and keys of heads, rotated, (M, B, H, T, d_k); phi of both, (.., f); values that end with a 1, (.., d + 1).
struct NearAndFar {
  torch::Tensor queries, keys, of_queries, of_keys, values;
};

/// Softmax over the last w keys and linear attention to those before, in one sum of weights:
///
///   o_t = sum_{t-w < j <= t} gamma e^(q_t.k_j / sqrt(d_k) - c_t) v_j + sum_{j <= t-w} phi(q_t).phi(k_j) v_j ,
///
/// c_t the largest of the exponents; the last entry is what divides the others. By chunks of w tokens, of which each sees
/// two by softmax: 4 w (d_k + d) operations a token, and 2 w (f + d) + 4 f d for the rest. Memory: 3 w numbers a token and
/// head, and f (d + 1) for each chunk.
///
/// @param gamma  (M, H).   @param w  from 1.   @return (M, B, H, T, d + 1).
/// @see Zhang et al. (2024), LoLCATs, arXiv:2410.10254, equation 6.
torch::Tensor near_and_far(const NearAndFar& sequence, const torch::Tensor& gamma, std::int64_t w);

/// The same of the last token. @param token  its query, and the last w keys and values, itself among them.
/// @param state  (M, B, H, f, d + 1), of the keys before; undefined: there are none.
torch::Tensor near_and_far_of_last(const NearAndFar& token, const torch::Tensor& gamma,
                                   const torch::Tensor& state);

}  // namespace nas::nn
