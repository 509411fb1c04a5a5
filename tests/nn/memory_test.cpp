#include "ops/memory.hpp"

#include <cmath>
#include <cstdint>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include "core/error.hpp"
#include "genotype/slots.hpp"
#include "nn/transformer.hpp"
#include "unit/message_of.hpp"

namespace nas::nn {
namespace {

constexpr std::int64_t kMebi = std::int64_t{1} << 20U;

torch::Tensor floats(std::int64_t count) {
  return at::empty({count}, at::TensorOptions(at::kFloat));
}

TEST(Memory, CountsExactly) {
  const MemoryScope scope;
  EXPECT_EQ(scope.current_bytes(), 0);
  {
    const auto a = floats(1000);
    const auto b = floats(3 * kMebi);
    EXPECT_EQ(scope.current_bytes(), 4000 + 12 * kMebi);
    const auto c = a.clone();
    EXPECT_EQ(scope.current_bytes(), 8000 + 12 * kMebi);
  }
  EXPECT_EQ(scope.current_bytes(), 0);
  const auto small = floats(10);
  EXPECT_EQ(scope.current_bytes(), 40);
  EXPECT_EQ(scope.peak_bytes(), 8000 + 12 * kMebi);
}

TEST(Memory, ReusesBlocksWithDefinedContents) {
  const MemoryScope scope;
  const void* first = floats(kMebi).fill_(7.0F).data_ptr();
  const auto again = floats(kMebi);
  EXPECT_EQ(again.data_ptr(), first);
  EXPECT_EQ(again.fill_(2.0F).sum().item<float>(), 2.0F * static_cast<float>(kMebi));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(again.data_ptr()) % 64, 0U);
  release_cached_memory();
  EXPECT_EQ(again.min().item<float>(), 2.0F);
}

TEST(Memory, InnerScopesCountInOuterOnes) {
  const MemoryScope outer;
  const auto a = floats(100);
  torch::Tensor kept;
  {
    const MemoryScope inner;
    kept = floats(50);
    EXPECT_EQ(inner.current_bytes(), 200);
    EXPECT_EQ(outer.current_bytes(), 600);
  }
  EXPECT_EQ(outer.current_bytes(), 600);
  kept.reset();
  EXPECT_EQ(outer.current_bytes(), 400);
}

TEST(Memory, ScopesOfThreadsAreApartAndForeignFreesGoHome) {
  const MemoryScope scope;
  auto mine = floats(1000);
  torch::Tensor theirs;
  std::thread([&] {
    const MemoryScope other;
    theirs = floats(2000);
    EXPECT_EQ(other.current_bytes(), 8000);
    mine.reset();
    EXPECT_EQ(other.current_bytes(), 8000);
  }).join();
  EXPECT_EQ(scope.current_bytes(), 0);
  theirs.reset();
  EXPECT_EQ(scope.current_bytes(), 0);
}

TEST(Memory, ManyThreadsAllocateAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      const MemoryScope scope;
      for (int i = 0; i < 200; ++i) {
        const auto block = floats(20000 + 1000 * (i % 7)).fill_(static_cast<float>(t));
        EXPECT_EQ(block.max().item<float>(), static_cast<float>(t));
      }
      EXPECT_EQ(scope.current_bytes(), 0);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Memory, LimitNamesSizesAndLeavesEverythingAsItWas) {
  const MemoryScope scope(3 * kMebi);
  const auto kept = floats(kMebi / 2);
  EXPECT_EQ(message_of<MemoryLimitExceeded>([&] { floats(kMebi); }),
            "a tensor of 4 MiB beside 2 MiB in use would exceed the memory limit of 3 MiB");
  EXPECT_EQ(scope.current_bytes(), 2 * kMebi);
  EXPECT_EQ(scope.peak_bytes(), 2 * kMebi);
  EXPECT_EQ(floats(kMebi / 4).numel(), kMebi / 4);
}

TEST(DeviceMemory, CountsNothingOnTheCpu) {
  const DeviceMemoryScope scope("cpu");
  const auto kept = floats(kMebi);
  EXPECT_EQ(scope.peak_bytes(), 0);
}

TEST(DeviceMemory, IsThePeakBeyondTheBeginning) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no CUDA device";
  const auto on_device = at::TensorOptions(at::kFloat).device("cuda:0");
  const auto before = at::empty({kMebi}, on_device);
  const DeviceMemoryScope scope("cuda:0");
  EXPECT_EQ(scope.peak_bytes(), 0);
  at::empty({2 * kMebi}, on_device);
  EXPECT_EQ(scope.peak_bytes(), 8 * kMebi);
  at::empty({kMebi}, on_device);
  EXPECT_EQ(scope.peak_bytes(), 8 * kMebi);
}

Architecture small_model() {
  return {.stack = {vanilla_mechanism(Semantics::corrected)},
          .width = 32,
          .context = 64,
          .vocabulary = 500};
}

double train_step(Transformer& model) {
  const auto tokens = at::arange(8 * 64, at::TensorOptions(at::kLong)).view({8, 64}).remainder(500);
  const auto loss = model.logits(tokens, Pass{true, {1}}).log_softmax(-1).square().mean();
  loss.backward();
  return loss.item<double>();
}

TEST(Memory, LimitLeavesTorchForwardAndBackwardAsItsOwnException) {
  Transformer model(small_model());
  model.initialise(1, 0);
  std::int64_t forward_peak = 0;
  std::int64_t step_peak = 0;
  {
    const MemoryScope scope;
    const auto tokens = at::zeros({8, 64}, at::TensorOptions(at::kLong));
    const auto loss = model.logits(tokens, Pass{true, {1}}).log_softmax(-1).square().mean();
    forward_peak = scope.peak_bytes();
    loss.backward();
    step_peak = scope.peak_bytes();
  }
  ASSERT_LT(forward_peak, step_peak);
  for (const auto limit : {forward_peak / 2, (forward_peak + step_peak) / 2}) {
    const MemoryScope scope(limit);
    EXPECT_THROW(train_step(model), MemoryLimitExceeded) << limit;
  }
  const MemoryScope scope;
  EXPECT_TRUE(std::isfinite(train_step(model)));
}

}  // namespace
}  // namespace nas::nn
