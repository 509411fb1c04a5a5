#pragma once

#include <cstdint>

namespace nas::kernels {

/// Rows (rows, width) of heads, one after the other, times a gate:
///
///   y = x g(l) factor,   g(l) = 1 / (1 + e^-l), or l / (1 + e^-l)
struct HeadGate {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  bool of_rows = false;  ///< l (rows), and not (rows, width)
  bool silu = false;     ///< the second g
  double factor = 1.0;
};

/// @param y  (rows, width), written.
template <class Real>
void head_gate(const HeadGate& gate, const Real* x, const Real* logits, Real* y);

/// Gradients: written, not added. @param gradient  w.r.t. y.
template <class Real>
void head_gate_backward(const HeadGate& gate, const Real* x, const Real* logits,
                        const Real* gradient, Real* by_x, Real* by_logits);

}  // namespace nas::kernels
