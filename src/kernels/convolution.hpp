#pragma once

#include <cstdint>

namespace nas::kernels {

/// Tokens (T, channels) of one sequence, one after the other, of which each channel is convolved with
/// its own K taps, goes through SiLU, and vectors of neighbouring channels get length 1:
///
///   a_t = silu(sum_i w_i z_{t-K+1+i}),   y_t = a_t / sqrt(|a_t|^2 + epsilon)
///
/// with z zero before the start.
struct ConvolutionShape {
  std::int64_t tokens = 0;
  std::int64_t channels = 0;
  std::int64_t taps = 1;   ///< K
  std::int64_t width = 0;  ///< of the vectors, which divides channels; 0: y = a
  double epsilon = 0.0;
};

/// @param weight  w (K, channels), the last row of the present; null: K = 1, w = 1.
/// @param y       (T, channels), written.
template <class Real>
void activated_convolution(const ConvolutionShape& shape, const Real* z, const Real* weight,
                           Real* y);

/// @return elements of the memory that the backward pass works in.
std::int64_t convolution_scratch(const ConvolutionShape& shape);

/// Gradients: written, not added.
///
/// @param gradient   w.r.t. y.
/// @param by_weight  (K, channels), sums over the tokens from the last to the first; null without w.
template <class Real>
void activated_convolution_backward(const ConvolutionShape& shape, const Real* z,
                                    const Real* weight, const Real* gradient, Real* by_z,
                                    Real* by_weight, Real* scratch);

}  // namespace nas::kernels
