#pragma once

#include <torch/types.h>

namespace nas::nn {

// How kernels of attention take (R, B, H, T, d): vectors contiguous, all else in any strides.

/// x, or a copy if its vectors are not contiguous.
inline torch::Tensor with_contiguous_vectors(const torch::Tensor& x) {
  return x.stride(-1) == 1 || x.size(-1) == 1 ? x : x.contiguous();
}

/// (R, B, H, T, d), laid out as (R, B, T, H, d), so that heads lie side by side.
inline torch::Tensor empty_heads(const torch::Tensor& like) {
  return at::empty({like.size(0), like.size(1), like.size(3), like.size(2), like.size(4)},
                   like.options())
      .transpose(2, 3);
}

/// (R, B, T, H d) as (R, B, H, T, d).
inline torch::Tensor as_heads(const torch::Tensor& x, std::int64_t heads) {
  return with_contiguous_vectors(
      x.view({x.size(0), x.size(1), x.size(2), heads, -1}).transpose(2, 3));
}

}  // namespace nas::nn
