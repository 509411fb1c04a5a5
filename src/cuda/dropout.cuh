// The mask of kernels/dropout.hpp, element by element.
#pragma once

#include "core/seed.hpp"
#include "cuda/dropout.hpp"
#include "cuda/launch.cuh"

namespace nas::cuda {

/// What dropout multiplies elements of one model by. Remembers the word of the last block of
/// elements: neighbours share it.
template <class Real>
class DropoutFactors {
 public:
  __device__ DropoutFactors(const Dropout& dropout, std::int64_t model)
      : threshold_(dropout.threshold), scale_(static_cast<Real>(dropout.scale)) {
    if (threshold_ > 0) key_ = mix64(mix64(dropout.seeds[model]) ^ dropout.site);
  }

  /// @return 0 or the scale; 1 where nothing is dropped.
  __device__ Real operator()(std::int64_t element) {
    if (threshold_ == 0) return 1;
    const std::int64_t block = element / kernels::kDropoutBlock;
    if (block != block_) {
      block_ = block;
      word_ = mix64(key_ + static_cast<std::uint64_t>(block));
    }
    const auto offset = static_cast<std::uint32_t>(element % kernels::kDropoutBlock);
    return hash(offset, word_) >= threshold_ ? scale_ : 0;
  }

 private:
  __device__ static std::uint32_t hash(std::uint32_t offset, std::uint64_t word) {
    std::uint32_t hash = offset + static_cast<std::uint32_t>(word);
    hash = (hash ^ (hash >> 16U)) * 0x7feb352dU;
    hash ^= static_cast<std::uint32_t>(word >> 32U);
    hash = (hash ^ (hash >> 15U)) * 0x846ca68bU;
    return hash ^ (hash >> 16U);
  }

  std::uint32_t threshold_;
  Real scale_;
  std::uint64_t key_ = 0;
  std::int64_t block_ = -1;
  std::uint64_t word_ = 0;
};

}  // namespace nas::cuda
