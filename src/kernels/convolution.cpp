#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convolution.cpp"
#include <algorithm>
#include <cmath>

#include <hwy/foreach_target.h>

#include "kernels/convolution.hpp"
#include "kernels/partial_vector-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

/// The convolution of token t, before SiLU.
template <class Real>
void convolve(const ConvolutionShape& shape, const Real* z, const Real* weight, std::int64_t t,
              Real* out) {
  const Wide<Real> d;
  const auto channels = shape.channels;
  const Real* now = z + t * channels;
  if (weight == nullptr) {
    std::copy_n(now, channels, out);
    return;
  }
  const auto first = std::max<std::int64_t>(shape.taps - 1 - t, 0);  // of taps
  for_each_part(d, channels, [&](std::int64_t i, auto part) {
    auto sum = hn::Zero(d);
    for (std::int64_t a = first; a < shape.taps; ++a) {
      sum = hn::MulAdd(part.load(weight + a * channels + i),
                       part.load(now + (a + 1 - shape.taps) * channels + i), sum);
    }
    part.store(sum, out + i);
  });
}

template <class Real>
HWY_INLINE Real inner(std::int64_t width, const Real* a, const Real* b) {
  const Wide<Real> d;
  auto sum = hn::Zero(d);
  for_each_part(d, width, [&](std::int64_t i, auto part) {
    sum = hn::MulAdd(part.load(a + i), part.load(b + i), sum);
  });
  return sum_of(d, sum);
}

template <class Real>
Real inverse_length(const ConvolutionShape& shape, const Real* x) {
  return 1 / std::sqrt(inner(shape.width, x, x) + static_cast<Real>(shape.epsilon));
}

template <class Real>
void forward_all(const ConvolutionShape& shape, const Real* z, const Real* weight, Real* y) {
  const Wide<Real> d;
  for (std::int64_t t = 0; t < shape.tokens; ++t, y += shape.channels) {
    convolve(shape, z, weight, t, y);
    for_each_part(d, shape.channels, [&](std::int64_t i, auto part) {
      const auto x = part.load(y + i);
      part.store(hn::Mul(x, logistic(d, x)), y + i);
    });
    for (std::int64_t i = 0; shape.width > 0 && i < shape.channels; i += shape.width) {
      const auto factor = hn::Set(d, inverse_length(shape, y + i));
      for_each_part(d, shape.width, [&](std::int64_t j, auto part) {
        part.store(hn::Mul(part.load(y + i + j), factor), y + i + j);
      });
    }
  }
}

/// Gradients w.r.t. the convolution of a token. @param x  in: it; out: after SiLU.
template <class Real>
void backward_of_activation(const ConvolutionShape& shape, const Real* gradient, Real* x,
                            Real* slopes, Real* by_x) {
  const Wide<Real> d;
  for_each_part(d, shape.channels, [&](std::int64_t i, auto part) {
    const auto one = hn::Set(d, Real{1});
    const auto at = part.load(x + i);
    const auto s = logistic(d, at);
    part.store(hn::Mul(s, hn::MulAdd(at, hn::Sub(one, s), one)), slopes + i);
    part.store(hn::Mul(at, s), x + i);
  });
  if (shape.width == 0) {
    for_each_part(d, shape.channels, [&](std::int64_t i, auto part) {
      part.store(hn::Mul(part.load(slopes + i), part.load(gradient + i)), by_x + i);
    });
    return;
  }
  for (std::int64_t i = 0; i < shape.channels; i += shape.width) {
    const Real inverse = inverse_length(shape, x + i);
    const auto along = hn::Set(d, inverse * inverse * inner(shape.width, x + i, gradient + i));
    const auto factor = hn::Set(d, inverse);
    for_each_part(d, shape.width, [&](std::int64_t j, auto part) {
      const auto across = hn::NegMulAdd(part.load(x + i + j), along, part.load(gradient + i + j));
      part.store(hn::Mul(hn::Mul(across, factor), part.load(slopes + i + j)), by_x + i + j);
    });
  }
}

template <class Real>
void backward_all(const ConvolutionShape& shape, const Real* z, const Real* weight,
                  const Real* gradient, Real* by_z, Real* by_weight, Real* scratch) {
  const Wide<Real> d;
  const auto channels = shape.channels;
  const auto taps = shape.taps;
  Real* x = scratch;
  Real* slopes = x + channels;
  Real* later = slopes + channels;  // gradients w.r.t. convolutions, of token t in row t mod K
  if (by_weight != nullptr) std::fill_n(by_weight, taps * channels, Real{0});
  for (std::int64_t t = shape.tokens - 1; t >= 0; --t) {
    convolve(shape, z, weight, t, x);
    if (weight == nullptr) {
      backward_of_activation(shape, gradient + t * channels, x, slopes, by_z + t * channels);
      continue;
    }
    const Real* by_now = later + t % taps * channels;
    backward_of_activation(shape, gradient + t * channels, x, slopes, later + t % taps * channels);
    const auto ahead = std::min(taps, shape.tokens - t);
    const auto before = std::min(taps, t + 1);
    for_each_part(d, channels, [&](std::int64_t i, auto part) {
      auto sum = hn::Zero(d);
      for (std::int64_t j = 0; j < ahead; ++j) {
        sum = hn::MulAdd(part.load(weight + (taps - 1 - j) * channels + i),
                         part.load(later + (t + j) % taps * channels + i), sum);
      }
      part.store(sum, by_z + t * channels + i);
      const auto by = part.load(by_now + i);
      for (std::int64_t j = 0; j < before; ++j) {
        Real* to = by_weight + (taps - 1 - j) * channels + i;
        part.store(hn::MulAdd(by, part.load(z + (t - j) * channels + i), part.load(to)), to);
      }
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
void activated_convolution(const ConvolutionShape& shape, const Real* z, const Real* weight,
                           Real* y) {
  NAS_CALL(forward, activated_convolution<Real>)(shape, z, weight, y);
}

std::int64_t convolution_scratch(const ConvolutionShape& shape) {
  return (shape.taps + 2) * shape.channels;
}

template <class Real>
void activated_convolution_backward(const ConvolutionShape& shape, const Real* z,
                                    const Real* weight, const Real* gradient, Real* by_z,
                                    Real* by_weight, Real* scratch) {
  NAS_CALL(backward, activated_convolution_backward<Real>)
  (shape, z, weight, gradient, by_z, by_weight, scratch);
}

NAS_INSTANTIATE(activated_convolution)
NAS_INSTANTIATE(activated_convolution_backward)

}  // namespace nas::kernels
#endif
