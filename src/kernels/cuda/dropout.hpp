#pragma once

#include <cstdint>

#include "kernels/dropout.hpp"

namespace nas::cuda {

/// One dropout of a pass over all models: kernels::Dropout with a key for each model, made from its
/// seed when the kernel runs, so that a replayed CUDA graph draws by the seeds of its step.
/// Elements are counted within a model: masks equal those of the CPU for equal seeds.
struct Dropout {
  const std::uint64_t* seeds = nullptr;  ///< (R); unused where nothing is dropped
  std::uint64_t site = 0;                ///< the key is kernels::dropout_key(seed, site)
  std::uint32_t threshold = 0;           ///< as kernels::Dropout, and the scale
  double scale = 1.0;
  std::int64_t first = 0;  ///< as kernels::Dropout

  static Dropout of(const std::uint64_t* seeds, std::uint64_t site, double share) {
    const auto one = kernels::Dropout::of(0, share);
    return {seeds, site, one.threshold, one.scale, 0};
  }
};

}  // namespace nas::cuda
