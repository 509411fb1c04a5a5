// Elementary functions on vectors, once per instruction set (Google Highway's convention for
// headers of that kind). float: a few units in the last place. double: the library's own.

#if defined(NAS_KERNELS_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NAS_KERNELS_VECTOR_MATH_INL_H_
#undef NAS_KERNELS_VECTOR_MATH_INL_H_
#else
#define NAS_KERNELS_VECTOR_MATH_INL_H_
#endif

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// The widest vectors of this instruction set; rows are padded to kPadding elements, which is a
/// multiple of their size.
template <class Real>
using Wide = hn::ScalableTag<Real>;

template <class D>
using Vector = hn::Vec<D>;

/// The larger, and x where it is NaN: as x86's own (the second operand) and Arm's are.
template <class V>
HWY_INLINE V at_least(V least, V x) {
  if constexpr (HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR) return hn::Max(least, x);
  return hn::IfThenElse(hn::Lt(x, least), least, x);
}

/// e^x for x <= 88; 0 below -87.3, -inf included; NaN for NaN, which must not get lost: it shows
/// that training diverges.
template <class D>
requires std::same_as < hn::TFromD<D>,
float > HWY_INLINE Vector<D> exponential(D d, Vector<D> x) {
  const hn::RebindToSigned<D> integers;
  const auto lowest = hn::Set(d, -87.3F);
  // e^x = 2^n e^r, |r| <= ln(2) / 2; ln(2) in two parts, so that n ln(2) loses nothing.
  const auto clamped = at_least(lowest, x);
  const auto n = hn::Round(hn::Mul(clamped, hn::Set(d, 1.44269504F)));
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), clamped);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), r);
  // Minimax polynomial of degree 6 for e^r, relative error 3e-9.
  auto p = hn::MulAdd(hn::Set(d, 1.38145606e-3F), r, hn::Set(d, 8.36873520e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 4.16683890e-2F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.66665211e-1F));
  p = hn::MulAdd(p, r, hn::Set(d, 4.99999940e-1F));
  p = hn::MulAdd(hn::Mul(r, r), p, hn::Add(r, hn::Set(d, 1.0F)));
  const auto power = hn::BitCast(
      d, hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(integers, n), hn::Set(integers, 127))));
  return hn::IfThenZeroElse(hn::Lt(x, lowest), hn::Mul(p, power));
}

template <class D>
requires std::same_as < hn::TFromD<D>,
double > HWY_INLINE Vector<D> exponential(D d, Vector<D> x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));  // the library's own makes 0 of it
}

/// 1 / x for x in the middle of the range: one Newton step after the processor's estimate of 12
/// bits.
template <class D>
requires std::same_as < hn::TFromD<D>,
float > HWY_INLINE Vector<D> reciprocal(D d, Vector<D> x) {
#if HWY_ARCH_X86
  const auto estimate = hn::ApproximateReciprocal(x);
  return hn::Mul(estimate, hn::NegMulAdd(x, estimate, hn::Set(d, 2.0F)));
#else  // estimates of 8 bits
  return hn::Div(hn::Set(d, 1.0F), x);
#endif
}

template <class D>
requires std::same_as < hn::TFromD<D>,
double > HWY_INLINE Vector<D> reciprocal(D d, Vector<D> x) { return hn::Div(hn::Set(d, 1.0), x); }

/// 1 / (1 + e^-x).
template <class D>
HWY_INLINE Vector<D> logistic(D d, Vector<D> x) {
  using Real = hn::TFromD<D>;
  const auto one = hn::Set(d, Real{1});
  const auto e = exponential(d, hn::Neg(hn::Abs(x)));
  const auto small = hn::Div(e, hn::Add(one, e));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), small, hn::Sub(one, small));
}

/// The standard normal distribution's function Phi(x) and density phi(x).
template <class V>
struct Normal {
  V distribution;
  V density;
};

template <class D>
requires std::same_as < hn::TFromD<D>,
float > HWY_INLINE Normal<Vector<D>> normal(D d, Vector<D> x) {
  const auto one = hn::Set(d, 1.0F);
  const auto size = hn::Abs(x);
  const auto bell = exponential(d, hn::Mul(hn::Set(d, -0.5F), hn::Mul(x, x)));
  // Phi(-|x|) e^(x^2/2) as a polynomial in t = 1 / (1 + 0.3 |x|), relative error 1e-7.
  const auto t = reciprocal(d, hn::MulAdd(size, hn::Set(d, 0.3F), one));
  auto p = hn::MulAdd(hn::Set(d, 3.64638641e-2F), t, hn::Set(d, -1.60508811e-1F));
  p = hn::MulAdd(p, t, hn::Set(d, 2.12086901e-1F));
  p = hn::MulAdd(p, t, hn::Set(d, -5.90027730e-2F));
  p = hn::MulAdd(p, t, hn::Set(d, 1.31403044e-1F));
  p = hn::MulAdd(p, t, hn::Set(d, 9.90422666e-2F));
  p = hn::MulAdd(p, t, hn::Set(d, 1.20895542e-1F));
  p = hn::MulAdd(p, t, hn::Set(d, 1.19619906e-1F));
  const auto tail = hn::Mul(bell, hn::Mul(p, t));
  return {hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail)),
          hn::Mul(bell, hn::Set(d, 0.398942280F))};
}

template <class D>
requires std::same_as < hn::TFromD<D>,
double > HWY_INLINE Normal<Vector<D>> normal(D d, Vector<D> x) {
  HWY_ALIGN double values[hn::MaxLanes(d)];
  HWY_ALIGN double densities[hn::MaxLanes(d)];
  hn::Store(x, d, values);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    densities[i] = 0.3989422804014327 * std::exp(-0.5 * values[i] * values[i]);
    values[i] = 0.5 * std::erfc(-values[i] * 0.7071067811865476);
  }
  return {hn::Load(d, values), hn::Load(d, densities)};
}

template <class D>
HWY_INLINE hn::TFromD<D> sum_of(D d, Vector<D> x) {
  return hn::GetLane(hn::SumOfLanes(d, x));
}

template <class D>
HWY_INLINE hn::TFromD<D> largest_of(D d, Vector<D> x) {
  return hn::GetLane(hn::MaxOfLanes(d, x));
}

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#endif  // NAS_KERNELS_VECTOR_MATH_INL_H_
