#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <torch/types.h>

namespace nas::nn {

/// What one layer of a model that has maps computed in a forward pass, without gradients. B sequences, H
/// heads, T tokens, D width. Of recurrent layers weights are what they do to values
/// (nn/implicit_map.hpp).
struct LayerRecord {
  /// (B, H, T, T), what the normalization reads: divided by the temperature, with the biases of
  /// positions and decays; those of hidden keys hold anything. Undefined of recurrent layers.
  torch::Tensor scores{};
  torch::Tensor weights{};     ///< (B, H, T, T), before dropout; exactly 0 for hidden keys
  torch::Tensor visible{};     ///< bool, (T, T), (H, T, T) or (B, H, T, T)
  torch::Tensor log_forget{};  ///< (B, H, T) float64, log f_t of attention; undefined: no gate
  torch::Tensor gate{};        ///< (B, T, D) or (B, T, H), in [0, 1]; undefined: there is none
  torch::Tensor gated{};       ///< (B, T, D), what the gate multiplies
};

/// What a recurrent layer keeps beside its map.
struct StateRecord {
  torch::Tensor state{};       ///< S after the last token, (B, H, f, d)
  torch::Tensor log_decays{};  ///< log alpha_t, (B, H, T, 1 or f); undefined where nothing decays
  /// Gates of the update, (B, H, T, n): beta of delta, n = 1; erase and write of delta2, n = d_k, d.
  std::map<std::string, torch::Tensor> gates{};
};

/// Receives what the layers of a lone model that have maps compute: give its address to the pass
/// (ops/dropout.hpp) in numerical mode reference, where weights exist as tensors. Layers that mix
/// otherwise add nothing.
struct AttentionRecord {
  std::vector<LayerRecord> layers{};            ///< in their order
  std::map<std::size_t, StateRecord> states{};  ///< of those that are recurrent, by place in layers
};

}  // namespace nas::nn
