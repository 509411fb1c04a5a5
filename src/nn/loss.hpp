#pragma once

#include <torch/types.h>

#include "core/numerical_mode.hpp"

namespace nas::nn {

/// Mean over the scored targets of -log softmax(H E')[target], nats.
///
/// Outside numerical mode `reference` the gradients are made in the forward pass, a few rows of
/// logits at a time, so that the (N, V) matrix never exists: its memory and the traffic to it are
/// most of what the output layer costs besides its products. Not for second derivatives.
///
/// @param features   H, (N, D).   @param embedding  E, (V, D).
/// @param targets    (N) int64, below V; below 0 where nothing is asked. At least one is not.
torch::Tensor linear_cross_entropy(const torch::Tensor& features, const torch::Tensor& embedding,
                                   const torch::Tensor& targets, NumericalMode mode);

/// What the logits of N tokens say about their targets.
struct TokenScores {
  torch::Tensor nll;      ///< (N) float64, 0 where nothing is asked
  torch::Tensor correct;  ///< (N) bool: the target has the (first) largest logit
};

/// The same without gradients, token by token; a few rows of logits at a time in every mode.
TokenScores score_tokens(const torch::Tensor& features, const torch::Tensor& embedding,
                         const torch::Tensor& targets, NumericalMode mode);

}  // namespace nas::nn
