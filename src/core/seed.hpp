#pragma once

#include <cstdint>
#include <string_view>

#include "core/visibility.hpp"
#include "kernels/mix64.hpp"

namespace NAS_PUBLIC nas {

/// The seed of one use of randomness. It depends on the run's seed, the replicate, what it is for
/// and a name (of a tensor, say) or a step, and on nothing else: never on the mechanism, on call
/// order or on a global generator, so that what two mechanisms share starts and is shuffled alike
/// (common random numbers).
std::uint64_t derive_seed(std::uint64_t run_seed, std::int64_t replicate, std::string_view purpose,
                          std::string_view name);
std::uint64_t derive_seed(std::uint64_t run_seed, std::int64_t replicate, std::string_view purpose,
                          std::int64_t index);

/// A small random engine (SplitMix64) for shuffles and samples whose results must not depend on the
/// standard library.
class RandomEngine {
 public:
  explicit RandomEngine(std::uint64_t seed) : state_(seed) {}
  /// @return 64 random bits.
  std::uint64_t operator()() {
    const std::uint64_t bits = mix64(state_);
    state_ += 0x9e3779b97f4a7c15ULL;
    return bits;
  }
  /// @return uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>((*this)() >> 11U) * 0x1.0p-53; }
  /// @return uniform in 0 .. n-1; n >= 1. Bias below n / 2^64.
  std::int64_t below(std::int64_t n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::int64_t>(
        (static_cast<Wide>((*this)()) * static_cast<std::uint64_t>(n)) >> 64U);
  }

 private:
  std::uint64_t state_;
};

}  // namespace nas
