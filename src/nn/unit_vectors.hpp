#pragma once

#include <array>
#include <cstdint>

#include <torch/types.h>

namespace nas::nn {

/// x / max(|x|, 1e-12) along the last dimension, by LibTorch's operations.
torch::Tensor unit(const torch::Tensor& x);

/// The same for all vectors of `width` numbers that lie side by side in two tensors of one size, as
/// one operation: on the CPU by kernels/unit_vectors.hpp, so that a vector's numbers depend on
/// nothing around it. Not for second derivatives.
///
/// @param a, b  (..., N width), float32 or float64.
std::array<torch::Tensor, 2> unit_vectors(const torch::Tensor& a, const torch::Tensor& b,
                                          std::int64_t width);

}  // namespace nas::nn
