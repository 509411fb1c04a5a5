#pragma once

#include "nn/attention_layer.hpp"

namespace nas::test {

/// The attention layer of a model alone, without the leading dimension of an array.
class LoneLayer {
 public:
  LoneLayer(const Mechanism& mechanism, const AttentionShape& shape, Semantics semantics,
            const nn::ParameterScope& scope)
      : layer_({mechanism}, shape, semantics, scope) {}

  /// @param x, residual  (B, T, D).
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& residual, const nn::Pass& pass,
                        std::uint64_t site) {
    return layer_.forward(x.unsqueeze(0), residual.unsqueeze(0), pass, site)[0];
  }

 private:
  nn::AttentionLayer layer_;
};

}  // namespace nas::test
