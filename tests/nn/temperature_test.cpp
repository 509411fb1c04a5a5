// Temperatures of arrays in fused form. That they equal LibTorch's operations is tested with their
// mechanisms (numerical_mode_test).

#include "ops/temperature.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "ops/torch_compat.hpp"

namespace nas::nn {
namespace {

constexpr std::int64_t kSequences = 2;
constexpr std::int64_t kHeads = 3;
constexpr std::int64_t kTokens = 5;
constexpr std::int64_t kWidth = 4;

torch::Tensor random(const std::vector<std::int64_t>& sizes, std::uint64_t seed) {
  return at::randn(sizes, make_generator(at::kCPU, seed), at::TensorOptions(at::kDouble))
      .requires_grad_(true);
}

/// A model of each kind, and two that share one: seven.
struct Kinds {
  torch::Tensor theta = random({2, kHeads}, 1);
  torch::Tensor p = random({1, 1}, 2);
  torch::Tensor weight = random({1, kHeads, kWidth}, 3);
  torch::Tensor bias = random({1, kHeads}, 4);
  torch::Tensor mean_weight = random({1, 1, kWidth}, 5);
  torch::Tensor mean_bias = random({1, 1}, 6);
  torch::Tensor x = random({7, kSequences, kTokens, kWidth}, 7);
  FusedTemperatures temperatures{
      {{{0}, {}},
       {{2, 1}, {.function = DivisorFunction::exponential, .parameter = theta}},
       {{3}, {.function = DivisorFunction::absolute, .parameter = p}},
       {{4}, {.function = DivisorFunction::logistic, .weight = weight, .bias = bias}},
       {{5},
        {.function = DivisorFunction::logistic,
         .weight = mean_weight,
         .bias = mean_bias,
         .of_mean = true}},
       {{6}, {.scale = 3.0}}},
      {2.0, 0.5, 4.0, 1.0, 0.7, 1.0, 1.0},
      kHeads,
      NumericalMode::exact};

  [[nodiscard]] std::vector<torch::Tensor> inputs() const {
    return {theta, p, weight, bias, mean_weight, mean_bias, x};
  }
};

TEST(Temperatures, AreThoseOfTheFormulas) {
  Kinds kinds;
  const auto inverses = kinds.temperatures.inverses(kinds.x);
  ASSERT_EQ(inverses.sizes(), at::IntArrayRef({7, kSequences, kHeads, kTokens, 1}));
  const auto of = [&](std::int64_t r) { return inverses[r].squeeze(-1).reciprocal(); };
  const auto expect = [&](std::int64_t r, const torch::Tensor& expected) {
    EXPECT_TRUE(of(r).allclose(expected.expand({kSequences, kHeads, kTokens}), 1e-12, 1e-12)) << r;
  };
  const auto number = [](double x) { return at::scalar_tensor(x, at::kDouble); };
  expect(0, number(2.0));
  expect(1, 0.5 * kinds.theta[1].exp().view({1, kHeads, 1}));
  expect(2, 4.0 * kinds.theta[0].exp().view({1, kHeads, 1}));
  expect(3, kinds.p.abs().view({1, 1, 1}) + 0.5);
  const auto logits = at::linear(kinds.x[4], kinds.weight[0], kinds.bias[0]).transpose(1, 2);
  expect(4, 0.7 * (logits.sigmoid() + 0.5));
  const auto mean = at::linear(kinds.x[5].mean(1), kinds.mean_weight[0], kinds.mean_bias[0]);
  expect(5, mean.sigmoid().unsqueeze(-1) + 0.5);
  expect(6, number(3.0));
}

TEST(Temperatures, HaveTheGradientsOfFiniteDifferences) {
  Kinds kinds;
  const auto outer = random({7, kSequences, kHeads, kTokens, 1}, 8).detach();
  const auto value = [&] { return (kinds.temperatures.inverses(kinds.x) * outer).sum(); };
  value().backward();
  constexpr double kStep = 1e-5;
  for (const auto& input : kinds.inputs()) {
    const at::NoGradGuard no_grad;
    const auto flat = input.view({-1});
    const auto gradient = input.grad().view({-1});
    for (std::int64_t i = 0; i < flat.size(0); ++i) {
      const double at = flat[i].item<double>();
      flat[i].fill_(at + kStep);
      const double above = value().item<double>();
      flat[i].fill_(at - kStep);
      const double below = value().item<double>();
      flat[i].fill_(at);
      ASSERT_NEAR(gradient[i].item<double>(), (above - below) / (2 * kStep), 1e-7)
          << input.sizes() << " " << i;
    }
  }
}

TEST(Temperatures, ThatAreConstantHaveNoGradients) {
  FusedTemperatures constants({{{0, 1}, {}}, {{2}, {.scale = 8.0}}}, {4.0, 3.0, 1.0}, kHeads,
                              NumericalMode::exact);
  for (const auto type : {at::kFloat, at::kDouble}) {
    const auto x = at::ones({3, kSequences, kTokens, kWidth}, at::TensorOptions(type));
    const auto inverses = constants.inverses(x.requires_grad_(true));
    EXPECT_FALSE(inverses.requires_grad());
    EXPECT_EQ(inverses.scalar_type(), type);
    ASSERT_EQ(inverses.sizes(), at::IntArrayRef({3, kSequences, kHeads, kTokens, 1}));
    EXPECT_TRUE(inverses[0].eq(0.25).all().item<bool>());
    EXPECT_TRUE(inverses[1].allclose(at::ones_like(inverses[1]) / 3.0));
    EXPECT_TRUE(inverses[2].eq(0.125).all().item<bool>());
  }
}

TEST(Temperatures, KeepANaNToItsModel) {
  Kinds kinds;
  {
    const at::NoGradGuard no_grad;
    kinds.x[4].fill_(std::numeric_limits<double>::quiet_NaN());
    kinds.theta[0].fill_(std::numeric_limits<double>::quiet_NaN());
  }
  const auto inverses = kinds.temperatures.inverses(kinds.x);
  inverses.square().sum().backward();
  for (std::int64_t r = 0; r < 7; ++r) {
    const bool nan = r == 2 || r == 4;
    EXPECT_EQ(inverses[r].isnan().any().item<bool>(), nan) << r;
    EXPECT_EQ(kinds.x.grad()[r].isnan().any().item<bool>(), r == 4) << r;
  }
  EXPECT_TRUE(kinds.theta.grad()[1].isfinite().all().item<bool>());
  EXPECT_TRUE(kinds.p.grad().isfinite().all().item<bool>());
  EXPECT_TRUE(kinds.mean_weight.grad().isfinite().all().item<bool>());
}

}  // namespace
}  // namespace nas::nn
