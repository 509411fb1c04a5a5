#pragma once

#include <cstdint>

namespace nas::kernels {

/// Logarithms of decays, from rows (rows, columns) of logits one after the other:
///
///   y = max(-rate softplus(sign (x + bias)), least)
///
/// with one rate for `group` neighbouring columns.
struct LogDecay {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t group = 1;
  double sign = 1.0;   ///< 1, or -1: y = log_sigmoid(x + bias) rate
  double least = 0.0;  ///< -infinity: none
};

/// @param bias  (columns).   @param rates  (columns / group).   @param y  as x, written.
template <class Real>
void log_decay(const LogDecay& decay, const Real* x, const Real* bias, const Real* rates, Real* y);

/// Gradients: written, not added. Below `least` they are 0.
///
/// @param gradient  w.r.t. y.
/// @param by_bias, by_rate  (columns), each column's sums over the rows in their order.
template <class Real>
void log_decay_backward(const LogDecay& decay, const Real* x, const Real* bias, const Real* rates,
                        const Real* gradient, Real* by_x, Real* by_bias, Real* by_rate);

}  // namespace nas::kernels
