// What tests of emulated kernels share: memory is "on the device" already.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/seed.hpp"
#include "cuda/emulation.hpp"
#include "cuda/stream.hpp"

namespace nas::cuda {

inline constexpr Stream kNoStream = nullptr;

/// Numbers uniform in [-size, size], a function of the seed.
template <class Real>
std::vector<Real> random_numbers(std::int64_t count, std::uint64_t seed, double size = 1.0) {
  RandomEngine random(seed);
  std::vector<Real> numbers(static_cast<std::size_t>(count));
  for (Real& x : numbers) x = static_cast<Real>(size * (2.0 * random.uniform() - 1.0));
  return numbers;
}

/// Memory that a kernel is to write.
template <class Real>
std::vector<Real> unwritten(std::int64_t count) {
  return std::vector<Real>(static_cast<std::size_t>(count), std::numeric_limits<Real>::quiet_NaN());
}

template <class Real>
constexpr double tolerance() {
  return sizeof(Real) == sizeof(float) ? 2e-5 : 1e-11;
}

/// All within tolerance() of the largest expected one, or of 1.
template <class Real>
void expect_close(const std::vector<Real>& ours, const std::vector<Real>& expected,
                  const std::string& what, double allowed = tolerance<Real>()) {
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

/// Calls run() with threads in either order.
template <class Run>
void in_both_orders(const Run& run) {
  for (const bool backwards : {false, true}) {
    emulation::set_backwards(backwards);
    run();
  }
  emulation::set_backwards(false);
}

}  // namespace nas::cuda
