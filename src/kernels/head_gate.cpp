#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/head_gate.cpp"
#include <hwy/foreach_target.h>

#include "kernels/head_gate.hpp"
#include "kernels/partial_vector-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

template <class Real>
struct GateValue {
  Vector<Wide<Real>> value, slope;
};

template <class Real>
HWY_INLINE GateValue<Real> gate_of(const HeadGate& gate, Vector<Wide<Real>> logits) {
  const Wide<Real> d;
  const auto one = hn::Set(d, Real{1});
  const auto factor = hn::Set(d, static_cast<Real>(gate.factor));
  const auto s = logistic(d, logits);
  const auto scaled = hn::Mul(s, factor);
  if (!gate.silu) return {scaled, hn::Mul(scaled, hn::Sub(one, s))};
  return {hn::Mul(logits, scaled), hn::Mul(scaled, hn::MulAdd(logits, hn::Sub(one, s), one))};
}

template <class Real>
void forward_all(const HeadGate& gate, const Real* x, const Real* logits, Real* y) {
  const Wide<Real> d;
  if (!gate.of_rows) {
    for_each_part(d, gate.rows * gate.width, [&](std::int64_t i, auto part) {
      part.store(hn::Mul(part.load(x + i), gate_of<Real>(gate, part.load(logits + i)).value),
                 y + i);
    });
    return;
  }
  for (std::int64_t row = 0; row < gate.rows; ++row, x += gate.width, y += gate.width) {
    const auto value = gate_of<Real>(gate, hn::Set(d, logits[row])).value;
    for_each_part(d, gate.width, [&](std::int64_t i, auto part) {
      part.store(hn::Mul(part.load(x + i), value), y + i);
    });
  }
}

template <class Real>
void backward_all(const HeadGate& gate, const Real* x, const Real* logits, const Real* gradient,
                  Real* by_x, Real* by_logits) {
  const Wide<Real> d;
  if (!gate.of_rows) {
    for_each_part(d, gate.rows * gate.width, [&](std::int64_t i, auto part) {
      const auto [value, slope] = gate_of<Real>(gate, part.load(logits + i));
      const auto by = part.load(gradient + i);
      part.store(hn::Mul(hn::Mul(by, part.load(x + i)), slope), by_logits + i);
      part.store(hn::Mul(by, value), by_x + i);
    });
    return;
  }
  for (std::int64_t row = 0; row < gate.rows; ++row) {
    const auto of_row = gate_of<Real>(gate, hn::Set(d, logits[row]));
    const auto first = row * gate.width;
    auto sum = hn::Zero(d);
    for_each_part(d, gate.width, [&](std::int64_t i, auto part) {
      const auto by = part.load(gradient + first + i);
      sum = hn::MulAdd(by, part.load(x + first + i), sum);
      part.store(hn::Mul(by, of_row.value), by_x + first + i);
    });
    by_logits[row] = sum_of(d, sum) * hn::GetLane(of_row.slope);
  }
}

NAS_KERNEL(forward, forward_all)
NAS_KERNEL(backward, backward_all)

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nas::kernels {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

template <class Real>
void head_gate(const HeadGate& gate, const Real* x, const Real* logits, Real* y) {
  NAS_CALL(forward, head_gate<Real>)(gate, x, logits, y);
}

template <class Real>
void head_gate_backward(const HeadGate& gate, const Real* x, const Real* logits,
                        const Real* gradient, Real* by_x, Real* by_logits) {
  NAS_CALL(backward, head_gate_backward<Real>)(gate, x, logits, gradient, by_x, by_logits);
}

NAS_INSTANTIATE(head_gate)
NAS_INSTANTIATE(head_gate_backward)

}  // namespace nas::kernels
#endif
