#pragma once

#include <cstdint>

#include <torch/types.h>

#include "ops/recurrence.hpp"

namespace nas::nn {

/// The whole sequence by chunks of C tokens: products of matrices within them, and from one to the
/// next the state. By the definition a token takes 4 f d operations, by chunks about 2 C (f + d) more,
/// but few operations for many tokens.
///
/// With L_t the sum of log alpha from a chunk's start: A_ij = q_i.k_j e^(L_i - L_j) for j <= i, W_ij =
/// e_i.k_j e^(L_i - L_j) for j < i, (I + W) U = V - e^L E S (without E: U = V), O = e^L Q S + A U, and S
/// <- e^(L_C) S + (e^(L_C - L) K)' U. Of channels decays stand with q, e and k, relative to the middle
/// of chunks of at most 16 tokens, so that no power leaves the range of float32.
///
/// @param chunk  C >= 1; 0: a size that suits.
/// @see Yang et al. (2024), arXiv:2406.06484, section 3; Yang et al. (2023), arXiv:2312.06635,
/// section 4.
Recurred by_chunks(const Recurrence& sequence, std::int64_t chunk = 0);

/// One token more, T = 1. @param state  (..., f, d), before it.
Recurred next_token(const Recurrence& token, const torch::Tensor& state);

}  // namespace nas::nn
