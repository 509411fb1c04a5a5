// What kernels/normalization.hpp computes, by a warp for one query at a time: lane l has the keys
// l, l + 32, ... of the row, and no other lane's.
#pragma once

#include <cstdint>
#include <limits>

#include "cuda/attention.hpp"
#include "cuda/math.cuh"
#include "cuda/warp.cuh"

namespace nas::cuda {

/// Calls run(j) for the lane's keys.
template <class Run>
__device__ void for_keys(int visible, const Run& run) {
  for (int j = lane_index(); j < visible; j += kWarp) run(j);
}

/// Sum of term(j) over all keys.
template <class Real, class Term>
__device__ Real sum_over_keys(int visible, const Term& term) {
  Real sum = 0;
  for_keys(visible, [&](int j) { sum += term(j); });
  return warp_sum(sum);
}

/// How many keys it is true for.
template <class Predicate>
__device__ int count_keys(int visible, const Predicate& predicate) {
  int count = 0;
  for (int begin = 0; begin < visible; begin += kWarp) {
    const int j = begin + lane_index();
    count += warp_count(j < visible && predicate(j));
  }
  return count;
}

template <class Real>
__device__ Real largest_of_row(const Real* row, int visible) {
  Real top = -std::numeric_limits<Real>::infinity();
  for_keys(visible, [&](int j) { top = row[j] > top ? row[j] : top; });
  return warp_max(top);
}

template <class Real>
__device__ void scale_row(Real* row, int visible, Real factor) {
  for_keys(visible, [&](int j) { row[j] *= factor; });
}

/// row <- e^(row - top). @return the sum.
template <class Real>
__device__ Real exponentials(Real* row, int visible, Real top) {
  return sum_over_keys<Real>(visible, [&](int j) { return row[j] = exponential(row[j] - top); });
}

template <class Real>
__device__ void softmax_row(Real* row, int visible) {
  const Real top = largest_of_row(row, visible);
  scale_row(row, visible, 1 / exponentials(row, visible, top));
}

template <class Real>
__device__ void softmax1_row(Real* row, int visible) {
  const Real largest = largest_of_row(row, visible);
  const Real top = largest > 0 ? largest : Real{0};
  scale_row(row, visible, 1 / (exponentials(row, visible, top) + exponential(-top)));
}

/// row <- map(row) / (sum + 1e-8). @return what it was divided by.
template <class Real, class Map>
__device__ Real normalize_mapped(Real* row, int visible, const Map& map) {
  const Real sum = sum_over_keys<Real>(visible, [&](int j) { return row[j] = map(row[j]); }) +
                   static_cast<Real>(1e-8);
  scale_row(row, visible, 1 / sum);
  return sum;
}

/// max(x, 0), and NaN for NaN.
template <class Real>
__device__ Real positive_part(Real x) {
  return x < 0 ? Real{0} : x;
}

template <class Real>
__device__ void sparsemax_row(Real* row, int visible) {
  const Real top = largest_of_row(row, visible);
  for_keys(visible, [&](int j) { row[j] -= top; });
  // Newton's steps from the left, as on the CPU: supports shrink, and one that does not is the
  // last.
  Real threshold = -1;
  for (int count = visible + 1;;) {
    const int larger = count_keys(visible, [&](int j) { return row[j] > threshold; });
    const Real sum =
        sum_over_keys<Real>(visible, [&](int j) { return row[j] > threshold ? row[j] : Real{0}; });
    threshold = (sum - 1) / static_cast<Real>(larger);
    if (larger >= count) break;
    count = larger;
  }
  for_keys(visible, [&](int j) { row[j] = positive_part(row[j] - threshold); });
}

template <class Real>
__device__ void entmax15_row(Real* row, int visible) {
  const Real top = largest_of_row(row, visible);
  for_keys(visible, [&](int j) { row[j] = (row[j] - top) / 2; });
  Real threshold = -1;
  constexpr int kMostSteps = 60;
  for (int step = 0; step < kMostSteps; ++step) {
    Real sum = 0;
    Real squares = 0;
    for_keys(visible, [&](int j) {
      const Real x = positive_part(row[j] - threshold);
      sum += x;
      squares += x * x;
    });
    const Real excess = warp_sum(squares) - 1;
    const Real next = threshold + excess / (2 * warp_sum(sum));
    if (!(excess > 2 * std::numeric_limits<Real>::epsilon() && next > threshold)) break;
    threshold = next;
  }
  for_keys(visible, [&](int j) {
    const Real root = positive_part(row[j] - threshold);
    row[j] = root * root;
  });
}

/// Scores as integers of the same order; -0 and 0 are equal.
__device__ inline int ordered(float x) {
  const int bits = __float_as_int(x + 0.0F);
  return bits < 0 ? bits ^ std::numeric_limits<int>::max() : bits;
}
__device__ inline long long ordered(double x) {
  const long long bits = __double_as_longlong(x + 0.0);
  return bits < 0 ? bits ^ std::numeric_limits<long long>::max() : bits;
}

/// Softmax over the `count` largest of the row; of equal scores at the threshold the first ones.
template <class Real>
__device__ void softmax_over_largest(Real* row, int visible, int count) {
  using Integer = decltype(ordered(Real{}));
  const Real top = largest_of_row(row, visible);
  if (count < visible) {
    // The smallest threshold that at most `count` scores exceed, or one with exactly `count` above.
    Integer low = std::numeric_limits<Integer>::min();  // more exceed it
    Integer high = ordered(top);                        // none exceeds it
    int above = 0;
    while (above != count && low + 1 < high) {
      // The mean of the two, rounded down, without overflow.
      const Integer middle = (low & high) + ((low ^ high) >> 1);
      const int found = count_keys(visible, [&](int j) { return ordered(row[j]) > middle; });
      if (found > count) {
        low = middle;
      } else {
        high = middle;
        above = found;
      }
    }
    int equal = count - above;  // how many of those at the threshold are kept, too
    const unsigned before = (1U << static_cast<unsigned>(lane_index())) - 1;
    for (int begin = 0; begin < visible; begin += kWarp) {
      const int j = begin + lane_index();
      const Integer key = j < visible ? ordered(row[j]) : std::numeric_limits<Integer>::min();
      const unsigned ties = __ballot_sync(kAllLanes, j < visible && key == high);
      const bool is_kept = key > high || (key == high && __popc(ties & before) < equal);
      if (j < visible && !is_kept) row[j] = -std::numeric_limits<Real>::infinity();
      equal -= __popc(ties);
    }
  }
  scale_row(row, visible, 1 / exponentials(row, visible, top));
}

/// Turns the scores of the first `visible` keys into weights, in place.
///
/// @param tokens  length of the sequence.   @return a number that normalize_backward() needs.
template <class Real>
__device__ Real normalize(Normalization normalization, Real* row, int visible, int tokens) {
  switch (normalization) {
    case Normalization::softmax:
      softmax_row(row, visible);
      return 0;
    case Normalization::softmax1:
      softmax1_row(row, visible);
      return 0;
    case Normalization::relu_norm:
      return normalize_mapped(row, visible, [](Real x) { return positive_part(x); });
    case Normalization::sigmoid_norm:
      return normalize_mapped(row, visible, [](Real x) { return logistic(x); });
    case Normalization::sparsemax:
      sparsemax_row(row, visible);
      return 0;
    case Normalization::entmax15:
      entmax15_row(row, visible);
      return 0;
    case Normalization::top_k:
      softmax_over_largest(row, visible, (visible + 3) / 4);
      return 0;
    case Normalization::topk_quarter:
      softmax_over_largest(row, visible, tokens < 4 ? 1 : tokens / 4);
      return 0;
    case Normalization::own:  // and those without a form here: they are refused before
    case Normalization::sink:
    case Normalization::sigmoid_attn:
    case Normalization::relu_n:
      return 0;
  }
  return 0;
}

/// dL/dw to dL/ds, in place.
template <class Real>
__device__ void normalize_backward(Normalization normalization, const Real* weights, Real* gradient,
                                   int visible, Real statistic) {
  const auto mean_by = [&](const auto& share) {
    return sum_over_keys<Real>(visible, [&](int j) { return share(weights[j]) * gradient[j]; });
  };
  const auto weight = [](Real p) { return p; };
  switch (normalization) {
    case Normalization::softmax:
    case Normalization::softmax1:
    case Normalization::top_k:
    case Normalization::topk_quarter: {
      const Real mean = mean_by(weight);
      for_keys(visible, [&](int j) { gradient[j] = weights[j] * (gradient[j] - mean); });
      return;
    }
    case Normalization::relu_norm: {
      const Real mean = mean_by(weight);
      for_keys(visible, [&](int j) {
        gradient[j] = weights[j] > 0 ? (gradient[j] - mean) / statistic : Real{0};
      });
      return;
    }
    case Normalization::sigmoid_norm: {
      const Real mean = mean_by(weight);
      for_keys(visible, [&](int j) {
        // o (1 - o) / sum with o = p sum.
        const Real p = weights[j];
        gradient[j] = (p - p * statistic * p) * (gradient[j] - mean);
      });
      return;
    }
    case Normalization::sparsemax: {
      const int count = count_keys(visible, [&](int j) { return weights[j] > 0; });
      const Real mean =
          mean_by([](Real p) { return p > 0 ? Real{1} : Real{0}; }) / static_cast<Real>(count);
      for_keys(visible,
               [&](int j) { gradient[j] = weights[j] > 0 ? gradient[j] - mean : Real{0}; });
      return;
    }
    case Normalization::entmax15: {
      const auto root = [](Real p) { return std::sqrt(p); };
      const Real roots = sum_over_keys<Real>(visible, [&](int j) { return root(weights[j]); });
      const Real mean = mean_by(root) / roots;
      for_keys(visible, [&](int j) { gradient[j] = root(weights[j]) * (gradient[j] - mean); });
      return;
    }
    case Normalization::own:
    case Normalization::sink:
    case Normalization::sigmoid_attn:
    case Normalization::relu_n:
      return;
  }
}

}  // namespace nas::cuda
