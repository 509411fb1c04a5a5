#pragma once

#include <cstdint>

#include <torch/types.h>

#include "core/numerical_mode.hpp"
#include "core/visibility.hpp"

namespace nas {

namespace NAS_PUBLIC nn {

/// Each model's mean over its scored targets of -log softmax(H E')[target], nats.
///
/// By the kernels, of the CPU or of a device (ops/device_operations.hpp), that is outside numerical
/// mode `reference`, the gradients are made in the forward pass, some rows of logits at a time, so
/// that the (N, V) matrix never exists: its memory and the traffic to it are most of what the
/// output layer costs besides its products. No model's loss depends on the others. Not for second
/// derivatives, and a graph is gone through backwards once.
///
/// @param features   H, (R, ..., D).   @param embedding  E, (R, V, D).
/// @param targets    (R, ...) int64, below V (on a device unchecked: that would make the host
///                   wait); below 0 where nothing is asked. At least one of each model's that are
///                   counted is not.
/// @param counted    (R, ...), the targets of the batch that these are a part of: sums are divided
///                   by the number of all of them, so that the losses of the parts add up to that
///                   of the batch. Undefined: `targets`.
/// @return (R).
torch::Tensor linear_cross_entropy(const torch::Tensor& features, const torch::Tensor& embedding,
                                   const torch::Tensor& targets, NumericalMode mode,
                                   const torch::Tensor& counted = {});

/// What the output layers of an array are computed from, and where gradients go; undefined: none
/// are asked for.
struct OutputLayer {
  torch::Tensor features;   ///< (R, N, D), contiguous
  torch::Tensor embedding;  ///< (R, V, D), contiguous
  torch::Tensor by_features{}, by_embedding{};

  [[nodiscard]] std::int64_t models() const { return features.size(0); }
  [[nodiscard]] std::int64_t tokens() const { return features.size(1); }
  [[nodiscard]] std::int64_t width() const { return features.size(2); }
  [[nodiscard]] std::int64_t vocabulary() const { return embedding.size(1); }
};

/// What the logits of N tokens of R models say about their targets.
struct TokenScores {
  torch::Tensor nll;      ///< (R, N) float64, 0 where nothing is asked
  torch::Tensor correct;  ///< (R, N) bool: the target is the first of the largest logits
};

/// Logits are made for a few rows at a time. Without gradients; arguments as above, features (R, N,
/// D) and targets (R, N).
TokenScores score_tokens(const torch::Tensor& features, const torch::Tensor& embedding,
                         const torch::Tensor& targets, NumericalMode mode);

/// What the logits of N tokens say beside another model's, without gradients.
struct Divergences {
  torch::Tensor nats;       ///< (N) float64: KL(p || softmax(logits))
  torch::Tensor nll;        ///< (N) float64: of the targets, 0 where nothing is asked
  torch::Tensor likeliest;  ///< (N) int64: the first of the largest logits
};

/// Logits are made for a few words of the vocabulary at a time and read where they lie: the (N, V) matrix never exists.
///
/// @param features   (N, D) float32 on the CPU.        @param embedding  (1, V, D).   @param targets  (N).
/// @param log_p      (N, V), the other model's log-probabilities.   @param likeliest  (N), its own.
Divergences divergences(const torch::Tensor& features, const torch::Tensor& embedding,
                        const torch::Tensor& log_p, const torch::Tensor& likeliest,
                        const torch::Tensor& targets, NumericalMode mode);

}  // namespace nn

}  // namespace nas
