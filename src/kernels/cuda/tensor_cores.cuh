// Products of small matrices by a warp, and what feeds them, for factors of two kinds. Fragments are
// those of the PTX instruction mma.sync: with g = lane / 4 and t = lane % 4, lane holds
//   sums (16 x 8)     (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1);
//   bfloat16, two in a word, the first in the low half:
//     left (16 x 16)  columns 2t and 2t + 1 of (g, g + 8), then columns 8 further on;
//     right (16 x 8)  rows 2t and 2t + 1 of column g, then rows 8 further on;
//   TensorFloat-32:
//     left (16 x 8)   (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4);
//     right (8 x 8)   (t, g), (t + 4, g).
#pragma once

#include <cstdint>

#include "kernels/cuda/launch.cuh"

#ifdef NAS_EMULATE_CUDA
#include "kernels/emulated_tensor_cores.hpp"
#else

// Code for earlier devices, on which nothing of this is called.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define NAS_FROM_SM_80(...) __trap()
#else
#define NAS_FROM_SM_80(...) __VA_ARGS__
#endif

namespace nas::cuda {

/// Whether the current device has what is used here: compute capability 8.0.
inline bool has_tensor_cores() {
  int device = 0;
  int major = 0;
  require_success("cudaGetDevice", cudaGetDevice(&device));
  require_success("cudaDeviceGetAttribute",
                  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  return major >= 8;
}

/// The nearest bfloat16 numbers.
__device__ inline std::uint32_t pack_bfloat16(float low, float high) {
  std::uint32_t both = 0;
  NAS_FROM_SM_80(asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low)));
  return both;
}

/// The nearest number of 10 bits behind the point.
__device__ inline float round_to_tf32(float x) {
  std::uint32_t bits = 0;
  NAS_FROM_SM_80(asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x)));
  return __uint_as_float(bits);
}

__device__ inline std::uint32_t bits_of(float x) { return __float_as_uint(x); }
__device__ inline float float_of(std::uint32_t bits) { return __uint_as_float(bits); }

/// 2^x, to about 2^-22 of it.
__device__ inline float power_of_two(float x) {
  float power = 0;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

/// sums += left right, of bfloat16 numbers.
__device__ inline void multiply_bfloat16(float (&sums)[4], const std::uint32_t (&left)[4],
                                         std::uint32_t right0, std::uint32_t right1) {
  NAS_FROM_SM_80(
      asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
          "{%8, %9}, {%0, %1, %2, %3};"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1)));
}

/// sums += left right, of TensorFloat-32 numbers.
__device__ inline void multiply_tf32(float (&sums)[4], const std::uint32_t (&left)[4],
                                     std::uint32_t right0, std::uint32_t right1) {
  NAS_FROM_SM_80(
      asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
          "{%8, %9}, {%0, %1, %2, %3};"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1)));
}

/// Four 8 x 8 matrices of 16-bit numbers in shared memory: lane l says where row l % 8 of matrix l / 8
/// is (16 bytes), and gets of each matrix the numbers 2t and 2t + 1 of row g.
__device__ inline void load_matrices(std::uint32_t (&words)[4], const void* row) {
  [[maybe_unused]] const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  NAS_FROM_SM_80(asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                              : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                              : "r"(address)
                              : "memory"));
}

/// Likewise, of each matrix the numbers g of rows 2t and 2t + 1.
__device__ inline void load_transposed_matrices(std::uint32_t (&words)[4], const void* row) {
  [[maybe_unused]] const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  NAS_FROM_SM_80(
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                   : "r"(address)
                   : "memory"));
}

/// Begins to copy 16 bytes to shared memory; zeros if there are none.
__device__ inline void begin_copy(void* to, const void* from, bool exists) {
  [[maybe_unused]] const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  [[maybe_unused]] const int bytes = exists ? 16 : 0;
  NAS_FROM_SM_80(asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                              :
                              : "r"(address), "l"(from), "r"(bytes)
                              : "memory"));
}

/// Waits for all copies that the thread began; others' have arrived after a barrier.
__device__ inline void wait_for_copies() {
  NAS_FROM_SM_80(asm volatile("cp.async.wait_all;" : : : "memory"));
}

}  // namespace nas::cuda

#undef NAS_FROM_SM_80

#endif
