#pragma once

#include <utility>

#include <torch/types.h>

#include "core/numerical_mode.hpp"

namespace nas::nn {

/// The vectors of tokens with those of their positions, in an array of R models:
///
///   y_rbt = E_r[token_rbt] + P_r[t]
///
/// Outside mode `reference`, one operation on the CPU and on devices with kernels of their own
/// (ops/device_operations.hpp), with gradients summed in a fixed order; not for second derivatives.
///
/// @param tokens     (R, B, T) int64, in [0, V) (on a device unchecked).
/// @param embedding  E, (R, V, D).   @param positions  P, (R, L, D), T <= L; undefined: none is added.
/// @return (R, B, T, D).
torch::Tensor embed(const torch::Tensor& tokens, const torch::Tensor& embedding,
                    const torch::Tensor& positions, NumericalMode mode);

/// embed() with E itself, for an output layer that is tied to it: on the CPU the backward pass adds gradients
/// of vectors to those of that layer where these are, if nobody else reads them.
std::pair<torch::Tensor, torch::Tensor> embed_tied(const torch::Tensor& tokens,
                                                   const torch::Tensor& embedding,
                                                   const torch::Tensor& positions,
                                                   NumericalMode mode);

}  // namespace nas::nn
