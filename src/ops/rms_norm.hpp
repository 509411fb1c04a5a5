#pragma once

#include <torch/types.h>

#include "core/numerical_mode.hpp"

namespace nas::nn {

/// Root mean square normalisation over the last dimension in an array of R models
/// (kernels/rms_norm.hpp):
///
///   y = x / sqrt(mean(x^2) + epsilon) * weight_r
///
/// On the CPU outside mode `reference`, one operation on LibTorch's threads; a model's numbers and
/// gradients then depend on neither the number of threads nor R. Otherwise LibTorch's operations.
/// Not for second derivatives.
///
/// @param x  (R, ..., D), float32 or float64.   @param weight  (R, D), of x's type.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon,
                       NumericalMode mode);

}  // namespace nas::nn
