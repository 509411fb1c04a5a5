#pragma once

#include <cstdint>

#include "kernels/cuda/stream.hpp"

namespace nas::cuda {

/// Rows x of D elements, n of them per model, and weights w and biases b of each model:
///
///   y = w (x - mean(x)) / sqrt(var(x) + epsilon) + b
///
/// (Ba, Kiros & Hinton 2016, arXiv:1607.06450), the variance without Bessel's correction.
template <class Real>
struct LayerNorm {
  std::int64_t models = 0;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  const Real* x = nullptr;       ///< (R, n, D)
  const Real* weight = nullptr;  ///< (R, D)
  Real* means = nullptr;         ///< (R, n): written by the forward pass for the backward pass
  Real* inverse_deviations = nullptr;  ///< (R, n)
};

/// @param bias  (R, D).   @param y  (R, n, D).
template <class Real>
void layer_norm(const LayerNorm<Real>& rows, const Real* bias, double epsilon, Real* y,
                Stream stream);

/// Where gradients go. They are written, not added.
template <class Real>
struct LayerNormGradients {
  const Real* y = nullptr;       ///< w.r.t. y: given
  const Real* beside = nullptr;  ///< added to that w.r.t. x; null: 0
  Real* x = nullptr;             ///< may be that w.r.t. y
  Real* weight = nullptr;        ///< (R, D)
  Real* bias = nullptr;          ///< (R, D)
  Real* scratch = nullptr;       ///< layer_norm_scratch_size() numbers
};

template <class Real>
std::int64_t layer_norm_scratch_size(const LayerNorm<Real>& rows);

/// Two launches: dx with sums of dw and db over chunks of rows, and the chunks in order.
template <class Real>
void layer_norm_backward(const LayerNorm<Real>& rows, const LayerNormGradients<Real>& gradients,
                         Stream stream);

}  // namespace nas::cuda
