#pragma once

#include <cstdint>
#include <memory>

#include <torch/types.h>

#include "nn/parts/option.hpp"
#include "nn/parts/vector_norm.hpp"
#include "ops/parameter.hpp"

namespace nas::nn {

/// Keys and values of all heads from one latent of r entries, which is all that is kept of a token:
///
///   c_t = RMSNorm(W_c x_t),  k = W_k c,  v = W_v c
///
/// Beside position rope queries and keys have a part more that alone rotates, of d / 2 entries: q^R = W_qR x of each
/// head, k^R = W_kR x of all. No biases.
/// @see DeepSeek-AI (2024), DeepSeek-V2, arXiv:2405.04434, section 2.1.
class Latent {
 public:
  /// @param context  of the layer.   @param rank  r.   @param rotates  whether there is such a part.
  Latent(const LayerContext& context, const ParameterScope& scope, std::int64_t rank, bool rotates);

  [[nodiscard]] std::int64_t rank() const { return k_up_.weight().size(2); }
  /// d / 2, or 0.
  [[nodiscard]] std::int64_t rotated_width() const { return rotated_; }
  /// @param x  (M, B, T, D).   @return c (M, B, T, r).
  [[nodiscard]] torch::Tensor compressed(const torch::Tensor& x) const;
  /// Of c, (M, B, T, D).
  [[nodiscard]] torch::Tensor keys(const torch::Tensor& latents) const { return k_up_(latents); }
  [[nodiscard]] torch::Tensor values(const torch::Tensor& latents) const { return v_up_(latents); }
  /// q^R (M, B, T, H d / 2) and k^R (M, B, T, d / 2), before they rotate.
  [[nodiscard]] torch::Tensor queries_to_rotate(const torch::Tensor& x) const { return q_rope_(x); }
  [[nodiscard]] torch::Tensor keys_to_rotate(const torch::Tensor& x) const { return k_rope_(x); }

  // Of one model, without gradients: latents themselves as the keys and values of all heads.
  /// W_k' q, of which products with c are q.k. @param queries  (1, B, H, 1, d).   @return (1, B, H, 1, r).
  [[nodiscard]] torch::Tensor absorbed(const torch::Tensor& queries) const;
  /// W_v of weighted latents (1, B, H, 1, r), (1, B, H, 1, d).
  [[nodiscard]] torch::Tensor expanded(const torch::Tensor& mixed) const;

 private:
  std::int64_t heads_, rotated_;
  Linear kv_down_, k_up_, v_up_, q_rope_, k_rope_;
  std::unique_ptr<VectorNorm> norm_;
};

}  // namespace nas::nn
