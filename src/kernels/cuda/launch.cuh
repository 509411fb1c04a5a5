// Everything that a kernel needs of its surroundings: CUDA's own when nvcc compiles it, threads
// that take turns on the CPU when g++ does (with NAS_EMULATE_CUDA, for tests). Included by .cu
// files only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/cuda/stream.hpp"

#ifdef NAS_EMULATE_CUDA
#include "kernels/emulation.hpp"
#else
#include <cuda_runtime.h>
#endif

namespace nas::cuda {

inline constexpr int kWarp = 32;
inline constexpr int kThreads = 128;  ///< of a block, unless its launch says another number
inline constexpr int kWarps = kThreads / kWarp;
inline constexpr unsigned kAllLanes = 0xffffffffU;

/// How many blocks a launch has in each dimension, and threads in a block.
struct Grid {
  std::int64_t x = 1;
  std::int64_t y = 1;
  std::int64_t z = 1;
  int threads = kThreads;
};

/// @throws std::invalid_argument if CUDA has no such grid.
inline void require_grid(const char* kernel, const Grid& grid) {
  constexpr std::int64_t kMostX = 2147483647;
  constexpr std::int64_t kMostOthers = 65535;
  if (grid.x > kMostX || grid.y > kMostOthers || grid.z > kMostOthers) {
    throw std::invalid_argument(std::string(kernel) + ": a grid of " + std::to_string(grid.x) +
                                " x " + std::to_string(grid.y) + " x " + std::to_string(grid.z) +
                                " blocks, must be within " + std::to_string(kMostX) + " x " +
                                std::to_string(kMostOthers) + " x " + std::to_string(kMostOthers));
  }
}

/// How many pieces a size has, the last one possibly smaller.
constexpr std::int64_t pieces(std::int64_t size, std::int64_t piece) {
  return (size + piece - 1) / piece;
}

inline bool is_empty(const Grid& grid) { return grid.x == 0 || grid.y == 0 || grid.z == 0; }

__device__ inline int thread_index() { return static_cast<int>(threadIdx.x); }
__device__ inline int lane_index() { return thread_index() % kWarp; }
__device__ inline int warp_index() { return thread_index() / kWarp; }

#ifdef NAS_EMULATE_CUDA

template <class T>
T* shared_memory() {
  return reinterpret_cast<T*>(emulation::shared_memory());
}

inline std::size_t most_shared_bytes() { return emulation::kMostSharedBytes; }

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const Grid& grid,
            std::size_t shared_bytes, Stream /*stream*/, const Arguments&... arguments) {
  require_grid(name, grid);
  emulation::run(
      name,
      {static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z)},
      static_cast<unsigned>(grid.threads), shared_bytes,
      [kernel, arguments...] { kernel(arguments...); });
}

#else

/// The dynamic shared memory of the block, aligned to 16 bytes.
template <class T>
__device__ T* shared_memory() {
  extern __shared__ __align__(16) unsigned char nas_shared_memory[];
  return reinterpret_cast<T*>(nas_shared_memory);
}

inline void require_success(const char* name, cudaError_t status) {
  if (status == cudaSuccess) return;
  // These are about the launch; the others are about the device, which is then unusable.
  const bool of_launch = status == cudaErrorInvalidValue || status == cudaErrorInvalidConfiguration;
  throw std::runtime_error(std::string(name) + (of_launch ? ": " : ": CUDA error: ") +
                           cudaGetErrorString(status));
}

/// @return how much shared memory a block may have on the current device.
inline std::size_t most_shared_bytes() {
  int device = 0;
  int bytes = 0;
  require_success("cudaGetDevice", cudaGetDevice(&device));
  require_success("cudaDeviceGetAttribute",
                  cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return static_cast<std::size_t>(bytes);
}

/// Enqueues a kernel. An empty grid is no launch.
///
/// @throws std::invalid_argument, std::runtime_error as nas::cuda says, starting with `name`.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const Grid& grid,
            std::size_t shared_bytes, Stream stream, const Arguments&... arguments) {
  require_grid(name, grid);
  if (is_empty(grid)) return;
  constexpr std::size_t kWithoutAsking = std::size_t{48} * 1024;
  if (shared_bytes > kWithoutAsking) {
    // The limit is of the kernel on the device, not of a launch: one that fits this launch alone
    // would refuse a larger one that another thread, or a captured graph, makes meanwhile.
    require_success(name, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               static_cast<int>(most_shared_bytes())));
  }
  const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y),
                    static_cast<unsigned>(grid.z));
  kernel<<<blocks, static_cast<unsigned>(grid.threads), shared_bytes, stream>>>(arguments...);
  require_success(name, cudaGetLastError());
}

#endif

}  // namespace nas::cuda
