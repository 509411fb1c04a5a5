// What kernels/normalization.hpp computes, by a warp for one query at a time: lane l has the keys
// l, l + 32, ... of the row, and no other lane's.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cuda/attention.hpp"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/warp.cuh"

namespace nas::cuda {

/// Calls run(j) for the lane's keys.
template <class Run>
__device__ void for_keys(int visible, const Run& run) {
  for (int j = lane_index(); j < visible; j += kWarp) run(j);
}

// What kernels/row_normalization-inl.h asks for; a lane's Number is a number.

__device__ inline auto root(auto x) { return std::sqrt(x); }
__device__ inline auto positive_part(auto x) { return x < 0 ? 0 : x; }  // NaN stays
__device__ inline auto plus_product(auto z, auto x, auto y) { return z + x * y; }
__device__ inline auto minus_product(auto z, auto x, auto y) { return z - x * y; }
__device__ inline auto where(bool truth, auto x) { return truth ? x : 0; }
__device__ inline int num_true(bool truth) { return warp_count(truth); }
__device__ inline auto total(auto x) { return warp_sum(x); }

template <class Real>
__device__ auto order(Real x) {
  using Integer = std::conditional_t<sizeof(Real) == sizeof(float), std::int32_t, std::int64_t>;
  const auto bits = std::bit_cast<Integer>(x + 0);
  return bits < 0 ? bits ^ std::numeric_limits<Integer>::max() : bits;
}

template <class T>
struct ScoreRow {
  using Real = T;
  using Number = T;
  T* scores;
  int visible;

  template <class Use>
  __device__ void each(const Use& use) const {
    for (int begin = 0; begin < visible; begin += kWarp) {
      const int j = begin + lane_index();
      use(j < visible ? scores[j] : -std::numeric_limits<T>::infinity());
    }
  }
  template <class Map>
  __device__ void map(const Map& map) const {
    for_keys(visible, [&](int j) { scores[j] = map(scores[j]); });
  }
  [[nodiscard]] __device__ T largest() const {
    T top = -std::numeric_limits<T>::infinity();
    each([&](T x) { top = x > top ? x : top; });
    return warp_max(top);
  }
  template <class Integer>
  __device__ void keep(Integer threshold, std::int64_t equal) const {
    const unsigned before = (1U << static_cast<unsigned>(lane_index())) - 1;
    for (int begin = 0; begin < visible; begin += kWarp) {
      const int j = begin + lane_index();
      const Integer key = j < visible ? order(scores[j]) : std::numeric_limits<Integer>::min();
      const unsigned ties = __ballot_sync(kAllLanes, j < visible && key == threshold);
      const bool kept = key > threshold || (key == threshold && __popc(ties & before) < equal);
      if (j < visible && !kept) scores[j] = -std::numeric_limits<T>::infinity();
      equal -= __popc(ties);
    }
  }
};

template <class T>
struct GradientRow {
  using Real = T;
  using Number = T;
  const T* weights;
  T* gradient;
  int visible;

  template <class Use>
  __device__ void each(const Use& use) const {
    for (int begin = 0; begin < visible; begin += kWarp) {
      const int j = begin + lane_index();
      const bool seen = j < visible;
      use(seen ? weights[j] : 0, seen ? gradient[j] : 0);
    }
  }
  template <class Map>
  __device__ void map(const Map& map) const {
    for_keys(visible, [&](int j) { gradient[j] = map(weights[j], gradient[j]); });
  }
};

#define NAS_ROW __device__
#include "kernels/row_normalization-inl.h"
#undef NAS_ROW

/// @return run(of), `of` what the normalization computes.
template <class Run>
__device__ auto with_normalization(Normalization normalization, const Run& run) {
  switch (normalization) {
    case Normalization::softmax1:
      return run(Softmax1());
    case Normalization::relu_norm:
      return run(ReluNorm());
    case Normalization::sigmoid_norm:
      return run(SigmoidNorm());
    case Normalization::sparsemax:
      return run(Sparsemax());
    case Normalization::entmax15:
      return run(Entmax15());
    case Normalization::top_k:
      return run(TopK());
    case Normalization::topk_quarter:
      return run(TopkQuarter());
    case Normalization::sink:
      return run(Sink());
    case Normalization::sigmoid_attn:
      return run(SigmoidAttention());
    case Normalization::relu_n:
      return run(ReluN());
    case Normalization::softmax:
    case Normalization::own:  // refused before
      break;
  }
  return run(Softmax());
}

}  // namespace nas::cuda
