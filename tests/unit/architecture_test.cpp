#include "genotype/architecture.hpp"

#include "core/error.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "genotype/mechanism_name.hpp"
#include "prelude.hpp"
#include "unit/message_of.hpp"
#include "unit/paper_components.hpp"

namespace nas {
namespace {

Architecture model(const std::string& name) { return canonical(parse_model(name, {})); }

TEST(HiddenWidth, FollowsTheRatioOfTheLayer) {
  const auto stack = model("attn/attn+swiglu/attn+relu2{ratio=2}/attn+none");
  EXPECT_EQ(hidden_width(stack, stack.layer(0)), 512);
  EXPECT_EQ(hidden_width(stack, stack.layer(1)), 344);  // 8 ceil(4 * 128 / 12)
  EXPECT_EQ(hidden_width(stack, stack.layer(2)), 256);
  EXPECT_EQ(hidden_width(stack, stack.layer(3)), 0);
  auto fixed = stack;
  fixed.hidden = 40;
  EXPECT_EQ(hidden_width(fixed, fixed.layer(1)), 40);
  EXPECT_EQ(hidden_width(fixed, fixed.layer(3)), 0);
}

TEST(Costs, OfAWindowGrowWithTheContextOnly) {
  const auto flops = [](std::int64_t context, const std::string& name) {
    Architecture frame;
    frame.context = context;
    return attention_flops(canonical(parse_model(name, frame)));
  };
  const std::string windowed = "2*attn{gating=none,pattern=window,window=16}";
  // The stand-ins' scores count all pairs; the weighted sum is 2 T w D a layer.
  EXPECT_EQ(flops(512, "2*attn") - flops(512, windowed), 2 * 2.0 * 512.0 * (512.0 - 16.0) * 128.0);
  EXPECT_EQ(state_bytes(model(windowed), 8), 2 * 8 * 128 * 8);
  EXPECT_EQ(state_bytes(model(windowed), 1000), 2 * 8 * 128 * 16);
  EXPECT_EQ(state_bytes(model("2*attn"), 1000), 2 * 8 * 128 * 1000);
}

TEST(MatchedHidden, BringsAModelNearestToTheVanillaOne) {
  const auto target = num_parameters(model("2*attn"));
  EXPECT_EQ(matched_hidden(model("2*attn")), 512);
  for (const std::string name :
       {"2*attn+swiglu", "2*attn{gating=highway}", "attn/conv+swiglu", "attn/recurrent+none",
        "model{position_embedding=none,norm=rms}/2*attn{kv_heads=1}+swiglu"}) {
    auto sized = model(name);
    const auto hidden = matched_hidden(sized);
    EXPECT_EQ(hidden % 8, 0) << name;
    EXPECT_GE(2 * hidden, sized.width) << name;
    const auto distance_at = [&](std::int64_t width) {
      sized.hidden = width;
      return std::abs(num_parameters(sized) - target);
    };
    EXPECT_LE(distance_at(hidden), distance_at(hidden + 8)) << name;
    EXPECT_LE(distance_at(hidden), distance_at(hidden - 8)) << name;
  }
}

TEST(Fitted, ModelsMatchTheVanillaOneInParameters) {
  Architecture frame;
  EXPECT_EQ(fitted(model("2*attn+swiglu")).hidden, 0) << "unless that is asked for";
  frame.match_parameters = true;
  for (const std::string name : {"2*attn{gating=highway}+swiglu", "attn/conv+swiglu",
                                 "dot|softmax|highway|fixed|bias|0.1"}) {
    const auto given = parse_model(name, frame);
    EXPECT_EQ(given.hidden, matched_hidden(model(name))) << name;
    EXPECT_EQ(canonical(given).hidden, given.hidden) << name;
    EXPECT_EQ(hidden_width(given, given.layer(0)), given.hidden) << name;
    EXPECT_NEAR(static_cast<double>(num_parameters(given)),
                static_cast<double>(num_parameters(model("2*attn"))), 2 * 3 * 4 * 128.0)
        << name;
  }
  EXPECT_EQ(vanilla_architecture(frame).hidden, 512);
}

TEST(Fitted, RatiosAreVoid) {
  Architecture frame;
  frame.match_parameters = true;
  EXPECT_EQ(to_string(canonical(parse_model("2*attn+swiglu{ratio=2}", frame))), "2*attn+swiglu");
  EXPECT_EQ(to_string(canonical(parse_model("2*attn+swiglu{ratio=2}", {}))),
            "2*attn+swiglu{ratio=2}");
  const Genotype genotype({{"ffn", "swiglu"}, {"ratio", "2"}});
  EXPECT_EQ(active(genotype, frame), Texts{"ffn"});
}

TEST(Fitted, WhatCannotMatchIsNoModel) {
  Architecture frame;
  frame.match_parameters = true;
  const auto refusal = [&frame](const std::string& name) {
    const auto candidate = candidate_of(parse_unchecked(name, frame));
    EXPECT_EQ(candidate.name, name);
    EXPECT_EQ(message_of<InputError>([&] { (void)parse_model(name, frame); }),
              "model '" + name + "': " + candidate.refusal);
    return candidate.refusal;
  };
  EXPECT_THAT(refusal("model{tied=0}/2*attn"), HasSubstr("narrower than half of width = 128"));
  EXPECT_THAT(refusal("2*attn+none"), HasSubstr("no layer has a feed-forward layer"));
}

TEST(Costs, OfOptionsWithoutDescriptionAreRefused) {
  EXPECT_THAT(message_of<InputError>([] { (void)num_parameters(model("2*attn{position=t5}")); }),
              HasSubstr("position = t5: no module computes it"));
}

}  // namespace
}  // namespace nas
