#pragma once

#include <torch/types.h>

namespace nas::nn {

/// Logarithms of decays from logits x (R, ..., H n), float32 or float64, of H heads each, as one operation on the
/// CPU, on LibTorch's threads (kernels/log_decay.hpp): a model's numbers depend on neither them nor
/// others. Not for second derivatives.
///
///   softplus_decay  max(-e^a softplus(x + bias), least), a (R, H)
///   sigmoid_decay   max(log_sigmoid(x + bias) / tau, least)
///
/// @param bias  (R, H n).   @param least  -infinity: none.
torch::Tensor softplus_decay(const torch::Tensor& x, const torch::Tensor& bias,
                             const torch::Tensor& log_rates, double least);
torch::Tensor sigmoid_decay(const torch::Tensor& x, const torch::Tensor& bias, double tau,
                            double least);

}  // namespace nas::nn
