#pragma once

#include <cstdint>

namespace nas::kernels {

/// Rows (rows, width), one after the other, that are normalised with one weight. With a bias this is
/// layer normalisation (Ba, Kiros & Hinton 2016, arXiv:1607.06450), row by row:
///
///   y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * weight + bias
///
/// and without one root mean square normalisation (Zhang & Sennrich 2019, arXiv:1910.07467):
///
///   y = x / sqrt(mean(x^2) + epsilon) * weight
///
/// A row's result does not depend on the rows around it.
template <class Real>
struct NormRows {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  const Real* x = nullptr;
  const Real* weight = nullptr;  ///< (width)
  const Real* bias = nullptr;    ///< (width), or null
};

/// Of each row the mean, which is not used without a bias, and what the row is multiplied by.
template <class Real>
struct RowMoments {
  Real* mean = nullptr;
  Real* inverse_deviation = nullptr;
};

/// Where gradients go. They are written, not added.
template <class Real>
struct NormGradients {
  const Real* output = nullptr;  ///< w.r.t. y: given
  Real* x = nullptr;
  Real* weight = nullptr;  ///< (width), summed over the rows in their order
  Real* bias = nullptr;    ///< likewise; null without one
};

/// @param y  (rows, width).   @param moments  are written.
template <class Real>
void norm(const NormRows<Real>& rows, double epsilon, Real* y, const RowMoments<Real>& moments);

/// @param moments  of these rows, from norm().
template <class Real>
void norm_backward(const NormRows<Real>& rows, const RowMoments<const Real>& moments,
                   const NormGradients<Real>& gradients);

}  // namespace nas::kernels
