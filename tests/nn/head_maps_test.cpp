// Two maps of weights in a head, and keys and values from a latent, with what else a layer may have.

#include "nn/parts/head_maps.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "attention_layers.hpp"
#include "genotype/architecture_name.hpp"

namespace nas::nn::test {
namespace {

/// Layers of width 16 with 4 heads.
std::vector<Mechanism> layers_of(const std::vector<std::string>& genes) {
  std::vector<Mechanism> layers;
  for (const auto& of_one : genes) {
    const auto model = parse_model("model{bias=none}/attn{dropout=0," + of_one + "}",
                                   {.width = 16, .heads = 4, .context = 9});
    layers.push_back(model.layer(0));
  }
  return layers;
}

const std::vector<std::string>& differences() {
  static const std::vector<std::string> genes{
      "maps=difference",
      "maps=difference,kv_heads=2,qk_norm=rms,position=rope,normalization=sink,conv=3",
      "maps=difference,similarity=additive,position=alibi,temperature=log_length",
      "maps=difference,similarity=bilinear,normalization=entmax15,decay=scalar",
      "maps=difference,similarity=cosine,pattern=window,window=3,globals=1",
      "maps=difference,similarity=l2,kv_heads=1,soft_cap=2,gating=headwise_gate"};
  return genes;
}

const std::vector<std::string>& latents() {
  static const std::vector<std::string> genes{
      "kv_rank=5", "kv_rank=5,similarity=cosine,position=t5,t5_buckets=8,normalization=sparsemax",
      "kv_rank=5,decay=scalar,pattern=window,window=3,value_exclusion=1",
      "kv_rank=5,similarity=l2,temperature=per_query,head_norm=rms,gating=highway"};
  return genes;
}

const std::vector<std::string>& rotated_latents() {
  static const std::vector<std::string> genes{
      "kv_rank=5,position=rope,rope_base=50", "kv_rank=5,position=rope,similarity=silu_dot",
      "kv_rank=5,position=rope,similarity=cosine,normalization=softmax1,pattern=window,window=4"};
  return genes;
}

TEST(HeadMaps, AreCausalEqualInAllModesAndTheSameInAnyArray) {
  for (const auto& genes : {differences(), latents(), rotated_latents()}) {
    const auto layers = layers_of(genes);
    for (const auto& layer : layers) {
      SCOPED_TRACE(to_string(Architecture{.stack = {layer}}));
      expect_causal_and_prefix_consistent(layer);
      Layer reference(layer), exact(layer, NumericalMode::exact);
      expect_equal(reference, exact, 1e-11);
    }
    std::vector<Mechanism> alike;
    for (const auto& layer : layers) {
      if (same_shapes(layer, layers.front())) alike.push_back(layer);
    }
    for (const auto mode : {NumericalMode::reference, NumericalMode::exact}) {
      expect_same_alone(alike, mode);
    }
  }
  EXPECT_FALSE(same_shapes(layers_of(latents())[0], layers_of(rotated_latents())[0]));
}

TEST(HeadMaps, DifferenceStartsByItsLayerAndTakesTheSecondMapAway) {
  const at::NoGradGuard no_grad;
  LayerContext context;
  context.shape.width = 16;
  for (const std::int64_t layer : {0, 3}) {
    context.layer = layer;
    std::vector<Parameter> parameters;
    const auto maps = head_maps().at("difference").make(context, ParameterScope(parameters));
    for (auto& parameter : parameters) parameter.tensor.zero_();
    const auto ones = at::ones({1, 1, 1, 1, 1});
    const double start = 0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(layer));
    EXPECT_NEAR(maps->combined({ones, ones}).item<double>(), 1.0 - start, 1e-6);
  }
  // Without vectors lambda = lambda_0, so that alike halves leave 0.8 of a map, which the norm scales back.
  Layer layer(layers_of({"maps=difference"}).front()), single(layers_of({"head_norm=rms"}).front());
  for (const auto* name : {"lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"})
    layer.fill(name, 0.0);
  for (const auto* name : {"q_proj.weight", "k_proj.weight"}) {
    const auto rows = layer[name].detach().view({4, 2, 2, 16}).narrow(1, 0, 1);
    layer.set(name, rows.expand({4, 2, 2, 16}).reshape({1, 16, 16}));
    // q.k of both halves is twice that of one: sqrt(d) / 2 against sqrt(d / 2).
    single.set(name, layer[name].detach() * std::pow(0.5, 0.25));
  }
  single.set("head_norm.weight", layer["head_norm.weight"].detach() * 0.8);
  const auto difference = (layer(input()) - single(input())).abs().max().item<double>();
  EXPECT_LE(difference, 1e-3);  // epsilon beside smaller outputs
}

}  // namespace
}  // namespace nas::nn::test
