#pragma once

#include <torch/types.h>

#include "ops/recurrence.hpp"

namespace nas::nn {

/// What recurrent heads do to values, written as attention: A with o_i = sum_j A_ij v_j. With the
/// names of recurrence.hpp, decays put in with queries, erased vectors and keys,
///
///   A = lower(Q K') (I + strictly_lower(E K'))^-1 diag(write)
///
/// which is lower(Q K') where nothing is erased. Of update delta, E = beta K and write = beta, so that
/// A is of values as they are projected. Of delta2 each channel of a value is written by another gate,
/// so that there is no such A of values: write is left out, and A is of what is written, w_j . v_j.
/// Computed as the outputs of values that are unit vectors, one for each token, by chunks in float64:
/// no power of a decay leaves its range. Cost: the recurrence with T channels in place of d, one
/// sequence at a time.
///
/// @param sequence  tensors (B, H, T, n); values are not read.
/// @param write     (B, H, T, 1); undefined: 1.
/// @return (B, H, T, T) float64; 0 for keys ahead of a query.
/// @see Ali et al. (2024), arXiv:2403.01590; Yang et al. (2024), arXiv:2406.06484, section 3.
torch::Tensor implicit_map(const Recurrence& sequence, const torch::Tensor& write = {});

}  // namespace nas::nn
