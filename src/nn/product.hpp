#pragma once

#include <cstdint>

#include <torch/types.h>

#include "core/numerical_mode.hpp"

namespace nas::nn {

/// A right factor B (k, n) on the CPU, float32 or float64, packed for many products
/// (kernels/product.hpp).
class PackedMatrix {
 public:
  /// @param b  any strides.
  explicit PackedMatrix(const torch::Tensor& b);

  /// c = initial + a B, on LibTorch's threads, with the same result for any number of them.
  ///
  /// @param a        (m, k), any strides.
  /// @param c        (m, n), rows contiguous.
  /// @param initial  (n), contiguous, added to each row; c itself; or undefined: zeros.
  void multiply(const torch::Tensor& a, const torch::Tensor& c,
                const torch::Tensor& initial = {}) const;

 private:
  std::int64_t k_, n_;
  torch::Tensor packed_;
};

// Products of numerical mode `fast`: factors are rounded to bfloat16 (8 bits of significand), sums
// are float32, and results are rounded to bfloat16 again. Processors with AVX512_BF16 and GPUs
// compute twice as many of these at a time; on others the rounded factors are multiplied as
// float32, results are not rounded, and nothing is gained.

/// Whether products of bfloat16 numbers are faster than those of float32 on the CPU.
bool has_bf16_products();

/// x as products on its device take it: bfloat16 values, of type bfloat16 or float32. float64
/// stays.
torch::Tensor rounded_factor(const torch::Tensor& x);

/// x W' + b as one operation in the way of a mode; backward likewise. Not for second derivatives.
///
/// @param x  (..., in).   @param weight  (out, in).   @param bias  (out), or undefined.
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                     NumericalMode mode);

}  // namespace nas::nn
