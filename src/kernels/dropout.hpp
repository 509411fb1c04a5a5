#pragma once

#include <cstdint>

#include "core/seed.hpp"

namespace nas::kernels {

/// Dropout by a counter: element i of a tensor, in row-major order, is kept iff a 32-bit hash of
/// (key, i) is at least `threshold`, and kept ones are scaled. The mask is a pure function, so that
/// nothing is stored, and the backward pass draws it again.
struct Dropout {
  std::uint64_t key = 0;
  std::uint32_t threshold = 0;  ///< share that is dropped, times 2^32; 0: none is
  double scale = 1.0;

  static Dropout of(std::uint64_t key, double share) {
    return {key, static_cast<std::uint32_t>(share * 0x1.0p32), 1.0 / (1.0 - share)};
  }
  [[nodiscard]] bool drops() const { return threshold > 0; }
};

// Elements are hashed in blocks: a 64-bit word per block, then 32-bit arithmetic only, which
// vectors have.
inline constexpr std::int64_t kDropoutBlock = std::int64_t{1} << 16U;

inline std::uint64_t dropout_word(const Dropout& dropout, std::int64_t element) {
  return mix64(dropout.key + static_cast<std::uint64_t>(element / kDropoutBlock));
}

}  // namespace nas::kernels
