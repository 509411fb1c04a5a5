#include "genotype/slots.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "paper_components.hpp"

namespace nas {
namespace {

using Texts = std::vector<std::string>;

Mechanism mechanism(const std::string& name, Semantics semantics = Semantics::corrected) {
  return parse_mechanism(name, semantics);
}

TEST(Slots, AreInTheOrderOfAName) {
  Texts names;
  for (const auto& slot : slots()) names.push_back(slot.name);
  EXPECT_EQ(names, (Texts{"similarity", "normalization", "gating", "temperature", "bias",
                          "attention_dropout"}));
  EXPECT_EQ(component_genes(), Texts(names.begin(), names.begin() + 4));
  EXPECT_THROW((void)slot("dropout"), std::logic_error);
}

TEST(Slots, OfferThePapersLabelsThenOtherKeys) {
  const auto temperatures = options(slot("temperature"));
  EXPECT_EQ(Texts(temperatures.begin(), temperatures.begin() + 3),
            (Texts{"fixed", "learned", "adaptive"}));
  EXPECT_NE(std::find(temperatures.begin(), temperatures.end(), "per_query"), temperatures.end());
  EXPECT_EQ(options(slot("bias")), (Texts{"bias", "no_bias"}));
  EXPECT_TRUE(options(slot("attention_dropout")).empty());
}

TEST(Slots, OptionsOfConfigurationsReadBack) {
  for (const auto& slot : slots()) {
    for (const auto& option : options(slot)) {
      EXPECT_EQ(option_text(slot, option_json(slot, option)), option);
    }
  }
  EXPECT_EQ(option_json(slot("bias"), "no_bias"), false);
}

TEST(Slots, WhatAComponentVoidsIsNotActive) {
  const auto cancelled = mechanism("dot|relu_norm|none|learned|bias|0.1");
  const auto effective = mechanism("dot|softmax|none|learned|bias|0.1");
  for (const auto& slot : slots()) {
    EXPECT_EQ(is_active(slot, cancelled), slot.name != "temperature") << slot.name;
    EXPECT_TRUE(is_active(slot, effective)) << slot.name;
  }
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
  expected.bias = false;
  EXPECT_EQ(mechanism_of(genotype, Semantics::corrected), expected);
}

}  // namespace
}  // namespace nas
