#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layer_norm.cpp"
#include <algorithm>
#include <cmath>

#include <hwy/foreach_target.h>

#include "kernels/layer_norm.hpp"
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

/// From deviations, not from the mean of squares, which cancels where the mean is large.
template <class Real>
HWY_INLINE Real variance_of(const Real* HWY_RESTRICT x, std::int64_t width, Real mean) {
  const Wide<Real> d;
  const auto means = hn::Set(d, mean);
  auto sum = hn::Zero(d);
  for_each_part(d, width, [&](std::int64_t i, auto part) {
    const auto deviation = part.counted(hn::Sub(part.load(x + i), means));
    sum = hn::MulAdd(deviation, deviation, sum);
  });
  return sum_of(d, sum) / static_cast<Real>(width);
}

template <class Real>
void forward_all(const LayerNormRows<Real>& rows, const Real* HWY_RESTRICT bias, double epsilon,
                 Real* HWY_RESTRICT y, const RowMoments<Real>& moments) {
  const Wide<Real> d;
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const auto* x = rows.x + row * rows.width;
    auto* out = y + row * rows.width;
    const auto mean = mean_of(x, rows.width);
    const auto variance = variance_of(x, rows.width, mean);
    const auto inverse_deviation = 1 / std::sqrt(variance + static_cast<Real>(epsilon));
    const auto means = hn::Set(d, mean);
    const auto factors = hn::Set(d, inverse_deviation);
    for_each_part(d, rows.width, [&](std::int64_t i, auto part) {
      const auto normalised = hn::Mul(hn::Sub(part.load(x + i), means), factors);
      part.store(hn::MulAdd(normalised, part.load(rows.weight + i), part.load(bias + i)), out + i);
    });
    moments.mean[row] = mean;
    moments.inverse_deviation[row] = inverse_deviation;
  }
}

/// With n = (x - mean) / deviation and g = gradient weight:
/// dx = (g - mean(g) - n mean(g n)) / deviation.
template <class Real>
void backward_all(const LayerNormRows<Real>& rows, const RowMoments<const Real>& moments,
                  const LayerNormGradients<Real>& gradients) {
  const Wide<Real> d;
  const auto width = rows.width;
  std::fill_n(gradients.weight, width, Real{0});
  std::fill_n(gradients.bias, width, Real{0});
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const auto* HWY_RESTRICT x = rows.x + row * width;
    const auto* HWY_RESTRICT output = gradients.output + row * width;
    auto* HWY_RESTRICT by_x = gradients.x + row * width;
    const auto means = hn::Set(d, moments.mean[row]);
    const auto factors = hn::Set(d, moments.inverse_deviation[row]);
    auto sum = hn::Zero(d);
    auto product_sum = hn::Zero(d);
    for_each_part(d, width, [&](std::int64_t i, auto part) {
      const auto normalised = hn::Mul(hn::Sub(part.load(x + i), means), factors);
      const auto by_y = part.load(output + i);
      const auto gradient = hn::Mul(by_y, part.load(rows.weight + i));
      sum = hn::Add(sum, gradient);
      product_sum = hn::MulAdd(gradient, normalised, product_sum);
      part.store(hn::MulAdd(by_y, normalised, part.load(gradients.weight + i)),
                 gradients.weight + i);
      part.store(hn::Add(by_y, part.load(gradients.bias + i)), gradients.bias + i);
    });
    const auto mean = hn::Set(d, sum_of(d, sum) / static_cast<Real>(width));
    const auto product_mean = hn::Set(d, sum_of(d, product_sum) / static_cast<Real>(width));
    for_each_part(d, width, [&](std::int64_t i, auto part) {
      const auto normalised = hn::Mul(hn::Sub(part.load(x + i), means), factors);
      const auto gradient = hn::Mul(part.load(output + i), part.load(rows.weight + i));
      const auto centred = hn::NegMulAdd(normalised, product_mean, hn::Sub(gradient, mean));
      part.store(hn::Mul(factors, centred), by_x + i);
    });
  }
}

// Dispatch takes functions, not templates.
#define NAS_LAYER_NORM(Real, kernel)                                                             \
  void forward_##kernel(const LayerNormRows<Real>& rows, const Real* bias, double epsilon,       \
                        Real* y, const RowMoments<Real>& moments) {                              \
    forward_all(rows, bias, epsilon, y, moments);                                                \
  }                                                                                              \
  void backward_##kernel(const LayerNormRows<Real>& rows, const RowMoments<const Real>& moments, \
                         const LayerNormGradients<Real>& gradients) {                            \
    backward_all(rows, moments, gradients);                                                      \
  }
NAS_LAYER_NORM(float, in_float)
NAS_LAYER_NORM(double, in_double)
#undef NAS_LAYER_NORM

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nas::kernels {

#define NAS_LAYER_NORM(Real, kernel)                                                               \
  HWY_EXPORT(forward_##kernel);                                                                    \
  HWY_EXPORT(backward_##kernel);                                                                   \
  template <>                                                                                      \
  void layer_norm(const LayerNormRows<Real>& rows, const Real* bias, double epsilon, Real* y,      \
                  const RowMoments<Real>& moments) {                                               \
    HWY_DYNAMIC_DISPATCH(forward_##kernel)(rows, bias, epsilon, y, moments);                       \
  }                                                                                                \
  template <>                                                                                      \
  void layer_norm_backward(const LayerNormRows<Real>& rows, const RowMoments<const Real>& moments, \
                           const LayerNormGradients<Real>& gradients) {                            \
    HWY_DYNAMIC_DISPATCH(backward_##kernel)(rows, moments, gradients);                             \
  }
NAS_LAYER_NORM(float, in_float)
NAS_LAYER_NORM(double, in_double)
#undef NAS_LAYER_NORM

}  // namespace nas::kernels
#endif
