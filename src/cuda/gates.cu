#include "cuda/elementwise.cuh"
#include "cuda/gates.hpp"
#include "cuda/math.cuh"

namespace nas::cuda {

namespace {

/// Calls run(gate, at, logit) for the thread's elements: where an element is, and its logit if
/// there is a gate.
template <class Run>
__device__ void for_gated(const Gates& gates, const Run& run) {
  const std::int64_t model = blockIdx.y;
  const Gate gate = gates.gates[model];
  for_elements(gates.size, [&](std::int64_t i) {
    run(gate, model * gates.size + i, gate.row * gates.size + i);
  });
}

template <class Real>
__global__ void input_kernel(Gates gates, const Real* logits, const Real* x, Real* out) {
  for_gated(gates, [&](const Gate& gate, std::int64_t at, std::int64_t logit) {
    out[at] = gate.kind == GateKind::input ? logistic(logits[logit]) * x[at] : x[at];
  });
}

template <class Real>
__global__ void input_backward_kernel(Gates gates, const Real* logits, const Real* x,
                                      const Real* gradient, Real* dlogits, Real* dx) {
  for_gated(gates, [&](const Gate& gate, std::int64_t at, std::int64_t logit) {
    const Real g = gradient[at];
    if (gate.kind != GateKind::input) {
      dx[at] = g;
      return;
    }
    const Real s = logistic(logits[logit]);
    dlogits[logit] = g * x[at] * s * (1 - s);
    dx[at] = g * s;
  });
}

template <class Real>
__global__ void increment_kernel(Gates gates, GateInputs<const Real> inputs, Real* out) {
  for_gated(gates, [&](const Gate& gate, std::int64_t at, std::int64_t logit) {
    const Real o = inputs.output[at];
    switch (gate.kind) {
      case GateKind::none:
      case GateKind::input:
        out[at] = o;
        break;
      case GateKind::output:
        out[at] = logistic(inputs.logits[logit]) * o;
        break;
      case GateKind::highway:
        out[at] = logistic(inputs.logits[logit]) * (o - inputs.residual[at]);
        break;
      case GateKind::normed: {
        const Real s = logistic(inputs.logits[logit]);
        out[at] = s * o + (1 - s) * inputs.input[at];
        break;
      }
    }
  });
}

template <class Real>
__global__ void increment_backward_kernel(Gates gates, GateInputs<const Real> inputs,
                                          const Real* gradient, GateInputs<Real> gradients) {
  for_gated(gates, [&](const Gate& gate, std::int64_t at, std::int64_t logit) {
    const Real g = gradient[at];
    if (gate.kind == GateKind::none || gate.kind == GateKind::input) {
      gradients.output[at] = g;
      gradients.input[at] = 0;
      gradients.residual[at] = 0;
      return;
    }
    const Real s = logistic(inputs.logits[logit]);
    // The increment is s (o - other) + a part without s.
    Real other = 0;
    if (gate.kind == GateKind::highway) other = inputs.residual[at];
    if (gate.kind == GateKind::normed) other = inputs.input[at];
    gradients.logits[logit] = g * (inputs.output[at] - other) * s * (1 - s);
    gradients.output[at] = g * s;
    gradients.input[at] = gate.kind == GateKind::normed ? g * (1 - s) : Real{0};
    gradients.residual[at] = gate.kind == GateKind::highway ? -g * s : Real{0};
  });
}

}  // namespace

template <class Real>
void gate_input(const Gates& gates, const Real* logits, const Real* x, Real* out, Stream stream) {
  launch("gate_input", input_kernel<Real>, elements_grid(gates.models, gates.size), 0, stream,
         gates, logits, x, out);
}

template <class Real>
void gate_input_backward(const Gates& gates, const Real* logits, const Real* x,
                         const Real* gradient, Real* dlogits, Real* dx, Stream stream) {
  launch("gate_input_backward", input_backward_kernel<Real>,
         elements_grid(gates.models, gates.size), 0, stream, gates, logits, x, gradient, dlogits,
         dx);
}

template <class Real>
void gate_increment(const Gates& gates, const GateInputs<const Real>& inputs, Real* out,
                    Stream stream) {
  launch("gate_increment", increment_kernel<Real>, elements_grid(gates.models, gates.size), 0,
         stream, gates, inputs, out);
}

template <class Real>
void gate_increment_backward(const Gates& gates, const GateInputs<const Real>& inputs,
                             const Real* gradient, const GateInputs<Real>& gradients,
                             Stream stream) {
  launch("gate_increment_backward", increment_backward_kernel<Real>,
         elements_grid(gates.models, gates.size), 0, stream, gates, inputs, gradient, gradients);
}

#define NAS_GATES(Real)                                                                           \
  template void gate_input(const Gates&, const Real*, const Real*, Real*, Stream);                \
  template void gate_input_backward(const Gates&, const Real*, const Real*, const Real*, Real*,   \
                                    Real*, Stream);                                               \
  template void gate_increment(const Gates&, const GateInputs<const Real>&, Real*, Stream);       \
  template void gate_increment_backward(const Gates&, const GateInputs<const Real>&, const Real*, \
                                        const GateInputs<Real>&, Stream);
NAS_GATES(float)
NAS_GATES(double)
#undef NAS_GATES

}  // namespace nas::cuda
