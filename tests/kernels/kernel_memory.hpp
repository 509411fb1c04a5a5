// What tests of kernels share. The same tests run emulated kernels on the CPU and, as
// cuda_kernels_on_device, those of a GPU; their arrays are in memory that kernels and tests reach.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/stream.hpp"
#include "kernels/mix64.hpp"
#ifdef NAS_EMULATE_CUDA
#include "kernels/emulation.hpp"
#else
#include "kernels/device_memory.hpp"
#endif

namespace nas::cuda {

#ifdef NAS_EMULATE_CUDA

template <class Element>
using Array = std::vector<Element>;

inline void wait_for_kernels() {}

#else

inline void wait_for_kernels() { EXPECT_STREQ(wait_for_device(), nullptr); }

template <class Element>
struct KernelAllocator {
  using value_type = Element;

  KernelAllocator() = default;
  template <class Other>
  KernelAllocator(const KernelAllocator<Other>& /*other*/) {
  }  // NOLINT(google-explicit-constructor)
  Element* allocate(std::size_t count) {
    return static_cast<Element*>(kernel_memory(count * sizeof(Element)));
  }
  void deallocate(Element* memory, std::size_t /*count*/) noexcept { free_kernel_memory(memory); }
  friend bool operator==(const KernelAllocator&, const KernelAllocator&) { return true; }
};

template <class Element>
using Array = std::vector<Element, KernelAllocator<Element>>;

#endif

/// The stream of a call whose kernels have run when its statement ends.
class AtOnce {
 public:
  AtOnce() = default;
  ~AtOnce() { wait_for_kernels(); }
  AtOnce(const AtOnce&) = delete;
  AtOnce& operator=(const AtOnce&) = delete;
  // NOLINTNEXTLINE(google-explicit-constructor): stands for it
  operator Stream() const { return nullptr; }
};

/// SplitMix64.
class RandomEngine {
 public:
  explicit RandomEngine(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()() {
    const auto bits = mix64(state_);
    state_ += 0x9e3779b97f4a7c15ULL;
    return bits;
  }
  double uniform() { return static_cast<double>((*this)() >> 11U) * 0x1.0p-53; }  ///< in [0, 1)
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(uniform() * static_cast<double>(n));
  }

 private:
  std::uint64_t state_;
};

/// Numbers uniform in [-size, size], a function of the seed.
template <class Real>
Array<Real> random_numbers(std::int64_t count, std::uint64_t seed, double size = 1.0) {
  RandomEngine random(seed);
  Array<Real> numbers(static_cast<std::size_t>(count));
  for (Real& x : numbers) x = static_cast<Real>(size * (2.0 * random.uniform() - 1.0));
  return numbers;
}

/// Memory that a kernel is to write.
template <class Real>
Array<Real> unwritten(std::int64_t count) {
  return Array<Real>(static_cast<std::size_t>(count), std::numeric_limits<Real>::quiet_NaN());
}

template <class Real>
constexpr double tolerance() {
  return sizeof(Real) == sizeof(float) ? 2e-5 : 1e-11;
}

/// All within tolerance() of the largest expected one, or of 1.
template <class Real>
void expect_close(const Array<Real>& ours, const Array<Real>& expected, const std::string& what,
                  double allowed = tolerance<Real>()) {
  ASSERT_EQ(ours.size(), expected.size()) << what;
  double largest = 0;
  double error = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    ASSERT_FALSE(std::isnan(ours[i])) << what << ", element " << i;
    largest = std::max(largest, static_cast<double>(std::abs(expected[i])));
    error = std::max(error, static_cast<double>(std::abs(ours[i] - expected[i])));
  }
  EXPECT_LE(error, allowed * std::max(largest, 1.0)) << what << ", up to " << largest;
}

/// Calls run() with emulated threads in either order.
template <class Run>
void in_both_orders(const Run& run) {
#ifdef NAS_EMULATE_CUDA
  for (const bool backwards : {false, true}) {
    emulation::set_backwards(backwards);
    run();
  }
  emulation::set_backwards(false);
#else
  run();
#endif
}

}  // namespace nas::cuda
