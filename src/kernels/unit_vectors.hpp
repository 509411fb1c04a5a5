#pragma once

#include <cstdint>

namespace nas::kernels {

/// Below this length a vector is divided by it instead of by its own.
inline constexpr double kShortestLength = 1e-12;

/// Vectors of length 1, row by row; a row's result does not depend on the rows around it:
///
///   y = x u,   u = 1 / max(|x|, kShortestLength)
///
/// @param x, y  (rows, width).   @param inverse_lengths  (rows), u: written.
template <class Real>
void unit_vectors(std::int64_t rows, std::int64_t width, const Real* x, Real* y,
                  Real* inverse_lengths);

/// dx = (g - y (g.y)) u; where the length is too short, g u.
///
/// @param y, inverse_lengths  of these rows, from unit_vectors().
/// @param gradient            g, w.r.t. y.   @param by_x  is written; may be `gradient`.
template <class Real>
void unit_vectors_backward(std::int64_t rows, std::int64_t width, const Real* y,
                           const Real* inverse_lengths, const Real* gradient, Real* by_x);

}  // namespace nas::kernels
