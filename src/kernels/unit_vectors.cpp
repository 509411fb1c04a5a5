#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/unit_vectors.cpp"
#include <cmath>

#include <hwy/foreach_target.h>

#include "kernels/partial_vector-inl.h"
#include "kernels/unit_vectors.hpp"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

template <class Real>
HWY_INLINE Real dot(const Real* HWY_RESTRICT a, const Real* HWY_RESTRICT b, std::int64_t width) {
  const Wide<Real> d;
  auto sum = hn::Zero(d);
  for_each_part(d, width, [&](std::int64_t i, auto part) {
    sum = hn::MulAdd(part.load(a + i), part.load(b + i), sum);
  });
  return sum_of(d, sum);
}

template <class Real>
void forward_all(std::int64_t rows, std::int64_t width, const Real* x, Real* y,
                 Real* HWY_RESTRICT inverse_lengths) {
  const Wide<Real> d;
  constexpr auto kShortest = static_cast<Real>(kShortestLength);
  for (std::int64_t row = 0; row < rows; ++row, x += width, y += width) {
    const Real length = std::sqrt(dot(x, x, width));
    inverse_lengths[row] = 1 / (length < kShortest ? kShortest : length);  // NaN stays
    const auto factor = hn::Set(d, inverse_lengths[row]);
    for_each_part(d, width, [&](std::int64_t i, auto part) {
      part.store(hn::Mul(part.load(x + i), factor), y + i);
    });
  }
}

template <class Real>
void backward_all(std::int64_t rows, std::int64_t width, const Real* y,
                  const Real* HWY_RESTRICT inverse_lengths, const Real* gradient, Real* by_x) {
  const Wide<Real> d;
  constexpr Real kLargest = 1 / static_cast<Real>(kShortestLength);
  for (std::int64_t row = 0; row < rows; ++row, y += width, gradient += width, by_x += width) {
    const bool too_short = inverse_lengths[row] == kLargest;
    const auto along = hn::Set(d, too_short ? Real{0} : dot(gradient, y, width));
    const auto factor = hn::Set(d, inverse_lengths[row]);
    for_each_part(d, width, [&](std::int64_t i, auto part) {
      const auto across = hn::NegMulAdd(part.load(y + i), along, part.load(gradient + i));
      part.store(hn::Mul(across, factor), by_x + i);
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
void unit_vectors(std::int64_t rows, std::int64_t width, const Real* x, Real* y,
                  Real* inverse_lengths) {
  NAS_CALL(forward, unit_vectors<Real>)(rows, width, x, y, inverse_lengths);
}

template <class Real>
void unit_vectors_backward(std::int64_t rows, std::int64_t width, const Real* y,
                           const Real* inverse_lengths, const Real* gradient, Real* by_x) {
  NAS_CALL(backward, unit_vectors_backward<Real>)(rows, width, y, inverse_lengths, gradient, by_x);
}

NAS_INSTANTIATE(unit_vectors)
NAS_INSTANTIATE(unit_vectors_backward)

}  // namespace nas::kernels
#endif
