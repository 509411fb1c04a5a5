#pragma once

#include <utility>

#include <torch/types.h>

#include "core/numerical_mode.hpp"

namespace nas::nn {

// Normalisation over the last dimension in an array of R models (kernels/norm.hpp). Outside mode
// `reference`, one operation: on the CPU on LibTorch's threads, of layer_norm() also on a device by
// its kernels (ops/device_operations.hpp); a model's numbers and gradients then depend on neither
// the number of threads nor R. Otherwise LibTorch's operations. Not for second derivatives.

/// y = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight_r + bias_r
///
/// @param x  (R, ..., D), float32 or float64.   @param weight, bias  (R, D), of x's type.
torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& weight,
                         const torch::Tensor& bias, double epsilon, NumericalMode mode);

/// layer_norm() with x itself, of which gradients come from both: on devices with kernels of their
/// own, the backward pass adds them at once.
std::pair<torch::Tensor, torch::Tensor> layer_norm_branch(const torch::Tensor& x,
                                                          const torch::Tensor& weight,
                                                          const torch::Tensor& bias, double epsilon,
                                                          NumericalMode mode);

/// y = x / sqrt(mean(x^2) + epsilon) * weight_r, likewise.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon,
                       NumericalMode mode);

}  // namespace nas::nn
