#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gate.cpp"
#include <hwy/foreach_target.h>

#include "kernels/gate.hpp"
#include "kernels/partial_vector-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

/// factor(s).
template <class D>
HWY_INLINE Vector<D> opened(D d, const GateFactor& factor, Vector<D> s) {
  using Real = hn::TFromD<D>;
  return hn::MulAdd(hn::Set(d, static_cast<Real>(factor.gated)), s,
                    hn::Set(d, static_cast<Real>(factor.constant)));
}

template <class Real>
void sum_all(const GatedSum& sum, const Real* logits, const GatedTerms<const Real>& terms,
             Real* out, std::int64_t size) {
  const Wide<Real> d;
  const bool gated = sum.is_gated();
  for_each_part(d, size, [&](std::int64_t i, auto part) {
    const auto s = gated ? logistic(d, part.load(logits + i)) : hn::Zero(d);
    auto total = hn::Set(d, Real{-0.0});  // to which any number can be added without a trace
    for (std::size_t t = 0; t < kGatedTerms; ++t) {
      if (sum.factors[t].is_zero()) continue;
      total = hn::MulAdd(opened(d, sum.factors[t], s), part.load(terms[t] + i), total);
    }
    part.store(total, out + i);
  });
}

template <class Real>
void sum_gradient(const GatedSum& sum, const Real* logits, const GatedTerms<const Real>& terms,
                  const Real* gradient, Real* by_logits, const GatedTerms<Real>& by_terms,
                  std::int64_t size) {
  const Wide<Real> d;
  const bool gated = sum.is_gated();
  for_each_part(d, size, [&](std::int64_t i, auto part) {
    const auto by_sum = part.load(gradient + i);
    const auto s = gated ? logistic(d, part.load(logits + i)) : hn::Zero(d);
    auto by_gate = hn::Zero(d);
    for (std::size_t t = 0; t < kGatedTerms; ++t) {
      const auto& factor = sum.factors[t];
      if (by_terms[t] != nullptr) {
        const auto by_term = factor.is_zero() ? hn::Zero(d) : hn::Mul(by_sum, opened(d, factor, s));
        part.store(by_term, by_terms[t] + i);
      }
      if (factor.gated != 0.0F) {
        const auto slope = hn::Set(d, static_cast<Real>(factor.gated));
        by_gate = hn::MulAdd(slope, part.load(terms[t] + i), by_gate);
      }
    }
    if (by_logits == nullptr) return;
    const auto slope = hn::Mul(s, hn::Sub(hn::Set(d, Real{1}), s));
    part.store(gated ? hn::Mul(by_sum, hn::Mul(by_gate, slope)) : hn::Zero(d), by_logits + i);
  });
}

NAS_KERNEL(forward, sum_all)
NAS_KERNEL(backward, sum_gradient)

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nas::kernels {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

template <class Real>
void gated_sum(const GatedSum& sum, const Real* logits, const GatedTerms<const Real>& terms,
               Real* out, std::int64_t size) {
  NAS_CALL(forward, gated_sum<Real>)(sum, logits, terms, out, size);
}

template <class Real>
void gated_sum_backward(const GatedSum& sum, const Real* logits,
                        const GatedTerms<const Real>& terms, const Real* gradient, Real* by_logits,
                        const GatedTerms<Real>& by_terms, std::int64_t size) {
  NAS_CALL(backward, gated_sum_backward<Real>)
  (sum, logits, terms, gradient, by_logits, by_terms, size);
}

NAS_INSTANTIATE(gated_sum)
NAS_INSTANTIATE(gated_sum_backward)

}  // namespace nas::kernels
#endif
