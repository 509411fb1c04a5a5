#pragma once

#include <vector>

#include <torch/types.h>

namespace nas::nn {

/// What one attention layer of a model computed in a forward pass, without gradients. B sequences, H
/// heads, T tokens, D width.
struct LayerRecord {
  /// (B, H, T, T), what the normalization reads: divided by the temperature, with the biases of
  /// positions and decays; those of hidden keys hold anything.
  torch::Tensor scores{};
  torch::Tensor weights{};     ///< (B, H, T, T), before dropout; exactly 0 for hidden keys
  torch::Tensor visible{};     ///< bool, (T, T), (H, T, T) or (B, H, T, T)
  torch::Tensor log_forget{};  ///< (B, H, T) float64, log f_t; undefined where nothing decays
  torch::Tensor gate{};        ///< (B, T, D) or (B, T, H), in [0, 1]; undefined: there is none
  torch::Tensor gated{};       ///< (B, T, D), what the gate multiplies
};

/// Receives what the attention layers of a lone model compute: give its address to the pass
/// (ops/dropout.hpp) in numerical mode reference, where weights exist as tensors. Layers that mix
/// otherwise add nothing.
struct AttentionRecord {
  std::vector<LayerRecord> layers{};  ///< in their order
};

}  // namespace nas::nn
