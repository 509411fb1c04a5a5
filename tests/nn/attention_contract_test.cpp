#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "genotype/mechanism_name.hpp"
#include "genotype/slots.hpp"
#include "lone_layer.hpp"
#include "mechanisms.hpp"
#include "unit/message_of.hpp"

namespace nas::nn {
namespace {

using test::both_semantics;
using test::LoneLayer;
using test::paper_mechanisms;
using test::single_options;

const at::TensorOptions kDouble(at::kDouble);

torch::Tensor causal_mask(std::int64_t tokens) {
  return at::ones({tokens, tokens}, at::TensorOptions(at::kBool)).tril();
}

std::unique_ptr<Normalization> normalization(const std::string& key) {
  std::vector<Parameter> parameters;
  return normalizations().at(key).make(LayerContext{}, ParameterScope(parameters));
}

/// @return the weights of one query that sees all `scores`.
torch::Tensor last_row(const std::string& key, const std::vector<double>& scores) {
  const auto tokens = static_cast<std::int64_t>(scores.size());
  const auto square = at::tensor(scores, kDouble).expand({1, 1, tokens, tokens});
  return normalization(key)->weights(square, causal_mask(tokens))[0][0][tokens - 1];
}

void expect_row(const std::string& key, const std::vector<double>& scores,
                const std::vector<double>& expected) {
  const auto difference = (last_row(key, scores) - at::tensor(expected, kDouble)).abs().max();
  EXPECT_LT(difference.item<double>(), 1e-8) << key << " of " << at::tensor(scores, kDouble);
}

TEST(Normalization, ClosedForms) {
  expect_row("sparsemax", {-2, 0, 0.5}, {0, 0.25, 0.75});
  expect_row("sparsemax", {1, 0.5, 0.2}, {0.75, 0.25, 0});
  expect_row("sparsemax", {2, 1, 0, -1}, {1, 0, 0, 0});
  expect_row("sparsemax", {0.1, 0.2, 0.3, 0.4}, {0.1, 0.2, 0.3, 0.4});
  for (const double t : {-3.0, -0.4, 0.0, 0.9, 2.0}) {
    const double first = std::min(std::max((t + 1) / 2, 0.0), 1.0);
    expect_row("sparsemax", {t, 0}, {first, 1 - first});
  }
  expect_row("entmax15", {-2, 0, 0.5}, {0, 0.3260073637, 0.6739926363});
  expect_row("entmax15", {1, 0.5, 0.2}, {0.5928072275, 0.2703373496, 0.1368554229});
  expect_row("entmax15", {2, 1, 0, -1}, {0.8307189139, 0.1692810861, 0, 0});
  expect_row("entmax15", {0.1, 0.2, 0.3, 0.4},
             {0.1779702241, 0.2226567414, 0.2723432586, 0.3270297759});
  expect_row("softmax1", {-2, 0, 0.5}, {0.0357646, 0.26426666, 0.43570207});
  expect_row("softmax1", {1, 0.5, 0.2}, {0.41258567, 0.25024586, 0.18538669});
  expect_row("softmax1", {2, 1, 0, -1}, {0.59229879, 0.21789455, 0.08015892, 0.02948882});
  expect_row("softmax1", {0.1, 0.2, 0.3, 0.4}, {0.17917069, 0.19801424, 0.21883958, 0.24185514});
  expect_row("softmax", {0, std::log(3.0)}, {0.25, 0.75});
  expect_row("relu_norm", {-1, 1, 3, -2}, {0, 0.25, 0.75, 0});
  expect_row("relu_norm", {-1, -2, 0}, {0, 0, 0});
  expect_row("sigmoid_norm", {0, 0, 0, 0}, {0.25, 0.25, 0.25, 0.25});
  expect_row("topk_quarter", {1, 5, 2, 5.5, 0, 0, 0, 0},
             {0, 1 / (1 + std::exp(0.5)), 0, 1 / (1 + std::exp(-0.5)), 0, 0, 0, 0});
  expect_row("top_k", {3, 0, 0, 0, 3}, {0.5, 0, 0, 0, 0.5});
}

TEST(Normalization, ShiftedAndLargeScoresAreExact) {
  const auto scores = at::randn({1, 2, 16, 16}, kDouble);
  const auto visible = causal_mask(16);
  for (const auto* key : {"softmax", "sparsemax", "entmax15", "topk_quarter", "top_k"}) {
    const auto weights = normalization(key)->weights(scores, visible);
    EXPECT_TRUE(normalization(key)->weights(scores + 1000.0, visible).allclose(weights, 1e-9, 1e-9))
        << key;
    EXPECT_TRUE(weights.sum(-1).allclose(at::ones({1, 2, 16}, kDouble))) << key;
  }
}

TEST(Normalization, HiddenKeysHaveNoWeightAndNothingIsNaN) {
  for (const auto& key : components().keys("normalization")) {
    for (const double scale : {0.0, 1.0, -1.0, 300.0}) {
      for (const auto type : {at::kFloat, at::kDouble}) {
        auto scores = at::randn({1, 2, 4, 9, 9}, at::TensorOptions(type)).abs().mul(scale);
        scores.requires_grad_(true);
        const auto weights = normalization(key)->weights(scores, causal_mask(9));
        (weights * at::randn_like(weights)).sum().backward();
        EXPECT_EQ(weights.triu(1).count_nonzero().item<std::int64_t>(), 0) << key << scale;
        EXPECT_EQ(scores.grad().triu(1).count_nonzero().item<std::int64_t>(), 0) << key << scale;
        EXPECT_TRUE(weights.isfinite().all().item<bool>()) << key << " " << scale;
        EXPECT_TRUE(scores.grad().isfinite().all().item<bool>()) << key << " " << scale;
        EXPECT_GE(weights.min().item<double>(), 0.0) << key << " " << scale;
      }
    }
  }
}

TEST(Normalization, NumberOfWeightsOfTopK) {
  const auto scores = at::randn({1, 1, 128, 128}, kDouble);
  const auto quarter = normalization("topk_quarter")->weights(scores, causal_mask(128))[0][0];
  const auto counts = quarter.ne(0.0).sum(-1);
  const std::vector<std::pair<std::int64_t, std::int64_t>> published{{0, 1},   {15, 16}, {31, 32},
                                                                     {32, 32}, {63, 32}, {127, 32}};
  for (const auto& [row, count] : published) {
    EXPECT_EQ(counts[row].item<std::int64_t>(), count) << row;
  }
  const auto own = normalization("top_k")->weights(scores, causal_mask(128))[0][0];
  for (std::int64_t row = 0; row < 128; ++row) {
    EXPECT_EQ(own[row].count_nonzero().item<std::int64_t>(), (row + 4) / 4) << row;
  }
}

TEST(Normalization, SparsemaxJacobian) {
  auto scores = at::tensor(std::vector<double>{1, 0.5, 0.2}, kDouble).repeat({1, 1, 3, 1});
  scores.requires_grad_(true);
  const auto weights = normalization("sparsemax")->weights(scores, causal_mask(3));
  weights[0][0][2][0].backward();
  // diag(s) - s s'/|S| with the support {0, 1}.
  EXPECT_TRUE(
      scores.grad()[0][0][2].allclose(at::tensor(std::vector<double>{0.5, -0.5, 0.0}, kDouble)));
}

/// One layer in float64 with parameters that are far from any special value.
struct Layer {
  Layer(const Mechanism& given, Semantics semantics, AttentionShape shape = {8, 2, 6},
        NumericalMode mode = NumericalMode::reference)
      : layer(given, shape, semantics, ParameterScope(parameters, mode)) {
    move_to(parameters, at::kCPU, at::kDouble);
    const at::NoGradGuard no_grad;
    auto generator = at::detail::createCPUGenerator(5);
    for (auto& parameter : parameters) parameter.tensor.normal_(0.1, 0.6, generator);
    x = at::empty({2, shape.context, shape.width}, kDouble).normal_(0, 1, generator);
    residual = at::empty_like(x).normal_(0, 1, generator);
    weight = at::empty_like(x).normal_(0, 1, generator);
  }

  torch::Tensor loss() { return (layer.forward(x, residual, pass, 1) * weight).sum(); }

  std::vector<Parameter> parameters;
  LoneLayer layer;
  torch::Tensor x, residual, weight;
  Pass pass{};
};

/// Compares the gradient of every entry of `tensor` with a central difference.
void expect_gradient(Layer& layer, const torch::Tensor& tensor, const torch::Tensor& gradient,
                     const std::string& what) {
  constexpr double kStep = 1e-6;
  const at::NoGradGuard no_grad;
  auto values = tensor.view(-1);
  auto numeric = at::zeros_like(values);
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    const double value = values[i].item<double>();
    values[i].fill_(value + kStep);
    const double above = layer.loss().item<double>();
    values[i].fill_(value - kStep);
    const double below = layer.loss().item<double>();
    values[i].fill_(value);
    numeric[i].fill_((above - below) / (2 * kStep));
  }
  const double error = (numeric - gradient.reshape(-1)).abs().max().item<double>();
  EXPECT_LT(error, 1e-6 * (1.0 + numeric.abs().max().item<double>())) << what;
}

void expect_gradients(const Mechanism& mechanism, Semantics semantics, NumericalMode mode) {
  Layer layer(mechanism, semantics, {8, 2, 6}, mode);
  layer.pass = {true, {3}};
  const auto name = std::string(to_string(semantics)) + " " + to_string(mechanism);
  layer.x.requires_grad_(true);
  layer.residual.requires_grad_(true);
  layer.loss().backward();
  expect_gradient(layer, layer.x.detach(), layer.x.grad(), name + " x");
  if (layer.residual.grad().defined())
    expect_gradient(layer, layer.residual.detach(), layer.residual.grad(), name + " residual");
  for (const auto& parameter : layer.parameters) {
    ASSERT_TRUE(parameter.tensor.grad().defined()) << name << " " << parameter.name;
    expect_gradient(layer, parameter.tensor.detach(), parameter.tensor.grad(),
                    name + " " + parameter.name);
  }
}

TEST(AttentionLayer, GradientsEqualFiniteDifferences) {
  for (const auto semantics : both_semantics()) {
    for (auto mechanism : single_options(semantics)) {
      mechanism.set("attention_dropout", 0.2);
      expect_gradients(mechanism, semantics, NumericalMode::reference);
      expect_gradients(mechanism, semantics, NumericalMode::exact);
    }
  }
}

TEST(AttentionLayer, TemperatureCancelsUnderReluNorm) {
  for (const auto semantics : both_semantics()) {
    for (auto mechanism : paper_mechanisms(semantics)) {
      if (mechanism.word("normalization") != "relu_norm") continue;
      Layer layer(mechanism, semantics);
      Layer fixed(canonical(mechanism, semantics), semantics);
      for (auto& parameter : fixed.parameters) {
        for (const auto& own : layer.parameters)
          if (own.name == parameter.name) parameter.tensor.set_data(own.tensor.detach().clone());
      }
      const auto expected = fixed.layer.forward(fixed.x, fixed.residual, Pass{}, 0);
      const auto y = layer.layer.forward(fixed.x, fixed.residual, Pass{}, 0);
      // Not to the last digit: the 1e-8 in the denominator has no temperature.
      EXPECT_LT((y - expected).abs().max().item<double>(),
                1e-6 * expected.abs().max().item<double>())
          << to_string(mechanism);
    }
  }
}

TEST(AttentionLayer, EveryDescriptionHasAModuleAndASummary) {
  EXPECT_EQ(components().keys("similarity"), similarities().keys());
  EXPECT_EQ(components().keys("normalization"), normalizations().keys());
  EXPECT_EQ(components().keys("gating"), gatings().keys());
  EXPECT_EQ(components().keys("temperature"), temperatures().keys());
  EXPECT_EQ(components().keys("position"), positions().keys());
  EXPECT_EQ(components().keys("pattern"), patterns().keys());
  EXPECT_EQ(components().keys("decay"), decays().keys());
  EXPECT_EQ(components().keys("qk_norm"), vector_norms().keys());
  EXPECT_EQ(components().keys("head_norm"), vector_norms().keys());
  for (const auto& gene : component_genes()) {
    for (const auto& key : components().keys(gene)) {
      EXPECT_FALSE(components().at(gene, key).summary.empty()) << key;
      EXPECT_GE(components().at(gene, key).flops(AttentionShape{}), 0.0) << key;
    }
  }
}

std::map<std::string, torch::Tensor> started(const Mechanism& mechanism, Semantics semantics) {
  std::vector<Parameter> parameters;
  const LoneLayer layer(mechanism, {64, 2, 128}, semantics, ParameterScope(parameters));
  initialise(parameters, {{1, 0}});
  std::map<std::string, torch::Tensor> values;
  for (const auto& parameter : parameters) values[parameter.name] = parameter.tensor.detach();
  return values;
}

TEST(Start, OfEveryOptionUnderEitherSemantics) {
  using enum Semantics;
  const auto start = [](Semantics semantics, const char* gene, const char* key) {
    auto mechanism = vanilla_mechanism(semantics);
    mechanism.set(gene, key);
    return started(mechanism, semantics);
  };
  const auto expect_constant = [](const torch::Tensor& tensor, double value) {
    EXPECT_TRUE(tensor.eq(value).all().item<bool>()) << tensor;
  };
  expect_constant(start(published, "gating", "input_gate")["gate.bias"], 0.0);
  expect_constant(start(corrected, "gating", "input_gate")["gate.bias"], 2.0);
  expect_constant(start(published, "gating", "output_gate")["out_gate.bias"], 0.0);
  expect_constant(start(corrected, "gating", "output_gate")["out_gate.bias"], 2.0);
  expect_constant(start(published, "gating", "normed_highway")["highway_gate.bias"], 0.0);
  expect_constant(start(corrected, "gating", "highway")["highway_gate.bias"], -1.0);
  expect_constant(start(published, "temperature", "shifted_abs")["temperature"], 1.0);
  expect_constant(start(corrected, "temperature", "learned")["temperature.theta"], 0.0);
  expect_constant(start(corrected, "temperature", "per_query")["temperature.weight"], 0.0);
  expect_constant(start(corrected, "temperature", "per_query")["temperature.bias"], 0.0);
  const auto sequence_mean = start(published, "temperature", "sequence_mean");
  EXPECT_NEAR(sequence_mean.at("temp_proj.weight").std().item<double>(), 0.02, 0.006);
  const auto flat = start(published, "similarity", "additive");
  EXPECT_NEAR(flat.at("attn_fc.weight").std().item<double>(), 0.02, 0.002);
  const auto spread = start(corrected, "similarity", "additive");
  const double bound = std::sqrt(6.0 / (32 + 64));
  EXPECT_NEAR(spread.at("attn_fc.weight").max().item<double>(), bound, 0.01);
  EXPECT_LE(spread.at("attn_fc.weight").abs().max().item<double>(), bound);
  EXPECT_LE(spread.at("attn_v.weight").abs().max().item<double>(), std::sqrt(6.0 / (32 + 1)));
  expect_constant(spread.at("attn_fc.bias"), 0.0);
}

TEST(Start, TemperatureSuitsTheSimilarity) {
  const AttentionShape shape{64, 2, 128};
  const auto start_temperature = [&](const char* key) {
    std::vector<Parameter> parameters;
    return similarities()
        .at(key)
        .make({shape}, ParameterScope(parameters))
        ->start_temperature(shape);
  };
  EXPECT_DOUBLE_EQ(start_temperature("dot"), std::sqrt(32.0));
  EXPECT_DOUBLE_EQ(start_temperature("silu_dot"), std::sqrt(32.0));
  EXPECT_DOUBLE_EQ(start_temperature("bilinear"), std::sqrt(32.0));
  EXPECT_DOUBLE_EQ(start_temperature("additive"), 1.0);
  EXPECT_DOUBLE_EQ(start_temperature("cosine"), 1.0 / std::log2(128.0 * 127.0));

  // All corrected temperatures start as the fixed one, whatever the similarity.
  for (const auto& similarity : similarities().keys()) {
    auto mechanism = vanilla_mechanism(Semantics::corrected);
    mechanism.set("similarity", similarity);
    torch::Tensor expected;
    for (const auto* temperature : {"fixed", "learned", "per_query"}) {
      mechanism.set("temperature", temperature);
      std::vector<Parameter> parameters;
      LoneLayer layer(mechanism, shape, Semantics::corrected, ParameterScope(parameters));
      initialise(parameters, {{1, 0}});
      auto generator = at::detail::createCPUGenerator(5);
      const auto x = at::empty({1, 9, 64}, at::TensorOptions(at::kFloat)).normal_(0, 1, generator);
      const auto y = layer.forward(x, x, Pass{}, 0);
      if (!expected.defined()) expected = y;
      EXPECT_TRUE(y.allclose(expected, 1e-5, 1e-7)) << similarity << " " << temperature;
    }
  }
}

}  // namespace
}  // namespace nas::nn
