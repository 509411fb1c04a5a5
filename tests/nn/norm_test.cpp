#include "ops/norm.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "kernels/instruction_set.hpp"
#include "ops/torch_compat.hpp"

namespace nas::nn {
namespace {

constexpr double kEpsilon = 1e-5;

torch::Tensor draw(const std::vector<std::int64_t>& sizes, at::ScalarType type,
                   std::uint64_t seed) {
  return at::randn(sizes, make_generator(at::kCPU, seed), at::TensorOptions(at::kDouble)).to(type);
}

struct Inputs {
  torch::Tensor x, weight, bias, gradient;

  /// @param sizes  of x.
  Inputs(const std::vector<std::int64_t>& sizes, at::ScalarType type)
      : x(draw(sizes, type, 1) * 3.0 + 1.0),
        weight(draw({sizes.front(), sizes.back()}, type, 2)),
        bias(draw({sizes.front(), sizes.back()}, type, 3)),
        gradient(draw(sizes, type, 4)) {}

  /// Those of models [begin, end).
  [[nodiscard]] Inputs models(std::int64_t begin, std::int64_t end) const {
    auto some = *this;
    for (auto* tensor : {&some.x, &some.weight, &some.bias, &some.gradient}) {
      *tensor = tensor->slice(0, begin, end);
    }
    return some;
  }
};

/// y and the gradients by x, weight and, if it has a part, bias, where y = normalised(x, weight, bias).
template <class Normalised>
std::vector<torch::Tensor> pass(const Inputs& inputs, const Normalised& normalised) {
  const auto leaf = [](const torch::Tensor& tensor) {
    return tensor.detach().clone().requires_grad_(true);
  };
  const auto x = leaf(inputs.x);
  const auto weight = leaf(inputs.weight);
  const auto bias = leaf(inputs.bias);
  const auto y = normalised(x, weight, bias);
  y.backward(inputs.gradient);
  std::vector<torch::Tensor> found{y.detach(), x.grad(), weight.grad()};
  if (bias.grad().defined()) found.push_back(bias.grad());
  return found;
}

std::vector<torch::Tensor> pass(const Inputs& inputs, NumericalMode mode = NumericalMode::exact) {
  return pass(inputs, [&](const auto& x, const auto& weight, const auto& bias) {
    return layer_norm(x, weight, bias, kEpsilon, mode);
  });
}

std::vector<torch::Tensor> rms_pass(const Inputs& inputs,
                                    NumericalMode mode = NumericalMode::exact) {
  return pass(inputs, [&](const auto& x, const auto& weight, const auto& /*bias*/) {
    return rms_norm(x, weight, kEpsilon, mode);
  });
}

/// One of LibTorch's operations a model.
std::vector<torch::Tensor> expected_pass(const Inputs& inputs) {
  return pass(inputs, [](const auto& x, const auto& weight, const auto& bias) {
    std::vector<torch::Tensor> models;
    for (std::int64_t r = 0; r < x.size(0); ++r) {
      models.push_back(at::layer_norm(x[r], {x.size(-1)}, weight[r], bias[r], kEpsilon));
    }
    return at::stack(models);
  });
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

void expect_equal(const std::vector<torch::Tensor>& actual,
                  const std::vector<torch::Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(actual[i].equal(expected[i])) << i;
}

TEST(LayerNorm, EqualsThatOfLibTorch) {
  const auto all = kernels::instruction_sets();
  ASSERT_FALSE(all.empty());
  for (const auto& name : all) {
    kernels::use_instruction_set(name);
    for (const std::int64_t width : {15, 16, 33, 128}) {
      SCOPED_TRACE(name + ", width " + std::to_string(width));
      const std::vector<std::int64_t> sizes{3, 2, 50, width};
      const Inputs in_double(sizes, at::kDouble);
      expect_near(pass(in_double), expected_pass(in_double), 1e-12);
      const Inputs in_float(sizes, at::kFloat);
      expect_near(pass(in_float), expected_pass(in_float), 1e-5);
    }
  }
  kernels::use_instruction_set(all.front());
}

/// LibTorch's x / deviation - mean / deviation leaves rounding errors here.
TEST(LayerNorm, OneElementIsItsOwnMean) {
  const Inputs inputs({3, 100, 1}, at::kDouble);
  const auto actual = pass(inputs);
  EXPECT_TRUE(actual[0].equal(inputs.bias.unsqueeze(1).expand_as(inputs.x)));
  EXPECT_LT(actual[1].abs().max().item<double>(), 1e-12);
  EXPECT_TRUE(actual[2].equal(at::zeros_like(inputs.weight)));
  EXPECT_TRUE(actual[3].allclose(inputs.gradient.sum(1), 1e-13));
}

TEST(LayerNorm, ReferenceIsLibTorchs) {
  const Inputs inputs({3, 2, 5, 33}, at::kDouble);
  expect_near(pass(inputs, NumericalMode::reference), expected_pass(inputs), 1e-12);
}

TEST(LayerNorm, TakesAnyNumberOfDimensionsAndNoRows) {
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{3, 7}, {2, 65, 7}, {2, 0, 7}}) {
    const Inputs inputs(sizes, at::kDouble);
    const auto actual = pass(inputs);
    if (inputs.x.numel() > 0) {
      expect_near(actual, expected_pass(inputs), 1e-12);
    } else {
      EXPECT_EQ(actual[0].sizes(), inputs.x.sizes());
      EXPECT_TRUE(actual[2].equal(at::zeros_like(inputs.weight)));
    }
  }
}

/// The mean of squares minus the square of the mean would lose every digit here; three are left where a
/// processor rounds products before it adds (SSE2), four elsewhere.
TEST(LayerNorm, LargeMeansCostNoPrecision) {
  Inputs inputs({1, 40, 64}, at::kFloat);
  inputs.x = inputs.x.mul(1024.0).round().div(1024.0).add(4096.0);  // exact in float32
  auto in_double = inputs;
  for (auto* tensor : {&in_double.x, &in_double.weight, &in_double.bias, &in_double.gradient}) {
    *tensor = tensor->to(at::kDouble);
  }
  auto actual = pass(inputs);
  for (auto& tensor : actual) tensor = tensor.to(at::kDouble);
  expect_near(actual, expected_pass(in_double), 5e-4);
}

TEST(Norm, AModelDependsOnNeitherItsMatesNorThreads) {
  const int before = at::get_num_threads();
  const auto expect_alone = [&](const Inputs& inputs, const auto& passed) {
    at::set_num_threads(1);
    const auto array = passed(inputs);
    for (std::int64_t r = 0; r < 3; ++r) {
      std::vector<torch::Tensor> slices;
      for (const auto& tensor : array) slices.push_back(tensor.slice(0, r, r + 1));
      expect_equal(passed(inputs.models(r, r + 1)), slices);
    }
    at::set_num_threads(2);
    expect_equal(passed(inputs), array);
    at::set_num_threads(before);
  };
  for (const auto type : {at::kFloat, at::kDouble}) {
    const Inputs inputs({3, 4, 100, 33}, type);
    expect_alone(inputs, [](const Inputs& given) { return pass(given); });
    expect_alone(inputs, [](const Inputs& given) { return rms_pass(given); });
  }
}

TEST(LayerNorm, NaNStaysInItsModel) {
  Inputs inputs({2, 100, 16}, at::kFloat);
  const auto clean = pass(inputs);
  inputs.x[0].fill_(std::numeric_limits<float>::quiet_NaN());
  const auto actual = pass(inputs);
  for (std::size_t i = 0; i < clean.size(); ++i) {
    EXPECT_TRUE(actual[i][1].equal(clean[i][1])) << i;
    EXPECT_EQ(actual[i][0].isnan().any().item<bool>(), i != 3) << i;  // by bias: no x in it
  }
}

TEST(LayerNorm, TakesAnyStrides) {
  Inputs inputs({2, 6, 5, 8}, at::kDouble);
  const auto plain = pass(inputs);
  inputs.x = inputs.x.transpose(1, 2).contiguous().transpose(1, 2);
  inputs.gradient = inputs.gradient.transpose(1, 2).contiguous().transpose(1, 2);
  const auto x = inputs.x.detach().requires_grad_(true);
  const auto y = layer_norm(x, inputs.weight, inputs.bias, kEpsilon, NumericalMode::exact);
  y.backward(inputs.gradient);
  EXPECT_TRUE(y.equal(plain[0]));
  EXPECT_TRUE(x.grad().equal(plain[1]));
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
        expect_near(rms_pass(inputs), rms_pass(inputs, NumericalMode::reference), tolerance);
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

}  // namespace
}  // namespace nas::nn
