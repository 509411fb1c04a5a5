#include "kernels/emulation.hpp"

#include <cmath>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/warp.cuh"

namespace nas::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr Stream kNoStream = nullptr;

void reverse_kernel(int* out) {
  int* shared = shared_memory<int>();
  shared[thread_index()] = thread_index();
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = shared[kThreads - 1 - thread_index()];
}

TEST(Emulation, BarriersSeparateWhatThreadsWriteFromWhatTheyRead) {
  for (const bool backwards : {false, true}) {
    emulation::set_backwards(backwards);
    std::vector<int> out(2 * kThreads, -1);
    launch("reverse", reverse_kernel, Grid{2}, kThreads * sizeof(int), kNoStream, out.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out[i], kThreads - 1 - static_cast<int>(i) % kThreads);
    }
  }
  emulation::set_backwards(false);
}

void racing_kernel(int* out) {
  int* shared = shared_memory<int>();
  shared[thread_index()] = thread_index();
  out[thread_index()] = shared[kThreads - 1];
}

TEST(Emulation, AMissingBarrierShowsInOneOfTheOrders) {
  std::vector<int> forwards(kThreads);
  std::vector<int> backwards(kThreads);
  launch("racing", racing_kernel, Grid{}, kThreads * sizeof(int), kNoStream, forwards.data());
  emulation::set_backwards(true);
  launch("racing", racing_kernel, Grid{}, kThreads * sizeof(int), kNoStream, backwards.data());
  emulation::set_backwards(false);
  EXPECT_NE(forwards, backwards);
}

void uninitialised_kernel(float* out) { *out = shared_memory<float>()[0]; }

TEST(Emulation, SharedMemoryThatNobodyWroteIsNaN) {
  float out = 0;
  launch("uninitialised", uninitialised_kernel, Grid{}, sizeof(float), kNoStream, &out);
  EXPECT_TRUE(std::isnan(out));
}

void warp_kernel(float* sums, int* counts, int* any) {
  sums[thread_index()] = warp_sum(static_cast<float>(thread_index()));
  counts[thread_index()] = warp_count(thread_index() % 3 == 0);
  any[thread_index()] = __syncthreads_or(static_cast<int>(thread_index() == 77));
}

TEST(Emulation, WarpsExchangeAmongTheirOwnLanes) {
  std::vector<float> sums(kThreads);
  std::vector<int> counts(kThreads);
  std::vector<int> any(kThreads);
  launch("warp", warp_kernel, Grid{}, 0, kNoStream, sums.data(), counts.data(), any.data());
  const auto at = [](int warp) { return static_cast<std::size_t>(warp * kWarp + 5); };
  EXPECT_THAT((std::vector{sums[at(0)], sums[at(1)], sums[at(2)], sums[at(3)]}),
              ElementsAre(496, 1520, 2544, 3568));
  EXPECT_THAT((std::vector{counts[at(0)], counts[at(1)], counts[at(2)], counts[at(3)]}),
              ElementsAre(11, 11, 10, 11));
  EXPECT_THAT(any, testing::Each(1));
}

void divergent_kernel() {
  if (thread_index() < 100) __syncthreads();
}

TEST(Emulation, ABarrierThatNotAllReachIsAnError) {
  EXPECT_THAT([] { launch("divergent", divergent_kernel, Grid{}, 0, kNoStream); },
              ThrowsMessage<std::runtime_error>(
                  HasSubstr("divergent: 100 of 128 threads wait at a barrier that the others do "
                            "not reach")));
  std::vector<int> out(kThreads);
  launch("reverse", reverse_kernel, Grid{}, kThreads * sizeof(int), kNoStream, out.data());
  EXPECT_EQ(out[0], kThreads - 1) << "the next launch works";
}

TEST(Emulation, RefusesWhatTheDeviceWould) {
  float out = 0;
  EXPECT_THAT(
      [&] {
        launch("uninitialised", uninitialised_kernel, Grid{}, std::size_t{1} << 20U, kNoStream,
               &out);
      },
      ThrowsMessage<std::runtime_error>(
          HasSubstr("uninitialised: 1048576 bytes of shared memory, at most 232448 are there")));
  EXPECT_THAT(
      [&] {
        launch("uninitialised", uninitialised_kernel, Grid{1, 70000}, 4, kNoStream, &out);
      },
      ThrowsMessage<std::invalid_argument>(
          HasSubstr("uninitialised: a grid of 1 x 70000 x 1 blocks, must be within")));
}

}  // namespace
}  // namespace nas::cuda
