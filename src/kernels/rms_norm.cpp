#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rms_norm.cpp"
#include <algorithm>
#include <cmath>

#include <hwy/foreach_target.h>

#include "kernels/partial_vector-inl.h"
#include "kernels/rms_norm.hpp"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

template <class Real>
void forward_all(const LayerNormRows<Real>& rows, double epsilon, Real* HWY_RESTRICT y,
                 Real* HWY_RESTRICT inverse_scale) {
  const Wide<Real> d;
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const auto* x = rows.x + row * rows.width;
    auto* out = y + row * rows.width;
    auto sum = hn::Zero(d);
    for_each_part(d, rows.width, [&](std::int64_t i, auto part) {
      const auto element = part.load(x + i);
      sum = hn::MulAdd(element, element, sum);
    });
    const auto mean = sum_of(d, sum) / static_cast<Real>(rows.width);
    inverse_scale[row] = 1 / std::sqrt(mean + static_cast<Real>(epsilon));
    const auto factors = hn::Set(d, inverse_scale[row]);
    for_each_part(d, rows.width, [&](std::int64_t i, auto part) {
      const auto normalised = hn::Mul(part.load(x + i), factors);
      part.store(hn::Mul(normalised, part.load(rows.weight + i)), out + i);
    });
  }
}

/// With n = x / scale and g = gradient weight: dx = (g - n mean(g n)) / scale.
template <class Real>
void backward_all(const LayerNormRows<Real>& rows, const Real* HWY_RESTRICT inverse_scale,
                  const RmsNormGradients<Real>& gradients) {
  const Wide<Real> d;
  const auto width = rows.width;
  std::fill_n(gradients.weight, width, Real{0});
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const auto* HWY_RESTRICT x = rows.x + row * width;
    const auto* HWY_RESTRICT output = gradients.output + row * width;
    auto* HWY_RESTRICT by_x = gradients.x + row * width;
    const auto factors = hn::Set(d, inverse_scale[row]);
    auto sum = hn::Zero(d);
    for_each_part(d, width, [&](std::int64_t i, auto part) {
      const auto normalised = hn::Mul(part.load(x + i), factors);
      const auto by_y = part.load(output + i);
      sum = hn::MulAdd(hn::Mul(by_y, part.load(rows.weight + i)), normalised, sum);
      part.store(hn::MulAdd(by_y, normalised, part.load(gradients.weight + i)),
                 gradients.weight + i);
    });
    const auto mean = hn::Set(d, sum_of(d, sum) / static_cast<Real>(width));
    for_each_part(d, width, [&](std::int64_t i, auto part) {
      const auto normalised = hn::Mul(part.load(x + i), factors);
      const auto gradient = hn::Mul(part.load(output + i), part.load(rows.weight + i));
      part.store(hn::Mul(factors, hn::NegMulAdd(normalised, mean, gradient)), by_x + i);
    });
  }
}

// Dispatch takes functions, not templates.
#define NAS_RMS_NORM(Real, kernel)                                                   \
  void forward_##kernel(const LayerNormRows<Real>& rows, double epsilon, Real* y,    \
                        Real* inverse_scale) {                                       \
    forward_all(rows, epsilon, y, inverse_scale);                                    \
  }                                                                                  \
  void backward_##kernel(const LayerNormRows<Real>& rows, const Real* inverse_scale, \
                         const RmsNormGradients<Real>& gradients) {                  \
    backward_all(rows, inverse_scale, gradients);                                    \
  }
NAS_RMS_NORM(float, in_float)
NAS_RMS_NORM(double, in_double)
#undef NAS_RMS_NORM

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nas::kernels {

#define NAS_RMS_NORM(Real, kernel)                                                               \
  HWY_EXPORT(forward_##kernel);                                                                  \
  HWY_EXPORT(backward_##kernel);                                                                 \
  template <>                                                                                    \
  void rms_norm(const LayerNormRows<Real>& rows, double epsilon, Real* y, Real* inverse_scale) { \
    HWY_DYNAMIC_DISPATCH(forward_##kernel)(rows, epsilon, y, inverse_scale);                     \
  }                                                                                              \
  template <>                                                                                    \
  void rms_norm_backward(const LayerNormRows<Real>& rows, const Real* inverse_scale,             \
                         const RmsNormGradients<Real>& gradients) {                              \
    HWY_DYNAMIC_DISPATCH(backward_##kernel)(rows, inverse_scale, gradients);                     \
  }
NAS_RMS_NORM(float, in_float)
NAS_RMS_NORM(double, in_double)
#undef NAS_RMS_NORM

}  // namespace nas::kernels
#endif
