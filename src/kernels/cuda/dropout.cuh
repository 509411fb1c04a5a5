// The mask of kernels/dropout.hpp, element by element.
#pragma once

#include "kernels/cuda/dropout.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"

namespace nas::cuda {

/// What dropout multiplies elements of one model by. Remembers the word of the last block of
/// elements: neighbours share it.
template <class Real>
class DropoutFactors {
 public:
  __device__ DropoutFactors(const Dropout& dropout, std::int64_t model)
      : threshold_(dropout.threshold),
        scale_(static_cast<Real>(dropout.scale)),
        first_(dropout.first) {
    if (threshold_ > 0) key_ = kernels::dropout_key(dropout.seeds[model], dropout.site);
  }

  /// @return 0 or the scale; 1 where nothing is dropped.
  __device__ Real operator()(std::int64_t element) {
    if (threshold_ == 0) return 1;
    const auto number = static_cast<std::uint64_t>(element + first_);  // its division is a shift
    const std::uint64_t block = number / kBlock;
    if (block != block_) {
      block_ = block;
      word_ = kernels::dropout_word(key_, element + first_);
    }
    return kernels::dropout_hash(static_cast<std::uint32_t>(number % kBlock), word_) >= threshold_
               ? scale_
               : 0;
  }

  /// Of elements [element, element + N), which are of one block: multiples of N, as the first is.
  template <int N>
  __device__ Pack<Real, N> pack(std::int64_t element) {
    Pack<Real, N> factors;
    factors.at[0] = (*this)(element);
    const auto number = static_cast<std::uint64_t>(element + first_);
    const auto offset = static_cast<std::uint32_t>(number % kBlock);
#pragma unroll
    for (std::uint32_t i = 1; i < N; ++i) {
      const bool kept = kernels::dropout_hash(offset + i, word_) >= threshold_;
      factors.at[i] = threshold_ == 0 ? Real{1} : kept ? scale_ : Real{0};
    }
    return factors;
  }

 private:
  static constexpr std::uint64_t kBlock = kernels::kDropoutBlock;

  std::uint32_t threshold_;
  Real scale_;
  std::int64_t first_;
  std::uint64_t key_ = 0;
  std::uint64_t block_ = ~std::uint64_t{0};
  std::uint64_t word_ = 0;
};

}  // namespace nas::cuda
