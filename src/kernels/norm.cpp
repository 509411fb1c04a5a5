#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm.cpp"
#include <algorithm>
#include <cmath>

#include <hwy/foreach_target.h>

#include "kernels/norm.hpp"
#include "kernels/partial_vector-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

template <class Real>
HWY_INLINE Real mean_of(const Real* HWY_RESTRICT x, std::int64_t width) {
  const Wide<Real> d;
  auto sum = hn::Zero(d);
  for_each_part(d, width, [&](std::int64_t i, auto part) { sum = hn::Add(sum, part.load(x + i)); });
  return sum_of(d, sum) / static_cast<Real>(width);
}

// Layer norms are kCentred, root mean square norms are not.

template <bool kCentred, class D>
HWY_INLINE Vector<D> deviation(D /*d*/, Vector<D> x, Vector<D> mean) {
  if constexpr (kCentred) return hn::Sub(x, mean);
  return x;
}

/// From deviations, not from the mean of squares, which cancels where the mean is large.
template <bool kCentred, class Real>
HWY_INLINE Real variance_of(const Real* HWY_RESTRICT x, std::int64_t width, Real mean) {
  const Wide<Real> d;
  const auto means = hn::Set(d, mean);
  auto sum = hn::Zero(d);
  for_each_part(d, width, [&](std::int64_t i, auto part) {
    const auto element = part.counted(deviation<kCentred>(d, part.load(x + i), means));
    sum = hn::MulAdd(element, element, sum);
  });
  return sum_of(d, sum) / static_cast<Real>(width);
}

template <bool kCentred, class Real>
void forward_rows(const NormRows<Real>& rows, double epsilon, Real* HWY_RESTRICT y,
                  const RowMoments<Real>& moments) {
  const Wide<Real> d;
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const auto* x = rows.x + row * rows.width;
    auto* out = y + row * rows.width;
    Real mean = 0;
    if constexpr (kCentred) moments.mean[row] = mean = mean_of(x, rows.width);
    const auto variance = variance_of<kCentred>(x, rows.width, mean);
    const auto inverse_deviation = 1 / std::sqrt(variance + static_cast<Real>(epsilon));
    moments.inverse_deviation[row] = inverse_deviation;
    const auto means = hn::Set(d, mean);
    const auto factors = hn::Set(d, inverse_deviation);
    for_each_part(d, rows.width, [&](std::int64_t i, auto part) {
      const auto normalised = hn::Mul(deviation<kCentred>(d, part.load(x + i), means), factors);
      const auto weight = part.load(rows.weight + i);
      if constexpr (kCentred) {
        part.store(hn::MulAdd(normalised, weight, part.load(rows.bias + i)), out + i);
      } else {
        part.store(hn::Mul(normalised, weight), out + i);
      }
    });
  }
}

/// With n = (x - mean) / deviation and g = gradient weight:
/// dx = (g - mean(g) - n mean(g n)) / deviation, without the means where rows are not centred.
template <bool kCentred, class Real>
void backward_rows(const NormRows<Real>& rows, const RowMoments<const Real>& moments,
                   const NormGradients<Real>& gradients) {
  const Wide<Real> d;
  const auto width = rows.width;
  std::fill_n(gradients.weight, width, Real{0});
  if constexpr (kCentred) std::fill_n(gradients.bias, width, Real{0});
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const auto* HWY_RESTRICT x = rows.x + row * width;
    const auto* HWY_RESTRICT output = gradients.output + row * width;
    auto* HWY_RESTRICT by_x = gradients.x + row * width;
    const auto means = hn::Set(d, kCentred ? moments.mean[row] : Real{0});
    const auto factors = hn::Set(d, moments.inverse_deviation[row]);
    auto sum = hn::Zero(d);
    auto product_sum = hn::Zero(d);
    for_each_part(d, width, [&](std::int64_t i, auto part) {
      const auto normalised = hn::Mul(deviation<kCentred>(d, part.load(x + i), means), factors);
      const auto by_y = part.load(output + i);
      const auto gradient = hn::Mul(by_y, part.load(rows.weight + i));
      product_sum = hn::MulAdd(gradient, normalised, product_sum);
      part.store(hn::MulAdd(by_y, normalised, part.load(gradients.weight + i)),
                 gradients.weight + i);
      if constexpr (kCentred) {
        sum = hn::Add(sum, gradient);
        part.store(hn::Add(by_y, part.load(gradients.bias + i)), gradients.bias + i);
      }
    });
    const auto mean = hn::Set(d, sum_of(d, sum) / static_cast<Real>(width));
    const auto product_mean = hn::Set(d, sum_of(d, product_sum) / static_cast<Real>(width));
    for_each_part(d, width, [&](std::int64_t i, auto part) {
      const auto normalised = hn::Mul(deviation<kCentred>(d, part.load(x + i), means), factors);
      const auto gradient = hn::Mul(part.load(output + i), part.load(rows.weight + i));
      const auto centred = deviation<kCentred>(d, gradient, mean);
      part.store(hn::Mul(factors, hn::NegMulAdd(normalised, product_mean, centred)), by_x + i);
    });
  }
}

template <class Real>
void forward_all(const NormRows<Real>& rows, double epsilon, Real* y,
                 const RowMoments<Real>& moments) {
  const auto run = rows.bias != nullptr ? &forward_rows<true, Real> : &forward_rows<false, Real>;
  run(rows, epsilon, y, moments);
}

template <class Real>
void backward_all(const NormRows<Real>& rows, const RowMoments<const Real>& moments,
                  const NormGradients<Real>& gradients) {
  const auto run =
      gradients.bias != nullptr ? &backward_rows<true, Real> : &backward_rows<false, Real>;
  run(rows, moments, gradients);
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
void norm(const NormRows<Real>& rows, double epsilon, Real* y, const RowMoments<Real>& moments) {
  NAS_CALL(forward, norm<Real>)(rows, epsilon, y, moments);
}

template <class Real>
void norm_backward(const NormRows<Real>& rows, const RowMoments<const Real>& moments,
                   const NormGradients<Real>& gradients) {
  NAS_CALL(backward, norm_backward<Real>)(rows, moments, gradients);
}

NAS_INSTANTIATE(norm)
NAS_INSTANTIATE(norm_backward)

}  // namespace nas::kernels
#endif
