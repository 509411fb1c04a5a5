#pragma once

#include <cstdint>

#include "kernels/visibility.hpp"

namespace NAS_PUBLIC nas {

/// Finaliser of SplitMix64 (Steele, Lea & Flood 2014): a bijection of 64-bit words that mixes every
/// input bit into every output bit.
constexpr std::uint64_t mix64(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

}  // namespace nas
