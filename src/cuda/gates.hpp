#pragma once

#include <cstdint>

#include "cuda/stream.hpp"

namespace nas::cuda {

/// What a sigmoid gate s of a sublayer combines: its input x, its output o and the residual stream
/// h, as the components of src/attention/gating do. The sublayer reads input and adds increment:
///
///   kind      input    increment
///   none      x        o
///   input     s x      o
///   output    x        s o
///   highway   x        s (o - h)
///   normed    x        s o + (1 - s) x
enum class GateKind : std::int32_t { none, input, output, highway, normed };

/// The gate of one model.
struct Gate {
  GateKind kind = GateKind::none;
  std::int32_t row = -1;  ///< which of the rows of logits is its; without a gate: none
};

/// Tensors of `size` elements a model; logits, s = sigmoid(logit), are rows of `size` elements for
/// those models only that have gates.
struct Gates {
  const Gate* gates = nullptr;  ///< (R)
  std::int64_t models = 0;      ///< R
  std::int64_t size = 0;
};

/// out = input.
template <class Real>
void gate_input(const Gates& gates, const Real* logits, const Real* x, Real* out, Stream stream);

/// Gradients by x, and by the logits of models whose gate is on the input; other rows are left.
template <class Real>
void gate_input_backward(const Gates& gates, const Real* logits, const Real* x,
                         const Real* gradient, Real* dlogits, Real* dx, Stream stream);

/// What goes into an increment, or gradients by it.
template <class Real>
struct GateInputs {
  Real* logits = nullptr;
  Real* output = nullptr;    ///< o
  Real* input = nullptr;     ///< x
  Real* residual = nullptr;  ///< h
};

/// out = increment.
template <class Real>
void gate_increment(const Gates& gates, const GateInputs<const Real>& inputs, Real* out,
                    Stream stream);

/// Gradients by o, x and h, 0 where a kind does not read them, and by the logits of models whose
/// gate is on the increment; other rows are left.
template <class Real>
void gate_increment_backward(const Gates& gates, const GateInputs<const Real>& inputs,
                             const Real* gradient, const GateInputs<Real>& gradients,
                             Stream stream);

}  // namespace nas::cuda
