// A test tool: cuda/tensor_cores.cuh on the CPU, after what the PTX manual says of the fragments.
// Lanes give their words to the warp (emulation.hpp); copies are made at once.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/emulation.hpp"

namespace nas::cuda {

inline bool has_tensor_cores() { return true; }

inline std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
inline float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// To the nearest number whose last `dropped` bits are 0; ties to even, or away from 0.
inline std::uint32_t rounded_bits(float x, int dropped, bool to_even) {
  const auto bits = bits_of(x);
  if (x != x) return bits;
  const std::uint32_t half = std::uint32_t{1} << (dropped - 1);
  const std::uint32_t odd = (bits >> dropped) & 1U;
  const std::uint32_t added = to_even ? half - 1 + odd : half;
  return (bits + added) >> dropped << dropped;
}

inline std::uint32_t pack_bfloat16(float low, float high) {
  return rounded_bits(low, 16, true) >> 16U | (rounded_bits(high, 16, true) >> 16U << 16U);
}

inline float round_to_tf32(float x) { return float_of(rounded_bits(x, 13, false)); }

inline float power_of_two(float x) { return std::exp2(x); }

namespace emulation {

/// What every lane of the warp gives: two words each.
inline std::array<std::uint64_t, 32> of_warp(std::uint32_t low, std::uint32_t high) {
  std::array<std::uint64_t, 32> all{};
  const auto* words = exchange(low | static_cast<std::uint64_t>(high) << 32U);
  for (unsigned lane = 0; lane < 32; ++lane) all[lane] = words[lane];
  return all;
}

inline std::uint32_t word(std::uint64_t pair, unsigned number) {
  return static_cast<std::uint32_t>(pair >> (32U * number));
}
inline float bfloat16(std::uint32_t pair, unsigned number) {
  return float_of((pair >> (16U * number)) << 16U);
}

/// Depth 16 by bfloat16, 8 by TensorFloat-32. Each lane computes its own sums.
template <bool kBfloat16>
void multiply(float (&sums)[4], const std::uint32_t (&left)[4], std::uint32_t right0,
              std::uint32_t right1) {
  const auto first = of_warp(left[0], left[1]);
  const auto second = of_warp(left[2], left[3]);
  const auto right = of_warp(right0, right1);
  const unsigned lane = threadIdx.x % 32U;
  constexpr unsigned kHalf = kBfloat16 ? 8 : 4;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane / 4 + 8 * (i / 2);
    const unsigned column = 2 * (lane % 4) + i % 2;
    for (unsigned k = 0; k < 2 * kHalf; ++k) {
      const unsigned t = kBfloat16 ? k % kHalf / 2 : k % kHalf;
      const auto& halves = k < kHalf ? first : second;
      const auto a = word(halves[row % 8 * 4 + t], row / 8);
      const auto b = word(right[column * 4 + t], k / kHalf);
      sums[i] += kBfloat16 ? bfloat16(a, k % 2) * bfloat16(b, k % 2) : float_of(a) * float_of(b);
    }
  }
}

/// @return where the rows begin that the lanes give.
inline std::array<const std::uint16_t*, 32> rows_of_warp(const void* row) {
  std::array<const std::uint16_t*, 32> rows{};
  const auto* words = exchange(reinterpret_cast<std::uint64_t>(row));
  for (unsigned lane = 0; lane < 32; ++lane) {
    rows[lane] = reinterpret_cast<const std::uint16_t*>(words[lane]);
  }
  return rows;
}

}  // namespace emulation

inline void multiply_bfloat16(float (&sums)[4], const std::uint32_t (&left)[4],
                              std::uint32_t right0, std::uint32_t right1) {
  emulation::multiply<true>(sums, left, right0, right1);
}
inline void multiply_tf32(float (&sums)[4], const std::uint32_t (&left)[4], std::uint32_t right0,
                          std::uint32_t right1) {
  emulation::multiply<false>(sums, left, right0, right1);
}

inline void load_matrices(std::uint32_t (&words)[4], const void* row) {
  const auto rows = emulation::rows_of_warp(row);
  const unsigned lane = threadIdx.x % 32U;
  for (unsigned matrix = 0; matrix < 4; ++matrix) {
    std::memcpy(&words[matrix], rows[8 * matrix + lane / 4] + 2 * (lane % 4), 4);
  }
}

inline void load_transposed_matrices(std::uint32_t (&words)[4], const void* row) {
  const auto rows = emulation::rows_of_warp(row);
  const unsigned lane = threadIdx.x % 32U;
  for (unsigned matrix = 0; matrix < 4; ++matrix) {
    const auto* first = &rows[8 * matrix + 2 * (lane % 4)];
    words[matrix] = first[0][lane / 4] | static_cast<std::uint32_t>(first[1][lane / 4]) << 16U;
  }
}

inline void begin_copy(void* to, const void* from, bool exists) {
  if (exists) {
    std::memcpy(to, from, 16);
  } else {
    std::memset(to, 0, 16);
  }
}
inline void wait_for_copies() {}

}  // namespace nas::cuda
