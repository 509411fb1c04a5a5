#pragma once

#include <torch/types.h>

#include "core/numerical_mode.hpp"

namespace nas::nn {

/// Layer normalisation over the last dimension in an array of R models (kernels/layer_norm.hpp):
///
///   y = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight_r + bias_r
///
/// Outside mode `reference`, one operation: on the CPU on LibTorch's threads, on a device by its
/// kernels (ops/device_operations.hpp); a model's numbers and gradients then depend on neither the
/// number of threads nor R. Not for second derivatives.
///
/// @param x  (R, ..., D), float32 or float64.   @param weight, bias  (R, D), of x's type.
torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& weight,
                         const torch::Tensor& bias, double epsilon, NumericalMode mode);

}  // namespace nas::nn
