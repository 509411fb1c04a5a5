// What stands between key and query: cope, path, decays of channels. Properties, causality, arrays, and
// chunks against one token at a time.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "attention_layers.hpp"

namespace nas::nn::test {
namespace {

Mechanism of(const std::string& changes) {
  return with("cope_positions=4,decay_rank=3," + changes);
}

TEST(AttentionContext, IsCausalTheSameInEveryModeAndInAnArray) {
  for (const auto* changes :
       {"position=cope",
        "position=cope,pattern=window,similarity=l2,temperature=log_length,normalization=sink,"
        "window=4,globals=1",
        "position=cope,decay=scalar,kv_heads=2", "pattern=indexed,pattern_block=2,chosen=1",
        "pattern=indexed,temperature=log_length,position=cope,pattern_block=3,chosen=1,kv_heads=2",
        "position=path", "position=path,similarity=silu_dot,normalization=stick_breaking",
        "position=path,similarity=l2,qk_norm=rms", "position=path,similarity=cosine,kv_heads=2",
        "position=path,pattern=window,decay=scalar,window=4,globals=1,kv_heads=2", "decay=channel",
        "decay=channel,decay_form=bounded",
        "decay=channel,decay_form=softplus,position=rope,temperature=per_query,pattern=window,"
        "window=4,globals=1"}) {
    SCOPED_TRACE(changes);
    const auto mechanism = of(changes);
    expect_causal_option(mechanism);
    EXPECT_FALSE(fused_forms(mechanism).attention);
    const auto other = with(std::string(changes) +
                            ",cope_positions=7,decay_rank=2,window=3,attention_dropout=0.2,"
                            "gating=headwise_gate");
    ASSERT_TRUE(same_shapes(mechanism, other));
    expect_same_alone({mechanism, other, mechanism}, NumericalMode::reference);
    expect_same_alone({other, mechanism, other}, NumericalMode::exact, 70);
  }
  EXPECT_FALSE(same_shapes(of("position=path"), of("position=cope")));
}

TEST(AttentionContext, OfNothingIsAttention) {
  Layer none(vanilla());
  Layer cope(of("position=cope"));
  cope.fill("cope.weight", 0.0);
  expect_equal(cope, none, 0.0);
  Layer path(of("position=path"));
  path.fill("path_w.weight", 0.0);
  expect_equal(path, none);
  for (const auto* form : {"gla", "bounded"}) {  // nothing fades
    Layer channel(of(std::string("decay=channel,decay_form=") + form));
    channel.fill("decay_up.weight", 0.0);
    channel.fill(form == std::string("gla") ? "decay_up.bias" : "decay_step_bias",
                 form == std::string("gla") ? 1e3 : -1e3);
    expect_equal(channel, none);
  }
  Layer alone(of("decay=channel,pattern=window,window=1"));
  Layer own(of("pattern=window,window=1"));
  expect_equal(alone, own);
}

/// What each query sees, one after the other, by its definition.
torch::Tensor seen_naively(const torch::Tensor& q, const torch::Tensor& k, std::int64_t block,
                           std::int64_t chosen) {
  const auto tokens = q.size(3);
  auto seen = at::zeros({q.size(1), tokens, tokens}, at::TensorOptions(at::kBool));
  for (std::int64_t b = 0; b < q.size(1); ++b) {
    for (std::int64_t i = 0; i < tokens; ++i) {
      std::vector<std::pair<double, std::int64_t>> blocks;  // by score, the first of equals
      for (std::int64_t n = 0; n < i / block; ++n) {
        double score = 0.0;
        for (std::int64_t h = 0; h < q.size(2); ++h) {
          const auto mean = k[0][b][h * k.size(2) / q.size(2)].narrow(0, n * block, block).mean(0);
          score += std::max(0.0, q[0][b][h][i].dot(mean).item<double>());
        }
        blocks.emplace_back(-score, n);
      }
      std::sort(blocks.begin(), blocks.end());
      blocks.resize(std::min(blocks.size(), static_cast<std::size_t>(chosen)));
      for (const auto& [score, n] : blocks) seen[b][i].narrow(0, n * block, block).fill_(true);
      seen[b][i].slice(0, i / block * block, i + 1).fill_(true);
    }
  }
  return seen;
}

TEST(AttentionContext, IndexedBlocksAreThoseOfTheDefinition) {
  for (const std::int64_t block : {1, 3, 4}) {
    for (const std::int64_t chosen : {0, 1, 3, 20}) {
      LayerContext context;
      context.shape.sizes =
          with("pattern_block=" + std::to_string(block) + ",chosen=" + std::to_string(chosen));
      std::vector<Parameter> parameters;
      const auto pattern = patterns().at("indexed").make(context, ParameterScope(parameters));
      const auto q = noise({1, 2, 4, 19, 5}, 1), k = noise({1, 2, 2, 19, 5}, 2);
      const auto expected = seen_naively(q, k, block, chosen);
      const auto ours = pattern->chosen(q, k);
      for (std::int64_t h = 0; h < 4; ++h) {
        EXPECT_TRUE(ours[0].select(1, h).equal(expected)) << block << " " << chosen;
      }
      const auto newest = pattern->chosen(q.slice(3, 13), k);
      EXPECT_TRUE(newest.equal(ours.slice(3, 13))) << block << " " << chosen;
    }
  }
}

// Queries and keys that are all 1 have products d alpha^(i - j).
TEST(AttentionContext, OneDecayOfAllEntriesMultipliesProducts) {
  LayerContext context;
  context.shape = Layer::shape_of(vanilla(), 4);
  context.shape.sizes = of("decay=channel");
  std::vector<Parameter> parameters;
  const auto decay = decays().at("channel").make(context, ParameterScope(parameters));
  move_to(parameters, at::kCPU, at::kDouble);
  const at::NoGradGuard no_grad;
  for (auto& parameter : parameters) parameter.tensor.zero_();  // alpha = 1/2^(1/16)
  const auto ones = at::ones({1, 1, 4, 90, 4}, kDouble);
  const auto products = decay->products(ones, ones, at::zeros({1, 1, 90, 16}, kDouble));
  const auto places = at::arange(90, kDouble);
  const auto expected =
      at::exp2((places - places.unsqueeze(1)) / 16.0).mul(4.0).tril().expand({1, 1, 4, 90, 90});
  EXPECT_TRUE(products.tril().allclose(expected, 1e-12, 1e-14));
}

/// A position or a decay of a context, with parameters far from their start.
template <class Option>
void expect_steps(const OptionRegistry<Option>& registry, const std::string& key,
                  const Mechanism& sizes, double size, at::ScalarType type, double tolerance) {
  LayerContext context;
  context.shape = Layer::shape_of(vanilla(), 4);
  context.shape.sizes = sizes;
  std::vector<Parameter> parameters;
  const auto option = registry.at(key).make(context, ParameterScope(parameters));
  move_to(parameters, at::kCPU, type);
  const at::NoGradGuard no_grad;
  for (auto& parameter : parameters)
    parameter.tensor.copy_(noise(parameter.tensor.sizes(), 3).mul(size));
  const auto of_type = [&](at::IntArrayRef shape, std::uint64_t seed) {
    return noise(shape, seed).to(type);
  };
  const auto q = of_type({1, 2, 4, 150, 4}, 4), k = of_type(q.sizes(), 5);
  const auto x = of_type({1, 2, 150, 16}, 6);
  const auto products = option->products(q, k, x);
  EXPECT_TRUE(products.isfinite().all().template item<bool>());
  auto seen = k.narrow(3, 0, 0);
  for (std::int64_t t = 0; t < 150; ++t) {
    if (t > 0) seen = option->passed(seen, x.narrow(2, t, 1));
    seen = at::cat({seen, k.narrow(3, t, 1)}, 3);
    const auto row = q.narrow(3, t, 1).matmul(seen.transpose(-2, -1)).squeeze(3);
    const auto ours = products.select(3, t).narrow(-1, 0, t + 1);
    ASSERT_LE((ours - row).abs().max().template item<double>(), tolerance) << key << " " << t;
  }
}

TEST(AttentionContext, ByChunksIsWhatTokensDoOneAfterTheOther) {
  for (const auto* form : {"gla", "bounded"}) {
    const auto sizes = of(std::string("decay_form=") + form);
    // Also where a chunk fades by far more than float has exponents for.
    for (const double size : {0.5, 20.0}) {
      expect_steps(decays(), "channel", sizes, size, at::kDouble, 1e-12);
      expect_steps(decays(), "channel", sizes, size, at::kFloat, 2e-5);
    }
  }
  expect_steps(positions(), "path", {}, 0.5, at::kDouble, 1e-11);
  expect_steps(positions(), "path", {}, 0.5, at::kFloat, 2e-4);
}

}  // namespace
}  // namespace nas::nn::test
