// Layers of two kinds of heads (mixer pair).

#include <string>
#include <vector>

#include "array_step.hpp"
#include "core/error.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "genotype/layer_rules.hpp"
#include "nn/transformer.hpp"
#include "prelude.hpp"

namespace nas::nn::test {
namespace {

Architecture model(const std::string& name) {
  const Architecture frame{.width = 32, .heads = 4, .context = 19, .vocabulary = 29};
  return canonical(parse_model(name, frame));
}

const Texts& names() {
  static const Texts kNames{
      "2*pair(attn|recurrent)",
      "2*pair(attn{kv_heads=1,pattern=window,window=4,position=rope,rope_fraction=0.5}|retnet){"
      "smear=1}",
      "pair(attn{gating=elementwise_gate,head_norm=rms}|gla)+swiglu/attn",
      "model{bias=none}/2*pair(attn{normalization=sink,decay=scalar}|linear)",
      "pair(attn{maps=difference,qk_norm=rms}|recurrent{feature=taylor2,key_width=4}){bias=qkv}/"
      "pair(attn{similarity=cosine,temperature=learned}|ssd){bias=no_bias,heads=8}",
      "2*pair(attn{kv_heads=1,maps=difference,position=rope}|recurrent{feature=hedgehog})"};
  return kNames;
}

TEST(Pair, HasAsManyParametersAsItsFormula) {
  for (const auto& name : names()) {
    const auto architecture = model(name);
    require_built(architecture);
    const Transformer built(architecture);
    std::int64_t count = 0;
    for (const auto& [parameter, tensor] : built.parameters()) {
      count += tensor.numel();
      EXPECT_FALSE(parameter.ends_with("recurrent.out_proj.bias")) << "one bias behind all heads";
    }
    EXPECT_EQ(num_parameters(architecture), count) << name;
  }
}

// Of one layer there are q, k, v and O once: a half costs half of a layer of its kind, but what is of the whole.
TEST(Pair, CostsHalfOfEachKind) {
  const auto costs = [](const std::string& layer) { return attention_flops(model("2*" + layer)); };
  EXPECT_EQ(2.0 * costs("pair(swa{window=4}|linear)"), costs("swa{window=4}") + costs("linear"));
  const auto bytes = [](const std::string& layer) { return state_bytes(model("2*" + layer), 11); };
  EXPECT_EQ(2 * bytes("pair(swa{window=4}|linear)"), bytes("swa{window=4}") + bytes("linear"));
}

TEST(Pair, PassesTheGates) {
  for (const auto& name : names()) {
    EXPECT_TRUE(check_causality(model(name)).causal) << name;
    EXPECT_TRUE(check_prefixes(model(name)).consistent) << name;
  }
  EXPECT_FALSE(is_causal(model("2*pair(attn{temperature=sequence_mean}|recurrent)").stack.front()));
}

/// Losses and gradients of each model of an array are those of the model alone, bit by bit.
TEST(Pair, InArraysIsAsAlone) {
  for (const auto& names : std::vector<Texts>{
           {"2*pair(attn|ssd)", "2*pair(attn{temperature=learned,normalization=sparsemax}|ssd)",
            "2*pair(attn{similarity=additive,position=alibi}|ssd)", "2*pair(attn|ssd)"},
           {"pair(attn|linear)/attn", "attn/pair(attn|linear)", "2*pair(attn|linear)",
            "recurrent/pair(attn{position=rope}|linear)"}}) {
    std::vector<Architecture> all;
    for (const auto& name : names) all.push_back(model(name));
    for (const auto mode : {NumericalMode::reference, NumericalMode::exact, NumericalMode::fast}) {
      const auto step = [&](const std::vector<std::size_t>& places) {
        return step_of(all, places, at::kFloat, at::kCPU, From::spread, mode);
      };
      const auto together = step({0, 1, 2, 3});
      for (const std::size_t place : {0U, 1U, 2U, 3U}) {
        const auto alone = step({place});
        EXPECT_TRUE(together.losses[static_cast<std::int64_t>(place)].equal(alone.losses[0]))
            << names[place];
        ASSERT_EQ(together.gradients[place].size(), alone.gradients[0].size());
        for (const auto& [name, gradient] : alone.gradients[0]) {
          EXPECT_TRUE(together.gradients[place].at(name).equal(gradient))
              << names[place] << " " << name;
        }
      }
    }
  }
  EXPECT_FALSE(alike(model("2*pair(attn|ssd)"), model("2*pair(attn|linear)")));
  EXPECT_FALSE(alike(model("2*pair(attn|ssd)"), model("2*pair(mqa|ssd)")));
}

}  // namespace
}  // namespace nas::nn::test
