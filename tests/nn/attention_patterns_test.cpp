// Patterns, normalizations and options of attention that have no form in the fused kernel, and what
// is around it: properties, causality, arrays, costs.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "array_step.hpp"
#include "attention_layers.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "nn/parts/hashed_keys.hpp"
#include "nn/parts/smear.hpp"
#include "nn/transformer.hpp"

namespace nas::nn::test {
namespace {

const std::vector<std::string> kSoftCaps{
    "soft_cap=1", "soft_cap=1,temperature=log_length,position=t5,decay=scalar"};
/// Other options that operations compute in every mode: by the fused kernel none has a form.
const std::vector<std::string> kWithoutFusedForm{
    "normalization=stick_breaking",
    "normalization=stick_breaking,pattern=window,window=3,globals=1", "pattern=strided,stride=3",
    "pattern=bigbird,pattern_block=2,random=1",
    "pattern=bigbird,pattern_block=1,globals=1,random=2,temperature=log_length,"
    "normalization=top_k,position=alibi"};
/// Of queries that are keys.
const std::vector<std::string> kHashed{
    "pattern=lsh,pattern_block=2,rounds=2", "pattern=lsh,pattern_block=2,rounds=1,buckets=2",
    "pattern=lsh,pattern_block=2,rounds=2,temperature=log_length,normalization=sigmoid_attn,"
    "decay=scalar",
    "pattern=lsh,pattern_block=2,rounds=2,normalization=top_k,head_norm=rms",
    "pattern=lsh,pattern_block=2,rounds=2,normalization=stick_breaking"};
/// Around the fused kernel.
const std::vector<std::string> kOfValues{
    "value_exclusion=1", "value_exclusion=1,gating=headwise_gate,head_norm=rms,position=rope"};

std::map<std::string, Mechanism> all_options() {
  auto all = with_each({"value_exclusion=1,kv_heads=2"});
  for (const auto& some : {kSoftCaps, kWithoutFusedForm, kHashed, kOfValues}) {
    all.merge(with_each(some));
  }
  return all;
}

TEST(AttentionPatterns, AreCausalAndTheSameInEveryMode) {
  for (const auto& [name, mechanism] : all_options()) {
    SCOPED_TRACE(name);
    expect_causal_option(mechanism);
    EXPECT_EQ(fused_forms(mechanism).attention, mechanism.integer("value_exclusion") == 1);
  }
}

TEST(AttentionPatterns, InAnArrayComputeWhatEachComputesAlone) {
  for (const auto& options : {kSoftCaps, kWithoutFusedForm, kHashed, kOfValues}) {
    std::vector<Mechanism> all;
    for (int twice = 0; twice < 2; ++twice) {
      for (const auto& option : options) all.push_back(with(option + ",attention_dropout=0.2"));
    }
    for (const auto& mechanism : all) ASSERT_TRUE(same_shapes(mechanism, all.front()));
    expect_same_alone(all, NumericalMode::reference);
    expect_same_alone(all, NumericalMode::exact, 40);
    EXPECT_FALSE(same_shapes(vanilla(), all.front()));
  }
}

// ---- stick-breaking

TEST(AttentionPatterns, SticksAreBrokenFromTheNewestKeyBackwards) {
  std::vector<Parameter> parameters;
  LayerContext context;
  context.shape.sizes.set("window", 4);
  const auto keys = at::empty({1, 1, 1, 9, 1});
  const auto visible =
      patterns().at("window").make(context, ParameterScope(parameters))->visible(keys, 0);
  const auto normalization =
      normalizations().at("stick_breaking").make(context, ParameterScope(parameters));
  const auto scores = noise({1, 2, 3, 9, 9}, 3) * 3.0;
  const auto weights = normalization->weights(scores, visible);
  const auto left = (1.0 - scores.sigmoid()).masked_fill(visible.logical_not(), 1.0);
  EXPECT_TRUE(weights.sum(-1).allclose(1.0 - left.prod(-1), 1e-12, 1e-14));
  for (std::int64_t i = 0; i < 9; ++i) {
    auto rest = at::ones({1, 2, 3}, kDouble);
    for (std::int64_t j = i; j >= 0; --j) {
      const auto share = scores.select(-2, i).select(-1, j).sigmoid();
      const auto expected = i - j < 4 ? share * rest : at::zeros_like(rest);
      EXPECT_TRUE(weights.select(-2, i).select(-1, j).allclose(expected, 1e-12, 1e-15)) << i << j;
      rest = rest * (1.0 - share);
    }
  }
}

TEST(AttentionPatterns, SticksOfLargeScoresAreFinite) {
  std::vector<Parameter> parameters;
  const auto normalization =
      normalizations().at("stick_breaking").make({}, ParameterScope(parameters));
  const auto visible = at::ones({5, 5}, at::kBool).tril();
  for (const double size : {1e4, -1e4}) {
    const auto scores = at::full({1, 1, 1, 5, 5}, size, kDouble).requires_grad_(true);
    const auto weights = normalization->weights(scores, visible);
    weights.square().sum().backward();
    EXPECT_TRUE(scores.grad().isfinite().all().item<bool>());
    const auto expected = size > 0 ? at::eye(5, kDouble) : at::zeros({5, 5}, kDouble);
    EXPECT_TRUE(weights[0][0][0].allclose(expected));
  }
}

// ---- patterns

torch::Tensor shown(const std::string& key, const Mechanism& sizes, std::int64_t tokens,
                    std::int64_t layer = 0, std::int64_t first = 0) {
  LayerContext context;
  context.shape.width = 16;
  context.shape.heads = 4;
  context.shape.sizes = sizes;
  context.layer = layer;
  std::vector<Parameter> parameters;
  return patterns()
      .at(key)
      .make(context, ParameterScope(parameters))
      ->visible(at::empty({1, 1, 4, tokens, 4}), first);
}

TEST(AttentionPatterns, ThatShowEverythingAreFull) {
  Layer full(vanilla());
  for (const auto* wide :
       {"pattern=strided,stride=1", "pattern=strided,stride=9",
        "pattern=bigbird,pattern_block=2,globals=5", "pattern=bigbird,pattern_block=2,random=3",
        "pattern=bigbird,pattern_block=9,random=0"}) {
    SCOPED_TRACE(wide);
    Layer layer(with(wide));
    expect_equal(layer, full, 0.0);
  }
}

TEST(AttentionPatterns, RowsFromAPlaceOnAreThoseOfAll) {
  const auto sizes = with("window=5,globals=1,stride=3,pattern_block=2");
  for (const auto* key : {"full", "window", "strided", "bigbird"}) {
    const auto all = shown(key, sizes, 23);
    for (const std::int64_t first : {1, 7, 22}) {
      EXPECT_TRUE(shown(key, sizes, 23, 0, first).equal(all.slice(-2, first))) << key << first;
    }
    EXPECT_TRUE(shown(key, sizes, 11).equal(all.slice(-2, 0, 11).slice(-1, 0, 11))) << key;
  }
}

/// The blocks that a head shows, of blocks of one token.
std::vector<std::int64_t> blocks_of(std::int64_t layer, std::int64_t head, std::int64_t own) {
  const auto row =
      shown("bigbird", with("pattern_block=1,globals=1,random=3"), 21, layer)[head][own];
  std::vector<std::int64_t> blocks;
  for (std::int64_t j = 0; j < 21; ++j) {
    if (row[j].item<bool>()) blocks.push_back(j);
  }
  return blocks;
}

TEST(AttentionPatterns, BlocksAreDrawnOnceForLayerHeadAndBlock) {
  using Blocks = std::vector<std::int64_t>;
  EXPECT_EQ(blocks_of(0, 0, 0), (Blocks{0}));
  EXPECT_EQ(blocks_of(0, 0, 1), (Blocks{0, 1}));
  EXPECT_EQ(blocks_of(1, 2, 2), (Blocks{0, 1, 2}));
  // As the generator draws them: others would be another model.
  EXPECT_EQ(blocks_of(1, 2, 9), (Blocks{0, 1, 4, 7, 8, 9}));
  EXPECT_EQ(blocks_of(0, 0, 20), (Blocks{0, 5, 8, 15, 19, 20}));
  EXPECT_EQ(blocks_of(0, 1, 20), (Blocks{0, 4, 15, 17, 19, 20}));
  std::set<Blocks> different;
  for (std::int64_t head = 0; head < 4; ++head) {
    for (std::int64_t layer = 0; layer < 4; ++layer) {
      const auto blocks = blocks_of(layer, head, 20);
      EXPECT_EQ(blocks.size(), 6U);
      different.insert(blocks);
    }
  }
  EXPECT_GT(different.size(), 12U);
}

/// All keys in one bucket.
class OneBucket final : public HashedKeys {
 public:
  OneBucket() : HashedKeys(at::zeros({1, 4, 1}, kDouble), 9) {}
};
NAS_REGISTER_PATTERN(OneBucket, .key = "one_bucket", .summary = "lsh without rotations");

TEST(AttentionPatterns, OneBucketIsAttentionOfSharedQueriesWithoutTheDiagonal) {
  Layer layer(with("pattern=one_bucket"));
  const auto heads = [&](const char* name) {
    return input().matmul(layer[name][0].t()).view({2, 9, 4, 4}).transpose(1, 2);
  };
  const at::NoGradGuard no_grad;
  const auto q = heads("q_proj.weight");
  const auto scores = q.matmul(unit_keys(q).transpose(-2, -1)) / 2.0;
  auto visible = at::ones({9, 9}, at::kBool).tril(-1);
  visible[0][0] = true;
  const auto mixed = hide(scores, visible).softmax(-1).matmul(heads("v_proj.weight"));
  const auto y = mixed.transpose(1, 2).reshape({2, 9, 16}).matmul(layer["out_proj.weight"][0].t());
  EXPECT_TRUE(layer(input()).allclose(y, 1e-12, 1e-12));
  EXPECT_THROW((void)layer["k_proj.weight"], std::invalid_argument);
}

TEST(AttentionPatterns, HashesShowTheNewestEqualKeys) {
  LayerContext context;
  context.shape.width = 16;
  context.shape.heads = 4;
  context.shape.sizes = with("pattern_block=2,rounds=3,buckets=6");
  std::vector<Parameter> parameters;
  const auto keys = noise({2, 3, 4, 40, 4}, 9);
  std::vector<torch::Tensor> of_layers;
  for (const std::int64_t layer : {0, 1}) {
    context.layer = layer;
    const auto lsh = patterns().at("lsh").make(context, ParameterScope(parameters));
    of_layers.push_back(lsh->visible(keys, 0));
    EXPECT_TRUE(lsh->visible(keys, 39).equal(of_layers.back().slice(-2, 39)));
    EXPECT_TRUE(lsh->visible(keys * 3.0, 0).equal(of_layers.back()));  // hashes are of directions
  }
  EXPECT_FALSE(of_layers[0].equal(of_layers[1]));
  const auto counts = of_layers[0].sum(-1);
  EXPECT_GE(counts.min().item<std::int64_t>(), 1);
  EXPECT_LE(counts.max().item<std::int64_t>(), 6);
  // A query's own key only where there is no other.
  const auto own = at::diagonal(of_layers[0], 0, -2, -1);
  EXPECT_TRUE(own.logical_and(counts.gt(1)).logical_not().all().item<bool>());
  EXPECT_TRUE(own.select(-1, 0).all().item<bool>());
}

// ---- what is done to scores and values

TEST(AttentionPatterns, SoftCapsBoundScores) {
  Layer layer(with("soft_cap=2"));
  const auto projected = [&](const torch::Tensor& x, const std::string& part) {
    return x.matmul(layer[part + ".weight"][0].t()).detach();
  };
  const auto heads_of = [&](const std::string& part) {
    return projected(input(), part).view({2, 9, 4, 4}).transpose(1, 2);
  };
  const auto raw = heads_of("q_proj").matmul(heads_of("k_proj").transpose(-2, -1)) / 2.0;
  EXPECT_GT(raw.abs().max().item<double>(), 2.0);
  const auto later = at::ones({9, 9}, at::TensorOptions(at::kBool)).triu(1);
  const auto weights =
      (2.0 * (raw / 2.0).tanh()).masked_fill(later, -HUGE_VAL).softmax(-1, at::kDouble);
  const auto mixed = weights.matmul(heads_of("v_proj")).transpose(1, 2).flatten(2);
  EXPECT_TRUE(layer(input()).allclose(projected(mixed, "out_proj"), 1e-12, 1e-12));
  Layer none(vanilla());
  Layer wide(with("soft_cap=65536"));
  expect_equal(none, wide, 1e-6);
}

TEST(AttentionPatterns, ExcludedValuesLeaveWhatIsAcrossThem) {
  Layer layer(with("value_exclusion=1"));
  Layer plain(vanilla());
  layer.set("out_proj.weight", at::eye(16, kDouble).unsqueeze(0));
  plain.set("out_proj.weight", at::eye(16, kDouble).unsqueeze(0));
  auto x = input().clone();
  x.select(1, 4).zero_();  // and so is its value
  const auto y = layer(x);
  EXPECT_TRUE(y.select(1, 4).equal(plain(x).select(1, 4)));
  EXPECT_FALSE(y.select(1, 5).allclose(plain(x).select(1, 5)));
  const auto values = x.matmul(layer["v_proj.weight"][0].t()).detach();
  const auto along = (y * values).view({2, 9, 4, 4}).sum(-1);
  EXPECT_LE(along.abs().max().item<double>(), 1e-5);
}

/// Gives back what it reads.
class Echo final : public Mixer {
 public:
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& /*residual*/,
                        const Pass& /*pass*/, std::uint64_t /*site*/) override {
    return x;
  }
  [[nodiscard]] std::unique_ptr<State> start(std::int64_t /*room*/) const override {
    return nullptr;
  }
  torch::Tensor step(const torch::Tensor& x, const torch::Tensor& /*residual*/,
                     const Pass& /*pass*/, State& /*state*/) override {
    return x;
  }
};

TEST(AttentionPatterns, SmearedInputsHaveAShareOfTheTokenBefore) {
  for (const std::int64_t width : {16, 5}) {
    std::vector<Parameter> parameters;
    SmearedMixer smeared(std::make_unique<Echo>(), width, ParameterScope(parameters));
    move_to(parameters, at::kCPU, at::kDouble);
    const at::NoGradGuard no_grad;
    const auto read = std::min<std::int64_t>(width, 12);
    const auto w = noise({1, read}, 1);
    parameters.at(0).tensor.copy_(w);
    parameters.at(1).tensor.fill_(0.7);
    const auto x = noise({1, 2, 9, width}, 2);
    const auto y = smeared.forward(x, x, Pass{}, 0);
    EXPECT_TRUE(y.select(2, 0).equal(x.select(2, 0)));
    for (std::int64_t t = 1; t < 9; ++t) {
      const auto now = x.select(2, t);
      const auto share = (now.narrow(-1, 0, read) * w).sum(-1, true).sigmoid() * 0.7;
      EXPECT_TRUE(y.select(2, t).allclose(now + share * x.select(2, t - 1), 1e-12, 1e-12)) << t;
    }
  }
}

// ---- whole models

Architecture model(const std::string& name) {
  const Architecture frame{.width = 24, .heads = 3, .context = 19, .vocabulary = 29};
  return canonical(parse_model(name, frame));
}

/// Layers with heads of two kinds, of 4 heads of 6 entries.
const std::vector<std::string>& pairs() {
  static const std::vector<std::string> kNames{
      "2*pair(attn{kv_heads=1,pattern=window,window=4,position=rope,gating=headwise_gate}|retnet){"
      "heads=4,smear=1}",
      "model{bias=none}/2*pair(attn{normalization=sink,decay=scalar}|linear){heads=4}",
      "pair(attn{maps=difference,qk_norm=rms}|recurrent{feature=taylor2,key_width=4}){heads=4,bias="
      "qkv}/pair(attn{similarity=cosine,temperature=learned}|gla){heads=4,bias=no_bias}",
      "2*pair(attn{kv_heads=1,maps=difference}|recurrent{feature=hedgehog}){heads=4}"};
  return kNames;
}

TEST(AttentionPatterns, HaveAsManyParametersAsTheirFormulas) {
  std::vector<std::string> names{
      "2*conv",
      "conv{conv=7}+swiglu/attn",
      "conv{smear=1}/attn{smear=1}",
      "2*attn{smear=1}",
      "model{bias=none}/attn{pattern=lsh,buckets=2}/attn",
      "2*attn{pattern=lsh,rounds=2}",
      "model{bias=no_bias}/2*attn{pattern=lsh,gating=headwise_gate,head_norm=rms}",
      "2*attn{pattern=bigbird,block=4}",
      "2*attn{pattern=strided,stride=4,kv_heads=1}",
      "2*attn{normalization=stick_breaking,soft_cap=30,value_exclusion=1}",
      "attn{value_embedding=1}/attn/attn{kv_heads=1,value_embedding=1}"};
  names.insert(names.end(), pairs().begin(), pairs().end());
  for (const auto& name : names) {
    const auto architecture = model(name);
    require_built(architecture);
    const Transformer built(architecture);
    std::int64_t count = 0;
    for (const auto& [parameter, tensor] : built.parameters()) count += tensor.numel();
    EXPECT_EQ(num_parameters(architecture), count) << name;
  }
  const auto flops = [](const std::string& layer) { return attention_flops(model("2*" + layer)); };
  EXPECT_EQ(2.0 * flops("pair(swa{window=4}|linear){heads=4}"),
            flops("swa{window=4,heads=4}") + flops("linear{heads=4}"));
}

TEST(AttentionPatterns, WhatBeginsWithNoShareIsAbsent) {
  const at::NoGradGuard no_grad;
  const auto tokens = at::arange(19, at::TensorOptions(at::kLong)).view({1, 19});
  for (const auto& [name, share] :
       std::map<std::string, std::string>{{"attn{smear=1}/conv{smear=1}", "smear.scale"},
                                          {"attn{value_embedding=1}/conv", "value_shares"}}) {
    Transformer shared(model(name));
    Transformer plain(model("attn/conv"));
    shared.initialise(3, 0);
    plain.initialise(3, 0);
    EXPECT_TRUE(shared.logits(tokens, Pass{}).equal(plain.logits(tokens, Pass{}))) << name;
    for (auto& [parameter, tensor] : shared.parameters()) {
      if (parameter.find(share) != std::string::npos) tensor.fill_(0.5);
    }
    EXPECT_FALSE(shared.logits(tokens, Pass{}).allclose(plain.logits(tokens, Pass{}))) << name;
  }
}

// A query that sees its own key alone has that key's value.
TEST(AttentionPatterns, ValuesHaveAShareOfTheTokensRow) {
  for (const std::int64_t key_heads : {4, 1}) {
    Layer layer(
        with("value_embedding=1,pattern=window,window=1,kv_heads=" + std::to_string(key_heads)));
    Pass pass;
    pass.value_rows = noise({1, 2, 9, 16}, 3);
    const at::NoGradGuard no_grad;
    const auto by_head = [&](const torch::Tensor& vectors) {
      return vectors.narrow(-1, 0, 4 * key_heads).reshape({2, 9, key_heads, 4});
    };
    const auto values = by_head(input().matmul(layer["v_proj.weight"][0].t())) +
                        layer["value_shares"].view({key_heads, 1}) * by_head(pass.value_rows[0]);
    const auto of_heads = values.repeat_interleave(4 / key_heads, 2).flatten(2);
    const auto y = layer.layer.forward(input(), input(), pass, 0);
    EXPECT_TRUE(y.allclose(of_heads.matmul(layer["out_proj.weight"][0].t()), 1e-12, 1e-12));
    EXPECT_THROW((void)layer(input()), std::logic_error);
  }
}

/// Losses and gradients of each model of an array are those of the model alone, bit by bit.
void expect_equal_alone(const std::vector<std::string>& names) {
  std::vector<Architecture> all;
  for (const auto& name : names) all.push_back(model(name));
  for (const auto mode : {NumericalMode::reference, NumericalMode::exact, NumericalMode::fast}) {
    const auto step = [&](const std::vector<std::size_t>& places) {
      return step_of(all, places, at::kFloat, at::kCPU, From::spread, mode);
    };
    const auto together = step({0, 1, 2, 3});
    for (const std::size_t place : {0U, 1U, 2U, 3U}) {
      const auto alone = step({place});
      const auto r = static_cast<std::int64_t>(place);
      EXPECT_TRUE(together.losses[r].equal(alone.losses[0])) << place;
      EXPECT_TRUE(together.nll[r].equal(alone.nll[0])) << place;
      ASSERT_EQ(together.gradients[place].size(), alone.gradients[0].size());
      for (const auto& [name, gradient] : alone.gradients[0]) {
        EXPECT_TRUE(together.gradients[place].at(name).equal(gradient)) << place << " " << name;
      }
    }
  }
}

/// Layers of several mixers, also between like ones.
TEST(AttentionPatterns, OfConvolutionsInAnArrayComputeWhatEachComputesAlone) {
  expect_equal_alone({"attn{smear=1,temperature=learned}/conv{conv=4}/conv{smear=1}",
                      "conv{smear=1}/conv{conv=4}/attn", "attn{smear=1}/conv{conv=4}/conv{smear=1}",
                      "attn{smear=1}/attn{smear=1,gating=highway}/conv{smear=1}"});
}

TEST(AttentionPatterns, OfPairsInAnArrayComputeWhatEachComputesAlone) {
  expect_equal_alone({"2*pair(attn|ssd){heads=4}",
                      "2*pair(attn{temperature=learned,normalization=sparsemax}|ssd){heads=4}",
                      "2*pair(attn{similarity=additive,position=alibi}|ssd){heads=4}",
                      "pair(attn|ssd){heads=4}/attn"});
  EXPECT_FALSE(alike(model("2*pair(attn|ssd){heads=4}"), model("2*pair(attn|linear){heads=4}")));
  EXPECT_FALSE(alike(model("2*pair(attn|ssd){heads=4}"), model("2*pair(mqa|ssd){heads=4}")));
}

/// Some models of the array have a table, and some layers of these read it.
TEST(AttentionPatterns, OfValueEmbeddingsInAnArrayComputeWhatEachComputesAlone) {
  expect_equal_alone({"attn{value_embedding=1}/conv/attn{value_embedding=1}",
                      "conv/attn/attn{value_embedding=1}",
                      "attn{value_embedding=1,temperature=learned}/attn/conv", "conv/attn/conv"});
}

TEST(AttentionPatterns, PassTheGates) {
  std::vector<std::string> names{"2*conv{conv=4,smear=1}",
                                 "2*attn{pattern=lsh}",
                                 "2*attn{smear=1}",
                                 "2*attn{pattern=bigbird,block=4,globals=1}",
                                 "2*attn{pattern=strided,soft_cap=30}",
                                 "2*attn{normalization=stick_breaking,value_exclusion=1}",
                                 "2*attn{value_embedding=1}"};
  names.insert(names.end(), pairs().begin(), pairs().end());
  for (const auto& name : names) {
    EXPECT_TRUE(check_causality(model(name)).causal) << name;
    EXPECT_TRUE(check_prefixes(model(name)).consistent) << name;
  }
}

}  // namespace
}  // namespace nas::nn::test
