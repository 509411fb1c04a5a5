#include <cstdint>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "kernels/instruction_set.hpp"
#include "ops/norm.hpp"
#include "ops/torch_compat.hpp"

namespace nas::nn {
namespace {

constexpr double kEpsilon = 1e-5;

torch::Tensor draw(const std::vector<std::int64_t>& sizes, at::ScalarType type,
                   std::uint64_t seed) {
  return at::randn(sizes, make_generator(at::kCPU, seed), at::TensorOptions(at::kDouble)).to(type);
}

struct Inputs {
  torch::Tensor x, weight, gradient;

  /// @param sizes  of x.
  Inputs(const std::vector<std::int64_t>& sizes, at::ScalarType type)
      : x(draw(sizes, type, 1) * 3.0 + 1.0),
        weight(draw({sizes.front(), sizes.back()}, type, 2)),
        gradient(draw(sizes, type, 3)) {}
};

/// y and the gradients w.r.t. x and weight.
std::vector<torch::Tensor> pass(const Inputs& inputs, NumericalMode mode) {
  const auto x = inputs.x.detach().clone().requires_grad_(true);
  const auto weight = inputs.weight.detach().clone().requires_grad_(true);
  const auto y = rms_norm(x, weight, kEpsilon, mode);
  y.backward(inputs.gradient);
  return {y.detach(), x.grad(), weight.grad()};
}

void expect_near(const std::vector<torch::Tensor>& actual,
                 const std::vector<torch::Tensor>& expected, double relative) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].sizes(), expected[i].sizes()) << i;
    const auto error = (actual[i] - expected[i]).abs().max().item<double>();
    EXPECT_LE(error, relative * expected[i].abs().max().item<double>()) << i;
  }
}

TEST(RmsNorm, KernelsComputeWhatOperationsCompute) {
  const auto all = kernels::instruction_sets();
  ASSERT_FALSE(all.empty());
  for (const auto& name : all) {
    kernels::use_instruction_set(name);
    for (const std::int64_t width : {1, 15, 16, 33, 128}) {
      SCOPED_TRACE(name + ", width " + std::to_string(width));
      for (const auto& [type, tolerance] :
           {std::pair(at::kDouble, 1e-12), std::pair(at::kFloat, 1e-5)}) {
        // Of one element only the sign is left: its gradient is a difference of equal numbers.
        if (width == 1 && type == at::kFloat) continue;
        const Inputs inputs({3, 2, 50, width}, type);
        expect_near(pass(inputs, NumericalMode::exact), pass(inputs, NumericalMode::reference),
                    tolerance);
      }
    }
  }
  kernels::use_instruction_set(all.front());
}

TEST(RmsNorm, GivesRowsOfRootMeanSquareOneWhateverTheirScale) {
  for (const auto mode : {NumericalMode::reference, NumericalMode::exact}) {
    const auto x = draw({2, 40, 64}, at::kDouble, 5);
    const auto weight = at::ones({2, 64}, at::TensorOptions(at::kDouble));
    const auto y = rms_norm(x * 1000.0, weight, kEpsilon, mode);
    EXPECT_LT((y.square().mean(-1) - 1.0).abs().max().item<double>(), 1e-9);
    EXPECT_LT((y / x.square().mean(-1, true).rsqrt() - x).abs().max().item<double>(), 1e-9);
  }
}

TEST(RmsNorm, AModelDependsOnNeitherItsMatesNorThreads) {
  const int before = at::get_num_threads();
  for (const auto type : {at::kFloat, at::kDouble}) {
    const Inputs inputs({3, 4, 100, 33}, type);
    at::set_num_threads(1);
    const auto array = pass(inputs, NumericalMode::exact);
    for (std::int64_t r = 0; r < 3; ++r) {
      auto one = inputs;
      for (auto* tensor : {&one.x, &one.weight, &one.gradient}) {
        *tensor = tensor->slice(0, r, r + 1);
      }
      const auto alone = pass(one, NumericalMode::exact);
      for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(alone[i][0].equal(array[i][r]));
    }
    at::set_num_threads(2);
    const auto threaded = pass(inputs, NumericalMode::exact);
    for (std::size_t i = 0; i < array.size(); ++i) EXPECT_TRUE(threaded[i].equal(array[i])) << i;
    at::set_num_threads(before);
  }
}

TEST(RmsNorm, RefusesWeightsOfAnotherSize) {
  try {
    rms_norm(at::ones({3, 2, 8}), at::ones({3, 7}), kEpsilon, NumericalMode::exact);
    FAIL() << "no error";
  } catch (const c10::Error& error) {
    EXPECT_THAT(
        error.what_without_backtrace(),
        testing::StartsWith("rms_norm of [3, 2, 8] has weight [3, 7], must be (first, last) "
                            "of those sizes"));
  }
}

}  // namespace
}  // namespace nas::nn
