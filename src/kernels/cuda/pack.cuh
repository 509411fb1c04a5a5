// Several neighbouring numbers of a thread, read and written at once.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/cuda/elements.hpp"
#include "kernels/cuda/launch.cuh"

#ifdef NAS_EMULATE_CUDA
#define NAS_MAY_ALIAS [[gnu::may_alias]]
#else
#define NAS_MAY_ALIAS
#endif

namespace nas::cuda {

inline constexpr int kPack = 4;  ///< numbers of a wide pack

/// N neighbours. Memory of a wide one begins at a multiple of 16 bytes, or of 8 in bfloat16.
template <class T, int N>
struct NAS_MAY_ALIAS alignas(sizeof(T[N]) < 16 ? sizeof(T[N]) : 16) Pack {
  T at[static_cast<std::size_t>(N)];
};

template <int N, class T>
__device__ Pack<T, N> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, N>*>(from);
}

template <int N, class T>
__device__ void store_pack(const Pack<T, N>& pack, T* to) {
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

// bfloat16 is the upper half of a float.

__device__ inline float of_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

/// Rounded to the nearest, of two equally near ones to the even one.
__device__ inline std::uint16_t to_bfloat16(float x) {
  constexpr std::uint16_t kNaN = 0x7fc0;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (x != x) return kNaN;
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

/// Elements [i, i + N).
template <int N, class Real>
__device__ Pack<Real, N> load_pack(const Elements<Real>& elements, std::int64_t i) {
  if (!elements.rounded) return load_pack<N>(static_cast<const Real*>(elements.data) + i);
  const auto bits = load_pack<N>(static_cast<const std::uint16_t*>(elements.data) + i);
  Pack<Real, N> pack;
  for (int j = 0; j < N; ++j) pack.at[j] = static_cast<Real>(of_bfloat16(bits.at[j]));
  return pack;
}

template <int N, class Real>
__device__ void store_pack(const Pack<Real, N>& pack, const Elements<Real>& elements,
                           std::int64_t i) {
  if (!elements.rounded) {
    store_pack<N>(pack, static_cast<Real*>(elements.data) + i);
    return;
  }
  Pack<std::uint16_t, N> bits;
  for (int j = 0; j < N; ++j) bits.at[j] = to_bfloat16(static_cast<float>(pack.at[j]));
  store_pack<N>(bits, static_cast<std::uint16_t*>(elements.data) + i);
}

/// Whether packs of kPack begin where they may. Null does.
inline bool is_aligned(const void* memory) {
  constexpr std::uintptr_t kBytes = 16;
  return reinterpret_cast<std::uintptr_t>(memory) % kBytes == 0;
}

}  // namespace nas::cuda
