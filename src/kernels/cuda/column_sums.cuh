// The second part of sums over the rows of a model: what blocks or warps have summed, in order.
#pragma once

#include "kernels/cuda/launch.cuh"

namespace nas::cuda {

/// From partial sums (R, slots, width): sums (R, width). 32 columns a block; every warp adds each
/// fourth slot.
template <class Real>
__global__ void add_slots_kernel(const Real* partial, std::int64_t slots, std::int64_t width,
                                 std::int64_t split, Real* first, Real* second) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kWarp + lane_index();
  const std::int64_t model = blockIdx.y;
  auto* of_warps = shared_memory<Real>();  // (kWarps, kWarp)
  Real sum = 0;
  if (column < width) {
#pragma unroll 4
    for (std::int64_t slot = warp_index(); slot < slots; slot += kWarps) {
      sum += partial[(model * slots + slot) * width + column];
    }
  }
  of_warps[thread_index()] = sum;
  __syncthreads();
  if (warp_index() > 0 || column >= width) return;
  for (int warp = 1; warp < kWarps; ++warp) sum += of_warps[warp * kWarp + lane_index()];
  if (column < split) {
    first[model * split + column] = sum;
  } else {
    second[model * (width - split) + column - split] = sum;
  }
}

/// Enqueues it: columns below `split` go to `first` (R, split), the others to `second`.
template <class Real>
void add_slots(const char* name, const Real* partial, std::int64_t models, std::int64_t slots,
               std::int64_t width, std::int64_t split, Real* first, Real* second, Stream stream) {
  launch(name, add_slots_kernel<Real>, Grid{pieces(width, kWarp), models}, sizeof(Real) * kThreads,
         stream, partial, slots, width, split, first, second);
}

}  // namespace nas::cuda
