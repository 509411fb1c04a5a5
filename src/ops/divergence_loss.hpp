#pragma once

#include <cstdint>

#include <torch/types.h>

#include "core/numerical_mode.hpp"
#include "ops/loss.hpp"

namespace nas::nn {

/// Of each model the mean over N tokens of KL(softmax(told) || softmax(H E')), nats: what another model says of these
/// tokens is told by the features that its logits are made of, and no gradient goes there.
///
/// On the CPU, outside numerical mode `reference`, as linear_cross_entropy(): gradients are made in the forward pass, some
/// rows of both models' logits at a time, and no (N, V) matrix exists. Loss and gradients are exactly 0 where both are equal.
///
/// @param features   H, (R, ..., D).   @param embedding  E, (R, V, D).
/// @param told       of the other models, (R, N, D') and (R, V, D').
/// @param counted    the N by which sums are divided, where these tokens are a part of them; 0: theirs.
/// @return (R).
torch::Tensor linear_divergence(const torch::Tensor& features, const torch::Tensor& embedding,
                                const OutputLayer& told, NumericalMode mode,
                                std::int64_t counted = 0);

}  // namespace nas::nn
