#pragma once

#include <cstdint>

#include <torch/types.h>

#include "ops/parameter.hpp"

namespace nas::nn {

/// y_t = sum_a w_a z_{t - K + 1 + a} for each channel: a causal convolution of K taps, of which the
/// last is the present; zero before the start.
/// @see So et al. (2021), Primer, arXiv:2109.08668.
class ShortConvolution {
 public:
  ShortConvolution(const ParameterScope& scope, std::int64_t channels, std::int64_t taps);

  /// @param z  (M, B, T, channels).   @return the same sizes.
  [[nodiscard]] torch::Tensor operator()(const torch::Tensor& z) const;
  /// One token further. @param z  (M, B, 1, channels).
  /// @param earlier  (M, B, K - 1, channels), the inputs before it, undefined before the first: then
  /// also z. It is never written to: copies may share it.   @return y of the newest, as z.
  [[nodiscard]] torch::Tensor next(const torch::Tensor& z, torch::Tensor& earlier) const;
  /// (M, channels, K).
  [[nodiscard]] const torch::Tensor& weight() const { return weight_; }
  [[nodiscard]] std::int64_t taps() const { return weight_.size(2); }

 private:
  torch::Tensor weight_;
};

}  // namespace nas::nn
