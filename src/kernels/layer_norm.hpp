#pragma once

#include <cstdint>

namespace nas::kernels {

/// Rows (rows, width), one after the other, that are normalised with one weight.
template <class Real>
struct LayerNormRows {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  const Real* x = nullptr;
  const Real* weight = nullptr;  ///< (width)
};

/// Mean and 1 / sqrt(variance + epsilon) of each row.
template <class Real>
struct RowMoments {
  Real* mean = nullptr;
  Real* inverse_deviation = nullptr;
};

/// Where gradients go. They are written, not added.
template <class Real>
struct LayerNormGradients {
  const Real* output = nullptr;  ///< w.r.t. y: given
  Real* x = nullptr;
  Real* weight = nullptr;  ///< (width), summed over the rows in their order
  Real* bias = nullptr;    ///< likewise
};

/// Layer normalisation (Ba, Kiros & Hinton 2016, arXiv:1607.06450), row by row:
///
///   y = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias,   variance = mean((x -
///   mean)^2)
///
/// A row's result does not depend on the rows around it.
///
/// @param bias  (width).   @param y  (rows, width).   @param moments  are written.
template <class Real>
void layer_norm(const LayerNormRows<Real>& rows, const Real* bias, double epsilon, Real* y,
                const RowMoments<Real>& moments);

/// @param moments  of these rows, from layer_norm().
template <class Real>
void layer_norm_backward(const LayerNormRows<Real>& rows, const RowMoments<const Real>& moments,
                         const LayerNormGradients<Real>& gradients);

}  // namespace nas::kernels
