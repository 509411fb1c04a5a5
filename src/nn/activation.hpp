#pragma once

#include <torch/types.h>

#include "core/numerical_mode.hpp"

namespace nas::nn {

// LibTorch computes elementary functions of most elements by vectors and of the last few otherwise,
// so that a number depends, in its last digit, on its place in a tensor. These do not: what is
// computed for a model is the same in any array. On other devices, and in mode `reference`, they
// are LibTorch's.

/// 1 / (1 + e^-x).
torch::Tensor sigmoid(const torch::Tensor& x, NumericalMode mode);

/// e^x, one number after the other: for small tensors.
torch::Tensor exp(const torch::Tensor& x, NumericalMode mode);

}  // namespace nas::nn
