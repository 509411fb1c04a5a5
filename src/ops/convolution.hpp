#pragma once

#include <cstdint>

#include <torch/types.h>

namespace nas::nn {

/// Causal convolutions of channels, SiLU and vectors of length 1 (kernels/convolution.hpp) as one
/// operation on the CPU, on LibTorch's threads: a model's numbers depend on neither them nor others.
/// Not for second derivatives.
///
/// @param z        (R, B, T, channels), float32 or float64.
/// @param weight   (R, channels, K), the last tap of the present; undefined: z itself.
/// @param width    of the vectors; 0: they keep their lengths.   @param epsilon  added to |.|^2.
torch::Tensor activated_convolution(const torch::Tensor& z, const torch::Tensor& weight,
                                    std::int64_t width, double epsilon);

}  // namespace nas::nn
