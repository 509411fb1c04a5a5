#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/log_decay.cpp"
#include <algorithm>

#include <hwy/foreach_target.h>

#include "kernels/log_decay.hpp"
#include "kernels/partial_vector-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

template <class Real>
HWY_INLINE Vector<Wide<Real>> softplus(Vector<Wide<Real>> x) {
  const Wide<Real> d;
  const auto tail = hn::Log1p(d, exponential(d, hn::Neg(hn::Abs(x))));
  return hn::Add(at_least(hn::Zero(d), x), tail);
}

/// Calls run(column, rate, part) for vectors of columns of one rate.
template <class Real, class Run>
HWY_INLINE void for_columns(const LogDecay& decay, const Real* rates, const Run& run) {
  const Wide<Real> d;
  for (std::int64_t first = 0; first < decay.columns; first += decay.group, ++rates) {
    const auto rate = hn::Set(d, *rates);
    for_each_part(d, decay.group, [&](std::int64_t i, auto part) { run(first + i, rate, part); });
  }
}

template <class Real>
void forward_all(const LogDecay& decay, const Real* x, const Real* bias, const Real* rates,
                 Real* y) {
  const Wide<Real> d;
  const auto sign = hn::Set(d, static_cast<Real>(decay.sign));
  const auto least = hn::Set(d, static_cast<Real>(decay.least));
  for (std::int64_t row = 0; row < decay.rows; ++row, x += decay.columns, y += decay.columns) {
    for_columns(decay, rates, [&](std::int64_t i, auto rate, auto part) {
      const auto at = hn::Mul(sign, hn::Add(part.load(x + i), part.load(bias + i)));
      const auto value = hn::Neg(hn::Mul(rate, softplus<Real>(at)));
      part.store(at_least(least, value), y + i);
    });
  }
}

template <class Real>
void backward_all(const LogDecay& decay, const Real* x, const Real* bias, const Real* rates,
                  const Real* gradient, Real* by_x, Real* by_bias, Real* by_rate) {
  const Wide<Real> d;
  const auto sign = hn::Set(d, static_cast<Real>(decay.sign));
  const auto least = hn::Set(d, static_cast<Real>(decay.least));
  std::fill_n(by_bias, decay.columns, Real{0});
  std::fill_n(by_rate, decay.columns, Real{0});
  for (std::int64_t row = 0; row < decay.rows; ++row) {
    const auto first = row * decay.columns;
    for_columns(decay, rates, [&](std::int64_t i, auto rate, auto part) {
      const auto at = hn::Mul(sign, hn::Add(part.load(x + first + i), part.load(bias + i)));
      const auto size = softplus<Real>(at);
      const auto cut = hn::Lt(hn::Neg(hn::Mul(rate, size)), least);
      const auto by = hn::IfThenZeroElse(cut, part.load(gradient + first + i));
      const auto by_logit = hn::Neg(hn::Mul(hn::Mul(by, rate), hn::Mul(sign, logistic(d, at))));
      part.store(by_logit, by_x + first + i);
      part.store(hn::Add(part.load(by_bias + i), by_logit), by_bias + i);
      part.store(hn::NegMulAdd(by, size, part.load(by_rate + i)), by_rate + i);
    });
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
void log_decay(const LogDecay& decay, const Real* x, const Real* bias, const Real* rates, Real* y) {
  NAS_CALL(forward, log_decay<Real>)(decay, x, bias, rates, y);
}

template <class Real>
void log_decay_backward(const LogDecay& decay, const Real* x, const Real* bias, const Real* rates,
                        const Real* gradient, Real* by_x, Real* by_bias, Real* by_rate) {
  NAS_CALL(backward, log_decay_backward<Real>)
  (decay, x, bias, rates, gradient, by_x, by_bias, by_rate);
}

NAS_INSTANTIATE(log_decay)
NAS_INSTANTIATE(log_decay_backward)

}  // namespace nas::kernels
#endif
