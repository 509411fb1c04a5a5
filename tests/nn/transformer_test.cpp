#include "nn/transformer.hpp"

#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "core/error.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/mechanism_name.hpp"
#include "mechanisms.hpp"
#include "unit/message_of.hpp"

namespace nas::nn {
namespace {

using test::both_semantics;
using test::paper_mechanisms;
using test::single_options;

Architecture paper_model(const Mechanism& mechanism, Semantics semantics) {
  return {.stack = {mechanism}, .semantics = semantics};
}

Architecture small_model(const Mechanism& mechanism, Semantics semantics) {
  auto architecture = paper_model(mechanism, semantics);
  architecture.width = 16;
  architecture.heads = 2;
  architecture.context = 16;
  architecture.vocabulary = 50;
  return architecture;
}

std::map<std::string, torch::Tensor> parameters_of(const Architecture& architecture,
                                                   std::uint64_t run_seed = 1,
                                                   std::int64_t replicate = 0) {
  Transformer model(architecture);
  model.initialise(run_seed, replicate);
  std::map<std::string, torch::Tensor> parameters;
  for (const auto& [name, tensor] : model.parameters()) parameters[name] = tensor.detach();
  return parameters;
}

std::int64_t built_parameters(const Architecture& architecture) {
  std::int64_t count = 0;
  for (const auto& [name, tensor] : parameters_of(architecture)) count += tensor.numel();
  return count;
}

Mechanism parsed(const char* text, Semantics semantics = Semantics::published) {
  return parse_mechanism(text, semantics);
}

TEST(NumParameters, AreThoseOfThePublishedModels) {
  std::set<std::int64_t> counts;
  for (const auto& mechanism : paper_mechanisms(Semantics::published, /*both_biases=*/true)) {
    counts.insert(num_parameters(paper_model(mechanism, Semantics::published)));
  }
  EXPECT_EQ(counts.size(), 24U);
  EXPECT_EQ(*counts.begin(), 1692416);
  EXPECT_EQ(*counts.rbegin(), 1730690);
  const auto count = [](const char* text) {
    return num_parameters(paper_model(parsed(text), Semantics::published));
  };
  EXPECT_EQ(count("dot|softmax|none|fixed|bias|0.1"), 1693184);
  EXPECT_EQ(count("dot|sparsemax|output_gate|learned|bias|0.1"), 1726210);
}

TEST(NumParameters, AreThoseOfTheBuiltModel) {
  for (const auto semantics : both_semantics()) {
    for (auto mechanism : single_options(semantics)) {
      mechanism.set("bias", mechanism.word("gating") == "none" ? "bias" : "no_bias");
      auto architecture = small_model(mechanism, semantics);
      architecture.layers = 3;
      architecture.feed_forward = 3;
      EXPECT_EQ(num_parameters(architecture), built_parameters(architecture))
          << to_string(mechanism);
    }
  }
  const auto vanilla = paper_model(vanilla_mechanism(Semantics::corrected), Semantics::corrected);
  EXPECT_EQ(num_parameters(vanilla), built_parameters(vanilla));
}

TEST(ForwardFlops, AreMatrixProductsPlusComponents) {
  const auto vanilla = paper_model(vanilla_mechanism(Semantics::corrected), Semantics::corrected);
  // Two layers of projections, scores and weighted sum, feed-forward; then the output layer.
  const double products =
      2 * (8.0 * 128 * 128 * 128 + 4.0 * 128 * 128 * 128 + 16.0 * 128 * 128 * 128) +
      2.0 * 128 * 128 * 10000;
  EXPECT_NEAR(products, 445.1e6, 0.05e6);
  const double elementwise = 2 * (4.0 + 1.0) * 4 * 128 * 128;  // softmax and temperature
  EXPECT_DOUBLE_EQ(forward_flops(vanilla), products + elementwise);
  auto additive = vanilla;
  additive.stack.front().set("similarity", "additive");
  // 4 T D d + 4 T^2 D a layer in the place of 2 T^2 D.
  EXPECT_DOUBLE_EQ(forward_flops(additive) - forward_flops(vanilla),
                   2 * (4.0 * 128 * 128 * 32 + 2.0 * 128 * 128 * 128));
}

bool sees_the_future(const Mechanism& mechanism) {
  return mechanism.word("temperature") == "sequence_mean" &&
         mechanism.word("normalization") != "relu_norm";
}

TEST(Causality, HoldsExceptForTheSequenceMean) {
  for (const auto semantics : both_semantics()) {
    int leaks = 0;
    for (const auto& mechanism : paper_mechanisms(semantics, /*both_biases=*/true)) {
      const auto report = check_causality(paper_model(mechanism, semantics));
      EXPECT_EQ(report.causal, !sees_the_future(mechanism))
          << to_string(mechanism) << " changes by " << report.largest_change;
      EXPECT_EQ(report.causal, is_causal(mechanism)) << to_string(mechanism);
      leaks += report.causal ? 0 : 1;
    }
    EXPECT_EQ(leaks, semantics == Semantics::published ? 96 : 0);
  }
}

TEST(Causality, IsAsDescribedForAllPairsOfOptions) {
  for (const auto& mechanism : test::fifth_of_mechanisms()) {
    // No score of l2 is positive: all weights are 0, and nobody sees anything.
    if (mechanism.word("similarity") == "l2" && mechanism.word("normalization") == "relu_n")
      continue;
    const auto report = check_causality(paper_model(mechanism, Semantics::corrected), 2);
    EXPECT_EQ(report.causal, is_causal(mechanism))
        << to_string(mechanism) << " changes by " << report.largest_change;
    EXPECT_EQ(report.causal, !sees_the_future(mechanism)) << to_string(mechanism);
  }
}

TEST(Transformer, StartsAtTheLossOfItsLogitsSpread) {
  const at::NoGradGuard no_grad;
  for (const auto semantics : both_semantics()) {
    Transformer model(paper_model(vanilla_mechanism(semantics), semantics));
    model.initialise(1, 0);
    const auto tokens = at::arange(8 * 128, at::TensorOptions(at::kLong)).view({8, 128}).mul(9);
    const auto targets = (tokens * 7 + 13).remainder(10000);
    const auto logits = model.logits(tokens, Pass{});
    const auto loss = -logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).mean();
    const double sd = logits.std().item<double>();
    EXPECT_NEAR(sd, 0.02 * std::sqrt(128.0), 0.02);
    EXPECT_NEAR(loss.item<double>(), std::log(10000.0) + sd * sd / 2, 0.02);
  }
}

TEST(Transformer, SharedParametersStartAlike) {
  const auto vanilla =
      parameters_of(paper_model(vanilla_mechanism(Semantics::published), Semantics::published));
  const auto other = parameters_of(
      paper_model(parsed("additive|sparsemax|output_gate|adaptive|bias|0"), Semantics::published));
  std::size_t shared = 0;
  for (const auto& [name, tensor] : vanilla) {
    ASSERT_EQ(other.count(name), 1U) << name;
    EXPECT_TRUE(tensor.equal(other.at(name))) << name;
    ++shared;
  }
  EXPECT_EQ(shared, 2U + 2U * 16U + 2U);
  EXPECT_GT(other.size(), shared);
}

TEST(Transformer, StartDependsOnSeedAndReplicateAndName) {
  const auto architecture =
      small_model(vanilla_mechanism(Semantics::published), Semantics::published);
  const std::string name = "layers.0.attention.q_proj.weight";
  const auto start = parameters_of(architecture);
  EXPECT_TRUE(start.at(name).equal(parameters_of(architecture).at(name)));
  EXPECT_FALSE(start.at(name).equal(parameters_of(architecture, 2).at(name)));
  EXPECT_FALSE(start.at(name).equal(parameters_of(architecture, 1, 1).at(name)));
  EXPECT_FALSE(start.at(name).equal(start.at("layers.1.attention.q_proj.weight")));
  EXPECT_FALSE(start.at(name).equal(start.at("layers.0.attention.k_proj.weight")));
}

TEST(Transformer, StartScalesOfEitherSemantics) {
  for (const auto semantics : both_semantics()) {
    auto architecture = paper_model(vanilla_mechanism(semantics), semantics);
    architecture.layers = 8;
    for (const auto& [name, tensor] : parameters_of(architecture)) {
      if (name.ends_with("norm.weight")) {
        EXPECT_TRUE(tensor.eq(1.0).all().item<bool>()) << name;
      } else if (name.ends_with("bias")) {
        EXPECT_TRUE(tensor.eq(0.0).all().item<bool>()) << name;
      } else {
        const bool residual =
            name.ends_with("out_proj.weight") || name.ends_with("contract.weight");
        const bool scaled = residual && semantics == Semantics::corrected;
        const double expected = scaled ? 0.02 / 4.0 : 0.02;
        EXPECT_NEAR(tensor.std().item<double>(), expected, 0.03 * expected) << name;
      }
    }
  }
}

TEST(Transformer, DecaysMatricesOnlyUnlessPublished) {
  const auto text = "additive|softmax|output_gate|adaptive|bias|0";
  const TransformerArray published({small_model(parsed(text), Semantics::published)},
                                   NumericalMode::reference);
  for (const auto& parameter : published.parameters()) EXPECT_TRUE(published.decays(parameter));

  const auto mechanism = parsed(text, Semantics::corrected);
  const TransformerArray corrected({small_model(mechanism, Semantics::corrected)},
                                   NumericalMode::reference);
  std::set<std::string> decaying;
  for (const auto& parameter : corrected.parameters()) {
    if (corrected.decays(parameter)) decaying.insert(parameter.name);
  }
  std::set<std::string> expected;
  for (const std::string layer : {"layers.0.", "layers.1."}) {
    for (const auto* matrix :
         {"attention.q_proj", "attention.k_proj", "attention.v_proj", "attention.out_proj",
          "attention.attn_fc", "attention.attn_v", "attention.out_gate", "feed_forward.expand",
          "feed_forward.contract"}) {
      expected.insert(layer + matrix + ".weight");
    }
  }
  EXPECT_EQ(decaying, expected);
}

// Models that differ from the paper's in what surrounds the mixers.

/// A small model of the wide space.
Architecture wide_model(const std::string& name) {
  Architecture frame{.layers = 2, .width = 24, .heads = 3, .context = 16, .vocabulary = 50};
  return parse_model(name, frame);
}

const std::vector<std::string>& frames() {
  static const std::vector<std::string> names{
      "model{norm=rms}/2*attn+swiglu",
      "model{norm_place=post}/2*attn",
      "model{norm=rms,norm_place=sandwich,bias=none}/attn+relu2/none+swiglu",
      "model{block=parallel,bias=none}/attn/attn+none",
      "model{position_embedding=sinusoidal,tied=0}/attn/attn+swiglu{ratio=2}",
      "model{position_embedding=none,norm=rms,tied=0,bias=no_bias}/attn+none/none+relu2/attn"};
  return names;
}

TEST(Frame, FormulaCountsTheParametersOfTheBuiltModel) {
  for (const auto& name : frames()) {
    const auto architecture = wide_model(name);
    EXPECT_EQ(num_parameters(architecture), built_parameters(architecture)) << name;
  }
}

TEST(Frame, PartsThatAreMissingHaveNoParameters) {
  const auto names = [](const char* model) {
    std::set<std::string> found;
    for (const auto& [name, tensor] : parameters_of(wide_model(model))) found.insert(name);
    return found;
  };
  const auto none =
      names("model{position_embedding=none,norm=rms,bias=none}/attn+none/none+swiglu");
  EXPECT_EQ(none,
            (std::set<std::string>{
                "embedding.weight", "final_norm.weight", "layers.0.attention.k_proj.weight",
                "layers.0.attention.out_proj.weight", "layers.0.attention.q_proj.weight",
                "layers.0.attention.v_proj.weight", "layers.0.attention_norm.weight",
                "layers.1.feed_forward.contract.weight", "layers.1.feed_forward.expand.weight",
                "layers.1.feed_forward.gate.weight", "layers.1.feed_forward_norm.weight"}));
  EXPECT_FALSE(names("model{norm_place=post}/2*attn").contains("final_norm.weight"));
  EXPECT_TRUE(names("model{tied=0}/2*attn").contains("head.weight"));
}

TEST(Frame, StartsAsItsOptionsSay) {
  auto architecture = wide_model("model{position_embedding=sinusoidal,tied=0}/8*attn+swiglu");
  architecture.width = 96;
  architecture.vocabulary = 200;
  const auto parameters = parameters_of(architecture);
  EXPECT_FLOAT_EQ(parameters.at("position_scale").item<float>(), 0.0283F);
  for (const auto& [name, deviation] :
       std::map<std::string, double>{{"head.weight", 0.02},
                                     {"layers.3.feed_forward.gate.weight", 0.02},
                                     {"layers.3.feed_forward.expand.weight", 0.02},
                                     {"layers.3.feed_forward.contract.weight", 0.02 / 4.0}}) {
    EXPECT_NEAR(parameters.at(name).std().item<double>(), deviation, 0.03 * deviation) << name;
  }
}

TEST(Frame, EveryParameterGetsAGradientInEveryMode) {
  for (const auto& name : frames()) {
    for (const auto mode : {NumericalMode::reference, NumericalMode::exact, NumericalMode::fast}) {
      Transformer model(wide_model(name), mode);
      model.initialise(1, 0);
      const auto tokens = at::arange(32, at::TensorOptions(at::kLong)).view({2, 16});
      model.loss(tokens, tokens.roll(1, 1), Pass{true, {1}}).backward();
      for (const auto& [parameter, tensor] : model.parameters()) {
        ASSERT_TRUE(tensor.grad().defined()) << name << " " << parameter;
        EXPECT_TRUE(tensor.grad().isfinite().all().item<bool>()) << name << " " << parameter;
        // Softmax does not see what biases of keys add to all scores alike.
        if (parameter.ends_with("k_proj.bias")) continue;
        EXPECT_GT(tensor.grad().abs().max().item<double>(), 0.0) << name << " " << parameter;
      }
    }
  }
}

TEST(Frame, ExactModeComputesWhatOperationsCompute) {
  const at::NoGradGuard no_grad;
  const auto tokens = at::arange(32, at::TensorOptions(at::kLong)).view({2, 16});
  for (const auto& name : frames()) {
    const auto logits = [&](NumericalMode mode) {
      Transformer model(wide_model(name), mode);
      model.initialise(1, 0);
      model.to(at::kCPU, at::kDouble);
      return model.logits(tokens, Pass{true, {3}});
    };
    const auto difference = logits(NumericalMode::exact) - logits(NumericalMode::reference);
    EXPECT_LT(difference.abs().max().item<double>(), 1e-9) << name;
  }
}

TEST(Frame, OnlyLearnedPositionsEndWithTheContext) {
  const at::NoGradGuard no_grad;
  const auto tokens = at::arange(40, at::TensorOptions(at::kLong)).view({1, 40});
  for (const auto* name :
       {"model{position_embedding=sinusoidal}/2*attn", "model{position_embedding=none}/2*attn"}) {
    Transformer model(wide_model(name), NumericalMode::exact);
    model.initialise(1, 0);
    model.to(at::kCPU, at::kDouble);
    const auto whole = model.logits(tokens, Pass{});
    const auto prefix = model.logits(tokens.slice(1, 0, 16), Pass{});
    EXPECT_LT((whole.slice(1, 0, 16) - prefix).abs().max().item<double>(), 1e-9) << name;
  }
  Transformer learned(wide_model("model{norm=rms}/2*attn"));
  EXPECT_THROW(learned.logits(tokens, Pass{}), std::invalid_argument);
}

TEST(Frame, ModelsAreAlikeIfTheirGenesAndShapesAre) {
  const auto like = [](const char* a, const char* b) {
    return alike(wide_model(a), wide_model(b));
  };
  EXPECT_TRUE(like("model{norm=rms}/attn/attn{normalization=sparsemax}",
                   "model{norm=rms}/attn{temperature=learned}/attn"));
  // All of them have fused forms.
  EXPECT_TRUE(like("attn{position=alibi}/attn{normalization=sink,similarity=l2}",
                   "attn{decay=scalar}/attn{pattern=window,window=4,temperature=log_length}"));
  // The model's bias is only what layers have unless they say otherwise.
  EXPECT_TRUE(like("dot|softmax|none|fixed|bias|0.1", "dot|softmax|none|fixed|no_bias|0.1"));
  EXPECT_FALSE(like("model{norm=rms}/2*attn", "2*attn"));
  EXPECT_FALSE(like("model{tied=0}/2*attn", "2*attn"));
  EXPECT_FALSE(like("2*attn+swiglu", "2*attn"));
  EXPECT_FALSE(like("2*attn+relu2", "2*attn+relu2{ratio=2}"));
  // Layers of other kinds are computed in groups.
  EXPECT_TRUE(like("attn/none+gelu", "none+gelu/attn"));
  EXPECT_FALSE(like("attn/none+gelu", "none+gelu/attn+swiglu"));
  EXPECT_FALSE(like("attn/attn{kv_heads=1}", "2*attn"));
}

TEST(Causality, IsCheckedOfEveryLayer) {
  EXPECT_TRUE(check_causality(wide_model("model{norm=rms}/3*attn+swiglu/none+relu2")).causal);
  const auto leaking = check_causality(wide_model("attn/attn{temperature=sequence_mean}/attn"));
  EXPECT_FALSE(leaking.causal);
  EXPECT_GT(leaking.largest_change, 1e-4);
}

TEST(Prefixes, AreConsistentUnlessAnOptionDependsOnTheLength) {
  for (const auto& mechanism : single_options(Semantics::corrected)) {
    const bool expected =
        components().at("normalization", mechanism.word("normalization")).prefix_consistent &&
        components().at("temperature", mechanism.word("temperature")).prefix_consistent &&
        mechanism.word("temperature") != "sequence_mean";
    const auto report = check_prefixes(paper_model(mechanism, Semantics::corrected));
    EXPECT_EQ(report.consistent, expected)
        << to_string(mechanism) << " changes by " << report.largest_change;
  }
  EXPECT_FALSE(check_prefixes(wide_model("attn/attn{normalization=topk_quarter}")).consistent);
}

void expect_refused(const Architecture& architecture, const char* text) {
  EXPECT_EQ(message_of<InputError>([&] { const Transformer model(architecture); }), text);
}

TEST(Transformer, RefusesSizesThatDoNotFit) {
  auto architecture = small_model(vanilla_mechanism(Semantics::corrected), Semantics::corrected);
  architecture.heads = 3;
  expect_refused(architecture, "heads = 3, must divide width = 16");
  architecture.heads = 0;
  expect_refused(architecture, "heads = 0, must be >= 1");
  architecture.heads = 2;
  architecture.layers = 0;
  expect_refused(architecture, "layers = 0, must be >= 1");
  architecture.layers = 1;
  Transformer model(architecture);
  EXPECT_THROW(model.features(at::zeros({1, 17}, at::TensorOptions(at::kLong)), Pass{}),
               std::invalid_argument);
}

}  // namespace
}  // namespace nas::nn
