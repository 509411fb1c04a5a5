// Two maps of weights in a head, and keys and values from a latent, with what else a layer may have.

#include "nn/parts/head_maps.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "attention_layers.hpp"

namespace nas::nn::test {
namespace {

TEST(HeadMaps, AreCausalEqualInAllModesAndTheSameInAnyArray) {
  const std::vector<std::string> differences{
      "maps=difference",
      "maps=difference,kv_heads=2,qk_norm=rms,position=rope,normalization=sink,conv=3",
      "maps=difference,similarity=additive,position=alibi,temperature=log_length",
      "maps=difference,similarity=bilinear,normalization=entmax15,decay=scalar",
      "maps=difference,similarity=cosine,pattern=window,window=3,globals=1",
      "maps=difference,similarity=l2,kv_heads=1,soft_cap=2,gating=headwise_gate"};
  const std::vector<std::string> latents{
      "kv_rank=5", "kv_rank=5,similarity=cosine,position=t5,t5_buckets=8,normalization=sparsemax",
      "kv_rank=5,decay=scalar,pattern=window,window=3,value_exclusion=1",
      "kv_rank=5,similarity=l2,temperature=per_query,head_norm=rms,gating=highway"};
  const std::vector<std::string> rotated_latents{
      "kv_rank=5,position=rope,rope_base=50", "kv_rank=5,position=rope,similarity=silu_dot",
      "kv_rank=5,position=rope,similarity=cosine,normalization=softmax1,pattern=window,window=4"};
  for (const auto& options : {differences, latents, rotated_latents}) {
    std::vector<Mechanism> alike;
    for (const auto& option : options) {
      SCOPED_TRACE(option);
      const auto layer = with(option);
      expect_causal_option(layer, 1e-11);
      if (same_shapes(layer, with(options.front()))) alike.push_back(layer);
    }
    for (const auto mode : {NumericalMode::reference, NumericalMode::exact}) {
      expect_same_alone(alike, mode);
    }
  }
  EXPECT_FALSE(same_shapes(with(latents.front()), with(rotated_latents.front())));
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
  Layer layer(with("maps=difference")), single(with("head_norm=rms"));
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
