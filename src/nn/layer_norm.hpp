#pragma once

#include <torch/types.h>

#include "core/numerical_mode.hpp"

namespace nas::nn {

/// Layer normalisation over the last dimension in an array of R models (kernels/layer_norm.hpp):
///
///   y = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight_r + bias_r
///
/// On the CPU, outside mode `reference`, one operation on LibTorch's threads; a model's numbers and
/// gradients then depend on neither their number nor R. Not for second derivatives.
///
/// @param x  (R, ..., D), float32 or float64.   @param weight, bias  (R, D), of x's type.
torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& weight,
                         const torch::Tensor& bias, double epsilon, NumericalMode mode);

}  // namespace nas::nn
