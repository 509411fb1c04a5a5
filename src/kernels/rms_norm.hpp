#pragma once

#include <cstdint>

#include "kernels/layer_norm.hpp"

namespace nas::kernels {

/// Where gradients go. They are written, not added.
template <class Real>
struct RmsNormGradients {
  const Real* output = nullptr;  ///< w.r.t. y: given
  Real* x = nullptr;
  Real* weight = nullptr;  ///< (width), summed over the rows in their order
};

/// Root mean square normalisation (Zhang & Sennrich 2019, arXiv:1910.07467), row by row:
///
///   y = x / sqrt(mean(x^2) + epsilon) * weight
///
/// A row's result does not depend on the rows around it.
///
/// @param y  (rows, width).   @param inverse_scale  (rows), 1 / sqrt(mean(x^2) + epsilon): written.
template <class Real>
void rms_norm(const LayerNormRows<Real>& rows, double epsilon, Real* y, Real* inverse_scale);

/// @param inverse_scale  of these rows, from rms_norm().
template <class Real>
void rms_norm_backward(const LayerNormRows<Real>& rows, const Real* inverse_scale,
                       const RmsNormGradients<Real>& gradients);

}  // namespace nas::kernels
