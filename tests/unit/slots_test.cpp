#include "genotype/slots.hpp"

#include "core/error.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/mechanism_name.hpp"
#include "paper_components.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

Mechanism mechanism(const std::string& name, Semantics semantics = Semantics::corrected) {
  return parse_mechanism(name, semantics);
}

TEST(Slots, BeginWithThePapersAndHaveUniqueNames) {
  std::set<std::string> names;
  for (const auto& one : slots()) {
    EXPECT_EQ(one.paper, names.size() < paper_slots().size()) << one.name;
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_EQ(&slot(one.name), &one);
  }
  EXPECT_EQ(layer_slots().size() + model_slots().size(), slots().size());
}

TEST(Slots, AreWrittenInTheOrderOfTheTableOfGenes) {
  Texts written;
  for (const auto* slot : layer_slots()) written.push_back(slot->written);
  EXPECT_EQ(
      join(written, " "),
      "mixer first second heads kv_heads head_width kv_rank keys similarity qk_norm qk_eps "
      "normalization "
      "temperature gating bias dropout gate_rank pattern window globals full_groups stride block "
      "random buckets rounds position rope_base rope_fraction rope_factor rope_original rope_low "
      "rope_high t5_buckets t5_distance cope_positions decay decay_rank decay_tau decay_form "
      "maps conv head_norm value_exclusion soft_cap smear value_embedding update feature "
      "favor_features near key_width neg_eigen ffn ratio chosen");
}

TEST(Slots, BeginAsTheirDefault) {
  const auto vanilla = vanilla_mechanism(Semantics::corrected);
  for (const auto* slot : layer_slots()) {
    auto chosen = vanilla;
    assign(*slot, value_of(*slot, Mechanism()), Semantics::corrected, chosen);
    EXPECT_EQ(chosen, vanilla) << slot->name;
  }
  for (const auto* slot : model_slots()) {
    EXPECT_EQ(ModelGenes{}.at(*slot), slot->default_value) << slot->name;
  }
}

TEST(Slots, RefuseWhatTheyDoNotHave) {
  const auto refusal = [](const std::string& name, const std::string& given) {
    Mechanism layer;
    return message_of<InputError>([&] { choose(slot(name), given, Semantics::corrected, layer); });
  };
  EXPECT_EQ(refusal("position", "ropes"),
            "position = ropes, must be one of none, rope; did you mean rope?");
  EXPECT_EQ(refusal("window", "0"), "window = 0, must be an integer >= 1");
  EXPECT_EQ(refusal("window", "1.5"), "window = 1.5, must be an integer >= 1");
  EXPECT_EQ(refusal("conv", "1"), "conv = 1, must be 0 or an integer in [2, 8]");
  EXPECT_EQ(refusal("conv", "9"), "conv = 9, must be 0 or an integer in [2, 8]");
  EXPECT_EQ(refusal("buckets", "3"), "buckets = 3, must be 1 or an even number <= 65536");
  EXPECT_EQ(refusal("t5_buckets", "7"), "t5_buckets = 7, must be an even number in [2, 65536]");
  EXPECT_EQ(refusal("neg_eigen", "2"), "neg_eigen = 2, must be an integer in [0, 1]");
  EXPECT_EQ(refusal("rope_base", "0.5"), "rope_base = 0.5, must be a number >= 1");
  EXPECT_EQ(refusal("rope_fraction", "1.01"), "rope_fraction = 1.01, must be a number in (0, 1]");
  EXPECT_EQ(refusal("bias", "yes"), "bias = yes, must be one of bias, no_bias, none, qkv");
  EXPECT_EQ(refusal("rope_fraction", "1"), "nothing was thrown");
  EXPECT_EQ(refusal("conv", "8"), "nothing was thrown");
  EXPECT_EQ(refusal("t5_buckets", "65538"),
            "t5_buckets = 65538, must be an even number in [2, 65536]");
  EXPECT_EQ(refusal("t5_buckets", "65536"), "nothing was thrown");
  EXPECT_EQ(refusal("ratio", "400000"), "ratio = 400000, must be an integer in [1, 64]");
  EXPECT_EQ(refusal("ratio", "64"), "nothing was thrown");
  for (const auto* name : {"kv_rank", "globals", "pattern_block", "random", "rounds",
                           "cope_positions", "decay_rank", "favor_features", "key_width"}) {
    EXPECT_NE(refusal(name, "65537").find(", 65536]"), std::string::npos) << name;
    EXPECT_EQ(refusal(name, "65536"), "nothing was thrown") << name;
  }
}

TEST(Slots, WriteWholeNumbersWithoutExponent) {
  auto layer = vanilla_mechanism(Semantics::corrected);
  choose(slot("rope_base"), "500000", Semantics::corrected, layer);
  EXPECT_EQ(text(slot("rope_base"), layer), "500000");
  choose(slot("rope_fraction"), "0.25", Semantics::corrected, layer);
  EXPECT_EQ(text(slot("rope_fraction"), layer), "0.25");
  EXPECT_EQ(option_text(slot("rope_base"), 500000), "500000");
  EXPECT_EQ(option_text(slot("window"), 16), "16");
  EXPECT_EQ(option_json(slot("window"), "16"), 16);
}

TEST(Slots, OfferWhatAModuleComputes) {
  // Stand-ins are registered for the paper's components and some others.
  EXPECT_EQ(options(slot("position")), (Texts{"none", "rope"}));
  EXPECT_EQ(options(slot("maps")), Texts{"single"});
  EXPECT_EQ(options(slot("ffn")), (Texts{"gelu", "swiglu", "none"}));
  EXPECT_EQ(options(slot("norm_place")), (Texts{"pre", "post", "sandwich"}));
  EXPECT_TRUE(is_built(slot("gating"), "highway"));
  EXPECT_FALSE(is_built(slot("position"), "cope"));
}

TEST(Slots, OptionsOfConfigurationsReadBack) {
  for (const auto& slot : slots()) {
    for (const auto& option : options(slot)) {
      EXPECT_EQ(option_text(slot, option_json(slot, option)), option);
    }
  }
  EXPECT_EQ(option_json(slot("bias"), "no_bias"), false);
  EXPECT_EQ(option_json(slot("bias"), "none"), "none");
}

TEST(Slots, ASizeIsActiveBesideItsOwnerAlone) {
  auto layer = vanilla_mechanism(Semantics::corrected);
  EXPECT_FALSE(is_active(slot("window"), layer));
  EXPECT_FALSE(is_active(slot("update"), layer));
  layer.set("pattern", "window");
  EXPECT_TRUE(is_active(slot("window"), layer));
  EXPECT_FALSE(is_active(slot("stride"), layer));
  EXPECT_TRUE(is_active(slot("norm"), layer));
}

TEST(Slots, ASpaceOffersOptionsAsItSpellsThem) {
  const auto published = mechanism("dot|sparsemax|none|fixed|no_bias|0.1", Semantics::published);
  const Gene labels{.name = "normalization", .options = {"softmax", "sparsemax"}};
  const Gene keys{.name = "normalization", .options = {"topk_quarter"}};
  EXPECT_EQ(offered(labels, published, Semantics::published), GeneValue("sparsemax"));
  EXPECT_EQ(offered(keys, published, Semantics::published), GeneValue("topk_quarter"));
  EXPECT_EQ(offered(labels, published, Semantics::corrected), std::nullopt);
  EXPECT_EQ(offered({.name = "bias", .options = {"bias"}}, published, Semantics::published),
            std::nullopt);
  const Gene dropout{.name = "attention_dropout", .min = 0.1, .max = 0.2};
  EXPECT_EQ(offered(dropout, published, Semantics::published), GeneValue(0.1));
  EXPECT_EQ(offered({.name = "attention_dropout", .min = 0.2, .max = 0.3}, published,
                    Semantics::published),
            std::nullopt);
}

TEST(Slots, GenotypesAndMechanismsAreInverse) {
  const auto space = paper_space();
  RandomEngine random(7);
  for (int i = 0; i < 100; ++i) {
    const auto genotype = space.draw(random);
    for (const auto semantics : {Semantics::corrected, Semantics::published}) {
      const auto meant = mechanism_of(genotype, semantics);
      for (const auto& [name, value] : genotype.values()) {
        EXPECT_EQ(offered(space.gene(name), meant, semantics), value) << name;
      }
    }
  }
}

TEST(Slots, GenesThatAGenotypeLacksKeepTheirDefaults) {
  const Genotype genotype({{"bias", std::string("no_bias")}});
  Mechanism expected;
  expected.set("bias", "no_bias").set("attention_dropout", 0.0);
  EXPECT_EQ(mechanism_of(genotype, Semantics::corrected), expected);
}

}  // namespace
}  // namespace nas
