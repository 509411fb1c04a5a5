#pragma once

#include <array>
#include <cstdint>

#include "kernels/dropout.hpp"

namespace nas::kernels {

/// A map of the elements of one to three tensors x, y, z of one size. Dropout multiplies by its scale
/// or by 0.
enum class Map {
  drop,         ///< dropout(x)
  add_dropped,  ///< y + dropout(x)
  /// dropout(x Phi(x)) with the exact normal distribution function (Hendrycks & Gimpel 2016,
  /// arXiv:1606.08415); in float within 1e-6 of the result for x > -5, and 0 below -13.
  gelu,
  gelu_backward,  ///< dropout(y) (Phi(x) + x phi(x)), y the gradient
  /// dropout(silu(x) y), silu(g) = g / (1 + e^-g): a gated linear unit's hidden layer (Shazeer 2020,
  /// arXiv:2002.05202). Its gradient w.r.t. y is the same map of x and that of the output.
  swiglu,
  swiglu_backward,  ///< dropout(z) y silu'(x): the gradient w.r.t. x, z that w.r.t. the output
};

/// Of x, y and z; null where the map has fewer.
template <class Real>
using MapInputs = std::array<const Real*, 3>;

/// Maps elements [first, first + size) of tensors in row-major order, given by pointers to element
/// `first`. `out` may be one of the inputs.
template <class Real>
void map_elements(Map map, const MapInputs<Real>& in, Real* out, std::int64_t first,
                  std::int64_t size, const Dropout& dropout);

}  // namespace nas::kernels
