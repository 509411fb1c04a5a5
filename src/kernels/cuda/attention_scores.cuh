// The raw scores of kernels::Score, element by element of a query and a key. Each has
//   prepare(x)                 what an element of q or k is turned into, once;
//   add(sum, q, k, e)          adds what element e of two prepared vectors contributes to a score;
//   add_slope(sum, g, a, b)    adds g d(score)/dq, or g d(score)/dk, of an element but for
//   slope_factor(e)            which multiplies the sum in the end;
//   Products                   what multiplies;
//   kSumsTerms                 whether sum_j g_j r_j is not q.dr/dq: then it is the sum over elements of
//                              term_factor(e) sum_j g_j term(k, q).
#pragma once

#include <type_traits>

#include "kernels/cuda/attention_products.cuh"
#include "kernels/cuda/math.cuh"

namespace nas::cuda {

template <class Real>
struct ProductScore {
  using Products = Lanes;
  static constexpr bool kIsAdditive = false;
  static constexpr bool kSumsTerms = false;
  __device__ static Real prepare(Real x) { return x; }
  __device__ static void add(Real& sum, Real q, Real k, int /*e*/) { sum += q * k; }
  __device__ static void add_slope(Real& sum, Real g, Real other, Real /*own*/) {
    sum += g * other;
  }
  __device__ static Real slope_factor(int /*e*/) { return 1; }
};

/// Of factors rounded to TensorFloat-32.
struct RoundedProductScore : ProductScore<float> {
  using Products = TensorCores;
  __device__ static float prepare(float x) { return round_to_tf32(x); }
};

/// What products of vectors are made by.
template <class Real, bool kOnTensorCores>
using LinearScore = std::conditional_t<kOnTensorCores, RoundedProductScore, ProductScore<Real>>;

/// r = -|q - k|^2 / 2.
template <class Real>
struct DistanceScore : ProductScore<Real> {
  static constexpr bool kSumsTerms = true;
  __device__ static Real term(Real k, Real q) { return (k - q) * (k - q) * Real{-0.5}; }
  __device__ static Real term_factor(int /*e*/) { return 1; }
  __device__ static void add(Real& sum, Real q, Real k, int /*e*/) { sum += term(k, q); }
  __device__ static void add_slope(Real& sum, Real g, Real other, Real own) {
    sum += g * (other - own);
  }
};

/// r = v.tanh(q + k). With a = e^(2 q) and b = e^(2 k),
///   tanh(q + k) = 1 - 2 y,  y = 1 / (1 + a b),  tanh' = 4 y (1 - y),
/// so that an element of a pair of tokens costs a reciprocal and some products. Without
/// `kFactored`, for vectors whose exponentials might leave the range of numbers, y = 1 / (1 + e^(2
/// (q + k))).
template <class Real, bool kFactored>
struct AdditiveScore {
  using Products = Lanes;
  static constexpr bool kIsAdditive = true;
  static constexpr bool kSumsTerms = true;
  /// 2 |q + k| <= 86 keeps a b between 4e-38 and 3e37.
  static constexpr double kLargest = 21.5;

  const Real* direction;  ///< v, zeros behind

  __device__ static Real prepare(Real x) {
    if constexpr (kFactored) {
      return exponential(2 * x);
    } else {
      return 2 * x;
    }
  }
  __device__ static Real fraction(Real a, Real b) {
    if constexpr (kFactored) {
      return reciprocal(1 + a * b);
    } else {
      return reciprocal(1 + exponential(a + b));
    }
  }
  __device__ static Real term(Real k, Real q) { return 1 - 2 * fraction(k, q); }
  __device__ Real term_factor(int e) const { return direction[e]; }
  __device__ void add(Real& sum, Real q, Real k, int e) const { sum += direction[e] * term(k, q); }
  __device__ static void add_slope(Real& sum, Real g, Real a, Real b) {
    const Real y = fraction(a, b);
    sum += g * (y - y * y);
  }
  __device__ Real slope_factor(int e) const { return 4 * direction[e]; }
};

/// c sigmoid(c) and its derivative.
template <class Real>
__device__ Real silu(Real c) {
  return c * logistic(c);
}
template <class Real>
__device__ Real silu_slope(Real c) {
  const Real o = logistic(c);
  return o + c * o * (1 - o);
}

}  // namespace nas::cuda
