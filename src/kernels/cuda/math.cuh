// Elementary functions of single numbers.
#pragma once

#include <cmath>

#include "kernels/cuda/launch.cuh"

namespace nas::cuda {

template <class Real>
__device__ Real exponential(Real x) {
  return std::exp(x);
}

/// 1 / x for |x| below 2^126, 0 above it: in float the processor's own estimate, to the last bit
/// but one.
__device__ inline float reciprocal(float x) { return __fdividef(1.0F, x); }
__device__ inline double reciprocal(double x) { return 1.0 / x; }

/// 1 / (1 + e^-x).
template <class Real>
__device__ Real logistic(Real x) {
  const Real e = exponential(-std::abs(x));
  const Real small = e / (1 + e);
  return x < 0 ? small : 1 - small;
}

/// The standard normal distribution's function Phi(x) and density phi(x).
template <class Real>
struct Normal {
  Real distribution;
  Real density;
};

template <class Real>
__device__ Normal<Real> normal(Real x) {
  return {static_cast<Real>(0.5) * std::erfc(-x * static_cast<Real>(0.7071067811865476)),
          static_cast<Real>(0.3989422804014327) * exponential(-x * x / 2)};
}

}  // namespace nas::cuda
