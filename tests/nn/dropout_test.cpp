#include "ops/dropout.hpp"

#include <cmath>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

namespace nas::nn {
namespace {

const Pass kPass{true, {42}};

/// Dropout of a model alone. @param x  without the dimension of an array.
torch::Tensor dropout(const torch::Tensor& x, double p, const Pass& pass, std::uint64_t site) {
  return nn::dropout(x.unsqueeze(0), dropout_masks(p, pass, site, 1))[0];
}

torch::Tensor ones(std::int64_t count, at::ScalarType type = at::kFloat) {
  return at::ones({count}, at::TensorOptions(type));
}

TEST(Dropout, DropsTheRightShareAndKeepsTheMean) {
  for (const double p : {0.05, 0.1, 0.3, 0.5}) {
    const std::int64_t count = 1000000;
    const auto y = dropout(ones(count), p, kPass, 3);
    const auto dropped = y.eq(0.0).sum().item<double>() / static_cast<double>(count);
    // Five standard deviations of a binomial share.
    EXPECT_NEAR(dropped, p, 5.0 * std::sqrt(p * (1.0 - p) / static_cast<double>(count)));
    EXPECT_FLOAT_EQ(y.max().item<float>(), static_cast<float>(1.0 / (1.0 - p)));
    EXPECT_EQ(y.ne(0.0).logical_and(y.ne(y.max())).sum().item<std::int64_t>(), 0);
  }
}

TEST(Dropout, IsAFunctionOfSeedAndSite) {
  const auto x = ones(200000);
  const auto y = dropout(x, 0.5, kPass, 3);
  EXPECT_TRUE(y.equal(dropout(x, 0.5, kPass, 3)));
  for (const auto& other : {dropout(x, 0.5, kPass, 4), dropout(x, 0.5, Pass{true, {43}}, 3)}) {
    const double equal = y.eq(other).sum().item<double>() / 200000.0;
    EXPECT_NEAR(equal, 0.5, 0.006);  // independent masks agree half of the time
  }
}

TEST(Dropout, NeighboursAreIndependent) {
  const auto y = dropout(ones(1000000), 0.5, kPass, 3).ne(0.0);
  for (const std::int64_t lag : {1, 2, 64, 65536}) {
    const auto agree = y.slice(0, lag).eq(y.slice(0, 0, 1000000 - lag)).to(at::kDouble).mean();
    EXPECT_NEAR(agree.item<double>(), 0.5, 0.003) << lag;
  }
}

TEST(Dropout, DependsOnNeitherThreadsNorTypeNorGlobalGenerator) {
  const auto threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = dropout(ones(300000), 0.3, kPass, 1);
  at::set_num_threads(3);
  at::manual_seed(99);
  const auto three = dropout(ones(300000), 0.3, kPass, 1);
  at::set_num_threads(threads);
  EXPECT_TRUE(one.equal(three));
  EXPECT_TRUE(one.ne(0.0).equal(dropout(ones(300000, at::kDouble), 0.3, kPass, 1).ne(0.0)));
}

TEST(Dropout, GradientHasTheSameMask) {
  auto x = at::full({1000}, 3.0, at::TensorOptions(at::kDouble));
  x.requires_grad_(true);
  const auto y = dropout(x, 0.4, kPass, 7);
  y.sum().backward();
  EXPECT_TRUE((x.grad() * 3.0).allclose(y.detach(), 1e-14));
}

TEST(Dropout, CountsElementsInLogicalOrder) {
  const auto x = at::arange(1, 13, at::TensorOptions(at::kFloat)).view({3, 4});
  const auto plain = dropout(x, 0.5, kPass, 2);
  const auto strided = dropout(x.t().contiguous().t(), 0.5, kPass, 2);
  EXPECT_TRUE(plain.equal(strided));
}

TEST(Dropout, OfAModelDependsOnItsOwnSeedAndShare) {
  const auto x = at::randn({3, 50000});
  const Pass pass{true, {1, 2, 3}};
  const std::vector<double> shares{0.3, 0.0, 0.5};
  const auto y = nn::dropout(x, dropout_masks(shares, pass, 4));
  for (std::int64_t r = 0; r < 3; ++r) {
    const auto i = static_cast<std::size_t>(r);
    EXPECT_TRUE(y[r].equal(dropout(x[r], shares[i], {true, {pass.seeds[i]}}, 4))) << r;
  }
}

/// Output and gradients of a gated hidden layer.
std::vector<torch::Tensor> swiglu_pass(const torch::Tensor& gate, const torch::Tensor& x,
                                       const torch::Tensor& gradient, const Masks& masks,
                                       bool by_kernels) {
  const auto g = gate.detach().clone().requires_grad_(true);
  const auto in = x.detach().clone().requires_grad_(true);
  const auto y = by_kernels ? dropped_swiglu(g, in, masks) : nn::dropout(at::silu(g) * in, masks);
  y.backward(gradient);
  return {y.detach(), g.grad(), in.grad()};
}

TEST(DroppedSwiglu, IsTheDropoutOfGatedValuesForwardAndBackward) {
  for (const auto& [type, tolerance] :
       {std::pair(at::kDouble, 1e-12), std::pair(at::kFloat, 2e-5)}) {
    const auto gate = (at::randn({2, 3, 1001}) * 4.0).to(type);
    const auto x = at::randn({2, 3, 1001}).to(type);
    const auto gradient = at::randn({2, 3, 1001}).to(type);
    const Pass pass{true, {1, 2}};
    for (const double share : {0.0, 0.3}) {
      const auto masks = dropout_masks(share, pass, 4, 2);
      const auto ours = swiglu_pass(gate, x, gradient, masks, true);
      const auto expected = swiglu_pass(gate, x, gradient, masks, false);
      for (std::size_t i = 0; i < ours.size(); ++i) {
        EXPECT_TRUE(ours[i].eq(0.0).equal(expected[i].eq(0.0))) << i;
        EXPECT_TRUE(ours[i].allclose(expected[i], tolerance, tolerance)) << i;
      }
    }
  }
}

TEST(Dropout, DoesNothingOutsideTrainingOrAtZero) {
  const auto x = ones(10);
  EXPECT_TRUE(nn::dropout(x, dropout_masks(0.5, Pass{false, {42}}, 1, 10)).is_same(x));
  EXPECT_TRUE(nn::dropout(x, dropout_masks(0.0, kPass, 1, 1)).is_same(x));
}

}  // namespace
}  // namespace nas::nn
