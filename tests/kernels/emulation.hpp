// A test tool, used by tests only: the part of CUDA that our kernels use, on the CPU, so that they
// are run where there is no GPU. The .cu files are compiled as C++ with NAS_EMULATE_CUDA.
//
// A launch runs its blocks one after the other and the threads of a block in turns, on one thread
// of the system: each runs until it waits at a barrier or an exchange of its warp. That is
// deterministic. What it finds: wrong results, reads of shared memory that nothing was written to
// (it is filled with NaN), reads and writes beyond it (under the address sanitizer), barriers that
// not all threads reach, and with set_backwards() races that show when the last thread goes first.
// What it cannot find: whatever depends on threads that really run at once, and anything about
// speed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>

// NOLINTBEGIN: the names are CUDA's
#define __global__
#define __device__
#define __launch_bounds__(...)

namespace nas::cuda {

/// CUDA's built-in variables, of the thread that is running.
struct EmulatedIndex {
  unsigned x = 0;
  unsigned y = 0;
  unsigned z = 0;
};
inline EmulatedIndex threadIdx;
inline EmulatedIndex blockIdx;
inline EmulatedIndex gridDim;
// NOLINTEND

namespace emulation {

/// What a block may have on an H100 or H200.
inline constexpr std::size_t kMostSharedBytes = std::size_t{227} * 1024;

/// Runs a kernel of one-dimensional blocks; `threads` is a multiple of 32.
///
/// @throws std::runtime_error if it needs more shared memory than there is, or if threads wait for
/// others that never come.
void run(const char* kernel, const EmulatedIndex& grid, unsigned threads, std::size_t shared_bytes,
         const std::function<void()>& body);

/// From here on, kernels that are launched are captured, not run.
void begin_recording();
bool is_recording();
/// @return what runs the kernels that were launched since begin_recording(), as often as it is
/// called; their arguments are those of their launch.
std::function<void()> end_recording();

/// Whether the last thread of a block and of a warp goes first from now on, in place of the first.
void set_backwards(bool backwards);

/// Memory of the block that is running.
std::byte* shared_memory();

/// Waits for the whole block.
/// @return whether `predicate` holds for any thread of it.
bool wait_for_block(bool predicate);

/// Gives a word to the warp and waits for all of it.
/// @return the words of all 32 lanes, valid until the calling lane's next exchange.
const std::uint64_t* exchange(std::uint64_t word);

}  // namespace emulation

// NOLINTBEGIN
inline void __syncthreads() { emulation::wait_for_block(false); }
inline int __syncthreads_or(int predicate) { return emulation::wait_for_block(predicate != 0); }
inline void __syncwarp() { emulation::exchange(0); }

inline unsigned __ballot_sync(unsigned /*lanes*/, bool predicate) {
  const std::uint64_t* words = emulation::exchange(predicate ? 1 : 0);
  unsigned bits = 0;
  for (unsigned lane = 0; lane < 32; ++lane) bits |= static_cast<unsigned>(words[lane]) << lane;
  return bits;
}

inline float __shfl_sync(unsigned /*lanes*/, float x, int lane) {
  return std::bit_cast<float>(
      static_cast<std::uint32_t>(emulation::exchange(std::bit_cast<std::uint32_t>(x))[lane]));
}
inline double __shfl_sync(unsigned /*lanes*/, double x, int lane) {
  return std::bit_cast<double>(emulation::exchange(std::bit_cast<std::uint64_t>(x))[lane]);
}
template <class Real>
Real __shfl_xor_sync(unsigned lanes, Real x, int mask) {
  return __shfl_sync(lanes, x, static_cast<int>(threadIdx.x % 32U) ^ mask);
}

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(unsigned x) { return x == 0 ? 0 : std::countr_zero(x) + 1; }
inline float __fdividef(float x, float y) { return x / y; }
// NOLINTEND

}  // namespace nas::cuda
