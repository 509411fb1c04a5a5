#pragma once

#include <cstdint>

#include <torch/types.h>

#include "ops/dropout.hpp"

namespace nas::nn {

/// What mixes positions in one block of each model of an array: the only part of a block through
/// which tokens see each other. Attention (nn/attention.hpp) is one.
///
///   h <- h + mixer(LayerNorm(h), h)
///
/// What is added at a token depends on this and earlier tokens alone. A mixer takes its parameters
/// from a scope when it is made, for the R models of that scope.
class Mixer {
 public:
  virtual ~Mixer() = default;

  /// @param x         (R, B, T, D), LayerNorm of the residual stream.
  /// @param residual  (R, B, T, D), the residual stream h.
  /// @param site      the dropout site of the pass that is the mixer's.
  /// @return what is added to h, (R, B, T, D).
  virtual torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& residual,
                                const Pass& pass, std::uint64_t site) = 0;
};

}  // namespace nas::nn
