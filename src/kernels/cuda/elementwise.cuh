// Loops over the elements of all models.
#pragma once

#include "kernels/cuda/launch.cuh"

namespace nas::cuda {

/// Elements of a block: a divisor of kernels::kDropoutBlock, so that a thread draws from one word.
inline constexpr std::int64_t kBlockElements = 2048;

/// One row of blocks per model.
inline Grid elements_grid(std::int64_t models, std::int64_t size) {
  return {pieces(size, kBlockElements), models};
}

/// Calls run(i) for the thread's elements of its model.
template <class Run>
__device__ void for_elements(std::int64_t size, const Run& run) {
  const std::int64_t begin = blockIdx.x * kBlockElements;
  const std::int64_t end = begin + kBlockElements < size ? begin + kBlockElements : size;
  for (std::int64_t i = begin + thread_index(); i < end; i += kThreads) run(i);
}

}  // namespace nas::cuda
