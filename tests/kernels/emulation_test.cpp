#include "kernels/emulation.hpp"

#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/launch.cuh"

namespace nas::cuda {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr Stream kNoStream = nullptr;

void reverse_kernel(int* out) {
  int* shared = shared_memory<int>();
  shared[thread_index()] = thread_index();
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = shared[kThreads - 1 - thread_index()];
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

}  // namespace
}  // namespace nas::cuda
