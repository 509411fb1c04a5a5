#pragma once

#include <array>

#include <torch/types.h>

#include "core/numerical_mode.hpp"

namespace nas::nn {

/// The two terms of a linear map of pairs [a, b], apart, for each model r of an array:
///
///   a W_a' + bias_r  and  b W_b',   [W_a W_b] = weight_r
///
/// As one operation on the CPU in mode `exact`, with one gradient by the weight; in the way of
/// linear() (nn/product.hpp) otherwise. Not for second derivatives.
///
/// @param a, b    (R, ..., N in), N vectors side by side.   @param weight  (R, out, 2 in).
/// @param bias    (R, out).
/// @return (R, ..., N out) each.
std::array<torch::Tensor, 2> joint_linear(const torch::Tensor& a, const torch::Tensor& b,
                                          const torch::Tensor& weight, const torch::Tensor& bias,
                                          NumericalMode mode);

}  // namespace nas::nn
