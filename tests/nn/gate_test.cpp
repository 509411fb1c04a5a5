// Gated sums and the linear maps of their logits, against LibTorch's operations.

#include "ops/gate.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "genotype/costs.hpp"
#include "genotype/mechanism_name.hpp"
#include "nn/attention_layer.hpp"
#include "nn/transformer.hpp"
#include "ops/torch_compat.hpp"

namespace nas::nn {
namespace {

torch::Tensor random(const std::vector<std::int64_t>& sizes, torch::ScalarType type,
                     std::uint64_t seed) {
  return at::randn(sizes, make_generator(at::kCPU, seed), at::TensorOptions(type))
      .requires_grad_(true);
}

double tolerance(torch::ScalarType type) { return type == at::kDouble ? 1e-12 : 2e-6; }

void expect_close(const torch::Tensor& given, const torch::Tensor& expected,
                  const std::string& what) {
  ASSERT_TRUE(given.defined()) << what;
  ASSERT_EQ(given.sizes(), expected.sizes()) << what;
  const double largest = std::max(expected.abs().max().item<double>(), 1.0);
  EXPECT_LE((given - expected).abs().max().item<double>(),
            tolerance(expected.scalar_type()) * largest)
      << what;
}

class GatesOf : public ::testing::TestWithParam<torch::ScalarType> {};

/// A copy, s x, s (o - h), s o + (1 - s) x, and a copy with logits that it does not read.
GatedSums various_sums() {
  return {{{{{{1.0F, 0.0F}}}, -1},
           {{{{0.0F, 1.0F}}}, 2},
           {{{{0.0F, 1.0F}, {}, {0.0F, -1.0F}}}, 0},
           {{{{0.0F, 1.0F}, {1.0F, -1.0F}}}, 1},
           {{{{1.0F, 0.0F}}}, 3}}};
}

TEST_P(GatesOf, SumsAreThoseOfTheFormula) {
  // More elements a model than a thread takes at once, and no multiple of a vector's.
  const std::vector<std::int64_t> sizes{5, 3, 7, 857};
  const auto sums = various_sums();
  const GatedTensors terms{random(sizes, GetParam(), 1), random(sizes, GetParam(), 2),
                           random(sizes, GetParam(), 3)};
  const auto logits = random({4, 3, 7, 857}, GetParam(), 4);
  const auto outer = random(sizes, GetParam(), 5).detach();
  const auto inputs = std::vector{terms[0], terms[1], terms[2], logits};
  const auto gradients_of = [&](const torch::Tensor& result) {
    for (const auto& input : inputs) input.mutable_grad() = torch::Tensor();
    (result * outer).sum().backward();
    std::vector<torch::Tensor> gradients;
    for (const auto& input : inputs) gradients.push_back(input.grad());
    return gradients;
  };
  const auto s = logits.sigmoid();
  const auto& [o, x, h] = terms;
  const auto expected =
      at::stack({o[0], s[2] * o[1], s[0] * (o[2] - h[2]), s[1] * o[3] + (1 - s[1]) * x[3], o[4]});
  const auto expected_gradients = gradients_of(expected);
  const auto given = gated_sum(sums, terms, logits);
  expect_close(given, expected, "sums");
  EXPECT_TRUE(given[0].equal(o[0]));
  const auto gradients = gradients_of(given);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    expect_close(gradients[i], expected_gradients[i], "gradient " + std::to_string(i));
  }
  EXPECT_TRUE(gradients[0][0].equal(outer[0]));
  for (const std::int64_t r : {0, 1, 2, 4}) {
    EXPECT_EQ(gradients[1][r].count_nonzero().item<int>(), 0) << r;
  }
  EXPECT_EQ(gradients[3][3].count_nonzero().item<int>(), 0);
}

TEST_P(GatesOf, WhatNoSumReadsGetsNoGradient) {
  const GatedSums sums{{{{{{0.0F, 1.0F}}}, 0}, {{{{1.0F, 0.0F}}}, -1}}};
  const GatedTensors terms{random({2, 3}, GetParam(), 1), random({2, 3}, GetParam(), 2), {}};
  const auto logits = random({1, 3}, GetParam(), 3);
  gated_sum(sums, terms, logits).sum().backward();
  EXPECT_TRUE(terms[0].grad().defined());
  EXPECT_FALSE(terms[1].grad().defined());
  const GatedSums copies{{{{{{1.0F, 0.0F}}}, -1}, {{{{1.0F, 0.0F}}}, 0}}};
  EXPECT_TRUE(copies.is_copy());
  EXPECT_FALSE(sums.is_copy());
  EXPECT_TRUE(gated_sum(copies, terms, logits).is_same(terms[0]));
}

TEST_P(GatesOf, ANaNStaysWhereItIs) {
  const auto sums = various_sums();
  GatedTensors terms;
  for (auto& term : terms) term = at::ones({5, 19}, at::TensorOptions(GetParam()));
  auto logits = at::zeros({4, 19}, at::TensorOptions(GetParam()));
  for (auto& term : terms) term[2].fill_(std::numeric_limits<double>::quiet_NaN());
  logits[0].fill_(std::numeric_limits<double>::quiet_NaN());
  for (auto& term : terms) term.requires_grad_(true);
  logits.requires_grad_(true);
  const auto given = gated_sum(sums, terms, logits);
  (given * given).sum().backward();
  for (const std::int64_t r : {0, 1, 3, 4}) {
    EXPECT_TRUE(given[r].isfinite().all().item<bool>()) << r;
    for (const auto& term : terms) EXPECT_TRUE(term.grad()[r].isfinite().all().item<bool>()) << r;
  }
  EXPECT_TRUE(given[2].isnan().all().item<bool>());
  EXPECT_TRUE(terms[0].grad()[2].isnan().all().item<bool>());
  EXPECT_TRUE(logits.grad().slice(0, 1).isfinite().all().item<bool>());
}

TEST_P(GatesOf, PartialMapsAreThoseOfLibTorch) {
  const auto x = random({4, 2, 5, 33}, GetParam(), 1);
  const std::vector<PartialMap> maps{
      {{1, 3}, random({2, 17, 33}, GetParam(), 2), random({2, 17}, GetParam(), 3)},
      {{0}, random({1, 17, 33}, GetParam(), 4), random({1, 17}, GetParam(), 5)}};
  const auto y = partial_linear(x, maps, NumericalMode::exact);
  y.sum().backward();
  for (const auto& [row, model, map, place] :
       std::vector<std::array<std::int64_t, 4>>{{0, 1, 0, 0}, {1, 3, 0, 1}, {2, 0, 1, 0}}) {
    const auto& [models, weight, bias] = maps[static_cast<std::size_t>(map)];
    const auto own = x[model].detach().requires_grad_();
    const auto expected = at::linear(own, weight[place], bias[place]);
    expected.sum().backward();
    expect_close(y[row], expected, "y");
    expect_close(x.grad()[model], own.grad(), "gradient");
  }
  EXPECT_EQ(x.grad()[2].count_nonzero().item<int>(), 0);
}

INSTANTIATE_TEST_SUITE_P(, GatesOf, ::testing::Values(at::kFloat, at::kDouble),
                         [](const auto& given) { return std::string(toString(given.param)); });

/// A gating that is computed by LibTorch's operations in every mode.
class Squashed final : public Gating {
 public:
  torch::Tensor increment(const torch::Tensor& attended, const torch::Tensor& /*x*/,
                          const torch::Tensor& /*residual*/) const override {
    return attended.sigmoid();
  }
};
NAS_REGISTER_GATING(Squashed, .key = "squashed", .summary = "h + sigmoid(o)");

Architecture small_model(const std::string& gating) {
  return {
      .stack = {parse_mechanism("dot|softmax|" + gating + "|fixed|bias|0", Semantics::corrected)},
      .layers = 1,
      .width = 6,
      .heads = 2,
      .context = 5,
      .vocabulary = 11};
}

TEST(Gates, WithoutAFormTrainApartFromThoseThatHaveOne) {
  const auto plain = small_model("squashed");
  const auto gate = small_model("output_gate");
  EXPECT_FALSE(fused_forms(plain.stack.front()).gating);
  EXPECT_FALSE(alike(plain, gate));
  EXPECT_TRUE(alike(gate, small_model("none")));
  try {
    std::vector<Parameter> parameters;
    const AttentionLayer layer({plain.stack.front(), gate.stack.front()}, attention_shape(plain),
                               Semantics::corrected,
                               ParameterScope(parameters, NumericalMode::exact, first_models(2)));
    FAIL() << "an array of both";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("with and without a fused form: dot|softmax|squashed"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace nas::nn
