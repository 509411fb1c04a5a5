// Sums and the like over the lanes of a warp and the warps of a block, always in the same order.
// All lanes, or all threads of the block, take part and get the result.
#pragma once

#include "kernels/cuda/launch.cuh"

namespace nas::cuda {

/// Lane l adds lane l ^ 16, then l ^ 8, ...: all lanes get the same bits.
template <class Real>
__device__ Real warp_sum(Real x) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    x += __shfl_xor_sync(kAllLanes, x, distance);
  }
  return x;
}

/// NaN is skipped; it reappears where its element is used.
template <class Real>
__device__ Real warp_max(Real x) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const Real other = __shfl_xor_sync(kAllLanes, x, distance);
    x = other > x || x != x ? other : x;
  }
  return x;
}

/// The largest, or the sum, over the four lanes that have parts of a row of a fragment.
__device__ inline float largest_of_quad(float x) {
  for (int distance = 1; distance <= 2; distance *= 2) {
    const float other = __shfl_xor_sync(kAllLanes, x, distance);
    x = other > x ? other : x;
  }
  return x;
}
__device__ inline float sum_of_quad(float x) {
  for (int distance = 1; distance <= 2; distance *= 2) {
    x += __shfl_xor_sync(kAllLanes, x, distance);
  }
  return x;
}

/// How many lanes it is true for.
__device__ inline int warp_count(bool predicate) {
  return __popc(__ballot_sync(kAllLanes, predicate));
}

/// @param scratch  an element of shared memory for each of the block's warps.
template <class Real, int kOfBlock = kWarps>
__device__ Real block_sum(Real x, Real* scratch) {
  const Real of_warp = warp_sum(x);
  __syncthreads();  // an earlier call may still be reading
  if (lane_index() == 0) scratch[warp_index()] = of_warp;
  __syncthreads();
  Real sum = 0;
  for (int warp = 0; warp < kOfBlock; ++warp) sum += scratch[warp];
  return sum;
}

template <class Real, int kOfBlock = kWarps>
__device__ Real block_max(Real x, Real* scratch) {
  const Real of_warp = warp_max(x);
  __syncthreads();
  if (lane_index() == 0) scratch[warp_index()] = of_warp;
  __syncthreads();
  Real top = scratch[0];
  for (int warp = 1; warp < kOfBlock; ++warp) {
    top = scratch[warp] > top || top != top ? scratch[warp] : top;
  }
  return top;
}

}  // namespace nas::cuda
