#pragma once

#include <cstdint>

#include "kernels/mix64.hpp"
#include "kernels/visibility.hpp"

namespace nas {
namespace NAS_PUBLIC kernels {

/// Dropout by a counter: element i of a tensor, in row-major order, is kept iff a 32-bit hash of
/// (key, i) is at least `threshold`, and kept ones are scaled. The mask is a pure function, so that
/// nothing is stored, and the backward pass draws it again.
struct Dropout {
  std::uint64_t key = 0;
  std::uint32_t threshold = 0;  ///< share that is dropped, times 2^32; 0: none is
  double scale = 1.0;
  /// Number of the tensor's first element: a tensor that is a part of a larger one, from there on,
  /// has that one's mask.
  std::int64_t first = 0;

  static Dropout of(std::uint64_t key, double share) {
    return {key, static_cast<std::uint32_t>(share * 0x1.0p32), 1.0 / (1.0 - share)};
  }
  [[nodiscard]] bool drops() const { return threshold > 0; }
};

// What a mask is drawn by: a key per model and site, a 64-bit word per block of elements, and a
// 32-bit hash of an element's offset in its block, by 32-bit arithmetic only, which vectors have.

constexpr std::uint64_t dropout_key(std::uint64_t seed, std::uint64_t site) {
  return mix64(mix64(seed) ^ site);
}

inline constexpr std::int64_t kDropoutBlock = std::int64_t{1} << 16U;

constexpr std::uint64_t dropout_word(std::uint64_t key, std::int64_t element) {
  return mix64(key + static_cast<std::uint64_t>(element / kDropoutBlock));
}

inline constexpr std::uint32_t kDropoutFirstFactor = 0x7feb352dU;
inline constexpr std::uint32_t kDropoutSecondFactor = 0x846ca68bU;

/// Two rounds of a 32-bit mixer with half of the block's word added before each, so that blocks are
/// not shifts of each other. kernels/dropout-inl.h has it on vectors.
constexpr std::uint32_t dropout_hash(std::uint32_t offset, std::uint64_t word) {
  std::uint32_t hash = offset + static_cast<std::uint32_t>(word);
  hash = (hash ^ (hash >> 16U)) * kDropoutFirstFactor;
  hash ^= static_cast<std::uint32_t>(word >> 32U);
  hash = (hash ^ (hash >> 15U)) * kDropoutSecondFactor;
  return hash ^ (hash >> 16U);
}

}  // namespace kernels
}  // namespace nas
