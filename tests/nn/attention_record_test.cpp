// What attention layers hand out, and what is found in models whose weights are set by hand.

#include "nn/attention_record.hpp"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "genotype/architecture_name.hpp"
#include "instruments/attention_analysis.hpp"
#include "instruments/attention_statistics.hpp"
#include "nn/attention.hpp"
#include "nn/transformer.hpp"
#include "ops/torch_compat.hpp"

namespace nas::nn {
namespace {

constexpr std::int64_t kTokens = 32;
constexpr std::int64_t kVocabulary = 50;
constexpr std::int64_t kSequences = 10;  // more than are computed at once

Architecture small(const std::string& mechanism = "dot|softmax|none|fixed|bias|0.1") {
  return {.stack = {parse_mechanism(mechanism, Semantics::corrected)},
          .layers = 1,
          .width = kTokens,
          .heads = 2,
          .context = kTokens,
          .vocabulary = kVocabulary};
}

torch::Tensor random_tokens(std::uint64_t seed = 1) {
  return at::randint(kVocabulary, {kSequences, kTokens}, make_generator(at::kCPU, seed),
                     at::TensorOptions(at::kLong));
}

/// A model with some parameters set by hand, those of all layers likewise.
class Planted {
 public:
  explicit Planted(const Architecture& architecture) : model_(architecture) {
    model_.initialise(1, 0);
  }

  /// The parameter of a model whose name ends so, without the array's dimension.
  torch::Tensor operator[](const std::string& end) {
    for (auto& [name, tensor] : model_.parameters()) {
      if (name.size() >= end.size() && name.ends_with(end)) return tensor.detach()[0];
    }
    throw std::invalid_argument("no parameter " + end);
  }

  AttentionAnalysis analysis() {
    const auto tokens = random_tokens();
    return analyse_attention(model_, tokens, tokens, 1);
  }

  Transformer& model() { return model_; }

 private:
  Transformer model_;
};

void expect_all(const LayerAnalysis& layer, const std::string& name, double expected,
                double tolerance) {
  const auto& heads = layer.statistics.at(name);
  ASSERT_FALSE(heads.empty());
  for (const auto& head : heads) {
    ASSERT_EQ(head.size(), static_cast<std::size_t>(kSequences));
    for (const double value : head) EXPECT_NEAR(value, expected, tolerance) << name;
  }
}

double mean_over_keys(double (*function)(double)) {
  double sum = 0.0;
  for (std::int64_t i = kFirstQuery; i < kTokens; ++i) sum += function(static_cast<double>(i + 1));
  return sum / static_cast<double>(kTokens - kFirstQuery);
}

TEST(AttentionRecordTest, HoldsWhatLayersCompute) {
  auto architecture = small("dot|softmax|output_gate|fixed|bias|0.1");
  architecture.layers = 2;
  Transformer model(architecture);
  model.initialise(3, 0);
  const at::NoGradGuard no_grad;
  const auto tokens = random_tokens();
  AttentionRecord record;
  Pass pass;
  pass.record = &record;
  const auto logits = model.logits(tokens, pass);
  EXPECT_TRUE(at::equal(logits, model.logits(tokens, Pass{}))) << "looking changes nothing";
  ASSERT_EQ(record.layers.size(), 2U);
  const std::vector<std::int64_t> square{kSequences, 2, kTokens, kTokens};
  for (const auto& layer : record.layers) {
    EXPECT_EQ(layer.scores.sizes(), square);
    ASSERT_EQ(layer.weights.sizes(), square);
    EXPECT_TRUE(at::equal(layer.weights, layer.weights.tril()));
    EXPECT_TRUE(at::allclose(layer.weights, hide(layer.scores, layer.visible).softmax(-1)));
    EXPECT_TRUE(at::equal(layer.visible,
                          at::ones({kTokens, kTokens}, at::TensorOptions(at::kBool)).tril()));
    EXPECT_FALSE(layer.log_forget.defined());
    EXPECT_EQ(layer.gate.sizes(), at::IntArrayRef({kSequences, kTokens, kTokens}));
    EXPECT_EQ(layer.gated.sizes(), layer.gate.sizes());
  }
  EXPECT_FALSE(at::equal(record.layers[0].weights, record.layers[1].weights));
}

TEST(AttentionRecordTest, IsOfOneModelThatIsComputedByOperations) {
  AttentionRecord record;
  Pass pass;
  pass.record = &record;
  Transformer kernel(small(), NumericalMode::exact);
  kernel.initialise(1, 0);
  EXPECT_THROW((void)kernel.features(random_tokens(), pass), std::logic_error);
  TransformerArray two({small(), small()}, NumericalMode::reference);
  two.initialise({{1, 0}, {2, 0}});
  const auto tokens = random_tokens().expand({2, kSequences, kTokens});
  EXPECT_THROW((void)two.features(tokens, pass), std::logic_error);
}

TEST(PlantedModel, ThatAttendsToAllKeysAlike) {
  Planted planted(small());
  planted["attention.q_proj.weight"].zero_();
  const auto found = planted.analysis();
  ASSERT_EQ(found.layers.size(), 1U);
  const auto& layer = found.layers.front();
  expect_all(layer, "entropy_ratio", 1.0, 1e-6);
  expect_all(layer, "sink_mass", mean_over_keys([](double n) { return 1.0 / n; }), 1e-6);
  expect_all(layer, "effective_keys", mean_over_keys([](double n) { return n; }), 1e-4);
  expect_all(layer, "row_mass", 1.0, 1e-6);
  expect_all(layer, "score_sd", 0.0, 1e-9);
  for (const double rate : found.model.at("sink_rate")) EXPECT_EQ(rate, 0.0);
  // 1, 1/2, ... of queries 0, 1, ...: rows of i + 1 weights.
  ASSERT_EQ(layer.example.size(), 2U);
  ASSERT_EQ(layer.example[1].size(), static_cast<std::size_t>(kTokens));
  ASSERT_EQ(layer.example[1][4].size(), 5U);
  EXPECT_NEAR(layer.example[1][4][2], 0.2, 1e-6);
  EXPECT_FALSE(layer.gate.has_value());
}

TEST(PlantedModel, ThatLooksAtThePreviousToken) {
  auto architecture = small();
  architecture.heads = 1;
  Planted planted(architecture);
  // Tokens are all alike; place t is unit vector t, whose layer norm has length sqrt(D).
  planted["embedding.weight"].zero_();
  planted["position.weight"].copy_(at::eye(kTokens));
  planted["attention.q_proj.weight"].copy_(10.0 * at::eye(kTokens).roll(-1, 0));
  planted["attention.k_proj.weight"].copy_(at::eye(kTokens));
  const auto found = planted.analysis();
  const auto& layer = found.layers.front();
  expect_all(layer, "previous_token", 1.0, 1e-6);
  expect_all(layer, "mean_distance", 1.0, 1e-6);
  expect_all(layer, "entropy_ratio", 0.0, 1e-6);
  for (const double score : layer.statistics.at("induction").front()) {
    EXPECT_LT(score, 0.5) << "tokens that come twice in three by chance";
  }
  EXPECT_NEAR(layer.profile.front().at(1), 1.0, 1e-6);
  EXPECT_NEAR(layer.profile.front().at(2), 0.0, 1e-6);
  // All logits are alike.
  for (const double nll : found.model.at("nll")) {
    EXPECT_NEAR(nll, std::log(static_cast<double>(kVocabulary)), 1e-5);
  }
  for (const double score : found.model.at("in_context_score")) EXPECT_NEAR(score, 0.0, 1e-5);
}

TEST(PlantedModel, WithASinkOf50) {
  Planted planted(small("dot|sink|none|fixed|bias|0.1"));
  planted["attention.sink"].fill_(50.0);
  const auto layer = planted.analysis().layers.front();
  expect_all(layer, "row_mass", 0.0, 1e-9);
  expect_all(layer, "light_rows", 1.0, 0.0);
  expect_all(layer, "entropy_ratio", 1.0, 1e-2);
}

TEST(PlantedModel, ThatForgetsHalf) {
  auto architecture = small();
  architecture.stack.front().decay = "scalar";
  Planted planted(architecture);
  planted["forget.bias"].zero_();  // with weights of 0, every gate is 1/2
  planted["attention.q_proj.weight"].zero_();
  const auto layer = planted.analysis().layers.front();
  expect_all(layer, "half_life", 1.0, 1e-6);
  expect_all(layer, "forget_mean", 0.5, 1e-6);
  expect_all(layer, "memory_length",
             mean_over_keys([](double n) { return 2.0 * (1.0 - std::pow(0.5, n)); }), 1e-6);
  // Weights are 1/2, 1/4, ... from the query's own token back.
  EXPECT_NEAR(layer.example[0][20][20], 0.5, 1e-5);
  EXPECT_NEAR(layer.example[0][20][18], 0.125, 1e-5);
}

/// One recurrent layer whose queries and keys are all alike: before SiLU and unit length, of ones.
Planted of_one_key(const std::string& genes) {
  Planted planted(canonical(parse_model("recurrent{" + genes + "}", small())));
  for (const std::string part : {"q_proj", "k_proj"}) {
    planted[part + ".weight"].zero_();
    planted[part + ".bias"].fill_(1.0);
  }
  return planted;
}

/// A_ij = newest rate^(i - j).
void expect_powers(const LayerAnalysis& layer, double newest, double rate) {
  for (const auto& head : layer.example) {
    for (std::size_t i = 0; i < head.size(); ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        const double expected = newest * std::pow(rate, static_cast<double>(i - j));
        ASSERT_NEAR(head[i][j], expected, 1e-5 * newest) << i << " " << j;
      }
    }
  }
}

constexpr double kKeyWidth = 16.0;  // of a head; outputs are divided by its root

TEST(PlantedModel, WhoseStateForgetsHalf) {
  auto planted = of_one_key("decay=scalar");
  planted["decay.weight"].zero_();
  planted["decay_log_rate"].zero_();
  planted["decay_step_bias"].zero_();  // alpha = exp(-softplus(0)) = 1/2
  const auto found = planted.analysis();
  ASSERT_EQ(found.layers.size(), 1U);
  const auto& layer = found.layers.front();
  expect_all(layer, "half_life", 1.0, 1e-6);
  expect_all(layer, "memory_length", 2.0, 1e-6);
  expect_all(layer, "forget_mean", 0.5, 1e-6);
  expect_all(layer, "state_used", 1.0 / kKeyWidth, 1e-6);
  expect_powers(layer, kKeyWidth / 4.0, 0.5);
  EXPECT_FALSE(layer.statistics.contains("score_sd"));
  EXPECT_FALSE(layer.statistics.contains("beta_mean"));
  EXPECT_FALSE(found.model.contains("sink_rate")) << "which is of attention";
}

TEST(PlantedModel, OfTheDeltaRuleAveragesWhatOneKeyIsGiven) {
  auto delta = of_one_key("update=delta");
  delta["beta.weight"].zero_();
  const auto half = delta.analysis().layers.front();
  expect_all(half, "beta_mean", 0.5, 1e-6);
  expect_all(half, "beta_sd", 0.0, 1e-6);
  EXPECT_FALSE(half.statistics.contains("half_life"));
  expect_powers(half, 0.5 / 4.0, 0.5);

  // beta = 1: a new value replaces the old one.
  auto doubled = of_one_key("update=delta,neg_eigen=1");
  doubled["beta.weight"].zero_();
  const auto whole = doubled.analysis().layers.front();
  expect_all(whole, "beta_mean", 1.0, 1e-6);
  expect_powers(whole, 1.0 / 4.0, 0.0);

  // Of what is written, half of each value.
  auto delta2 = of_one_key("update=delta2");
  delta2["erase.weight"].zero_();
  delta2["write.weight"].zero_();
  const auto written = delta2.analysis().layers.front();
  expect_all(written, "erase_mean", 0.5, 1e-6);
  expect_all(written, "write_mean", 0.5, 1e-6);
  expect_powers(written, 1.0 / 4.0, 0.5);
}

TEST(PlantedModel, OfLinearAttentionToAllKeysAlike) {
  const auto layer = of_one_key("feature=elu1").analysis().layers.front();
  expect_all(layer, "row_mass", 1.0, 1e-5);
  expect_all(layer, "entropy_ratio", 1.0, 1e-6);
  expect_all(layer, "sink_mass", mean_over_keys([](double n) { return 1.0 / n; }), 1e-6);
}

TEST(PlantedModel, OfAHybridIsLookedIntoInOrder) {
  Planted planted(canonical(parse_model("gdn{gating=sigmoid_gate}/conv/attn/gla", small())));
  const auto found = planted.analysis();
  ASSERT_EQ(found.layers.size(), 3U);
  EXPECT_EQ(found.layers[1].layer, 2);
  const auto has = [&](std::size_t i, const char* name) {
    return found.layers[i].statistics.contains(name);
  };
  EXPECT_TRUE(has(0, "state_used") && has(0, "half_life") && has(0, "beta_sd"));
  EXPECT_TRUE(found.layers[0].gate.has_value());
  EXPECT_TRUE(has(1, "score_sd") && !has(1, "state_used"));
  EXPECT_TRUE(has(2, "half_life") && !has(2, "beta_mean"));
  EXPECT_FALSE(found.layers[2].gate.has_value()) << "SiLU has no open end";
  const auto& attention = found.layers[1].statistics.at("sink_mass");
  for (std::size_t b = 0; b < attention[0].size(); ++b) {
    const double sinks =
        (attention[0][b] > kSinkMass ? 0.5 : 0.0) + (attention[1][b] > kSinkMass ? 0.5 : 0.0);
    EXPECT_EQ(found.model.at("sink_rate")[b], sinks) << "of the layer that attends";
  }
  const auto maps = attention_maps(planted.model(), {3, 1, 4, 1, 5});
  ASSERT_EQ(maps.size(), 3U);
  EXPECT_EQ(maps[2].layer, 3);
  EXPECT_EQ(maps[0].heads[1][4].size(), 5U);
}

TEST(PlantedModel, ThatSeesAWindow) {
  auto architecture = small();
  architecture.stack.front().pattern = "window";
  architecture.stack.front().window = 4;
  Planted planted(architecture);
  planted["attention.q_proj.weight"].zero_();
  const auto layer = planted.analysis().layers.front();
  expect_all(layer, "entropy_ratio", 1.0, 1e-6);
  expect_all(layer, "effective_keys", 4.0, 1e-5);
  expect_all(layer, "mean_distance", 1.5, 1e-5);
}

TEST(PlantedModel, WithOpenGates) {
  for (const auto* gating : {"output_gate", "input_gate", "highway", "normed_highway",
                             "elementwise_gate", "headwise_gate"}) {
    SCOPED_TRACE(gating);
    Planted planted(small("dot|softmax|" + std::string(gating) + "|fixed|bias|0.1"));
    planted["gate.weight"].zero_();
    planted["gate.bias"].fill_(3.0);  // 0.9526 once through the sigmoid
    const auto layer = planted.analysis().layers.front();
    ASSERT_TRUE(layer.gate.has_value());
    for (const auto& head : layer.gate->statistics.at("gate_mean")) {
      for (const double value : head) EXPECT_NEAR(value, 0.952574, 1e-5);
    }
    for (const auto& head : layer.gate->statistics.at("gate_open")) {
      for (const double value : head) EXPECT_EQ(value, 1.0);
    }
    ASSERT_EQ(layer.gate->histogram.size(), 2U);
    EXPECT_EQ(layer.gate->histogram[0].at(19), 1.0);
    EXPECT_EQ(layer.gate->histogram[1].at(0), 0.0);
  }
}

TEST(PlantedModel, OfSeveralLayersIsLookedIntoInOrder) {
  auto architecture = small();
  architecture.layers = 2;
  Planted planted(architecture);
  planted["layers.1.attention.q_proj.weight"].zero_();
  planted["layers.0.attention.q_proj.weight"].mul_(50.0);
  planted["layers.0.attention.k_proj.weight"].mul_(50.0);
  const auto found = planted.analysis();
  ASSERT_EQ(found.layers.size(), 2U);
  EXPECT_EQ(found.layers[1].layer, 1);
  expect_all(found.layers[1], "entropy_ratio", 1.0, 1e-6);
  EXPECT_LT(found.layers[0].statistics.at("entropy_ratio")[0][0], 0.9);
}

}  // namespace
}  // namespace nas::nn
