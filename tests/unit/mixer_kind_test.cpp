#include "genotype/mixer_kind.hpp"

#include "core/error.hpp"
#include "genotype/costs.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/slots.hpp"
#include "paper_components.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

Mechanism standard(const std::string& mixer) { return default_layer(Architecture{}, mixer); }

std::vector<Mechanism> kind_parts(const Mechanism& layer) {
  return mixer_kinds().at(layer.word("mixer")).parts(layer, AttentionShape{});
}

std::int64_t num_parameters(const Mechanism& layer) {
  const Architecture architecture{.stack = {layer}};
  return mixer_kinds()
      .at(layer.word("mixer"))
      .costs(layer, attention_shape(architecture))
      .parameters;
}

/// A layer of a kind with another value of a gene, beside an option that the gene is a size of; the
/// default itself where there is no other value.
Mechanism with_other(const Slot& gene, Mechanism layer) {
  if (!gene.owner.empty()) {
    assign(slot(gene.owner), gene.owner_options.front(), Semantics::corrected, layer);
  }
  if (gene.is_integer()) {
    layer.set(gene, std::int64_t{layer.integer(gene.name) == 2 ? 4 : 2});
  } else if (!gene.is_number()) {
    const auto& words = gene.choices.size() > 1 ? gene.choices : options(gene);
    const auto other = std::find_if(words.begin() + 1, words.end(), [&](const auto& option) {
      return has_option(layer.word("mixer"), gene, option);
    });
    if (other != words.end()) layer.set(gene, *other);
  }
  return layer;
}

TEST(MixerKinds, AreThoseThatTheSpaceNames) {
  EXPECT_EQ(mixer_kinds().keys(), slot("mixer").choices);
  EXPECT_EQ(message_of<InputError>([] { (void)mixer_kinds().at("recurent"); }),
            "unknown mixer 'recurent'; did you mean recurrent? Known: attn, recurrent, conv, "
            "pair, none");
  for (const auto& key : mixer_kinds().keys()) {
    for (const auto& [gene, options] : mixer_kinds().at(key).genes) {
      for (const auto& option : options) {
        EXPECT_TRUE(std::count(slot(gene).choices.begin(), slot(gene).choices.end(), option))
            << option;
      }
    }
  }
}

// What a layer itself has, since modules of options have parameters of their own, and biases are of
// those models of an array that have some.
TEST(MixerKinds, LayersWithOtherParametersHaveAnotherShapeKey) {
  for (const auto& key : mixer_kinds().keys()) {
    const auto& kind = mixer_kinds().at(key);
    const auto before = standard(key);
    for (const auto* gene : layer_slots()) {
      const bool option = gene->is_component() || !gene->owner.empty() || gene->name == "bias";
      // Costs of feature maps are their modules', which are not here.
      if (!has_gene(key, *gene) || gene->name == "mixer" || is_text(*gene) ||
          gene->name == "feature" || gene->owner == "feature" || (key == "attn" && option)) {
        continue;
      }
      const auto after = with_other(*gene, before);
      if (num_parameters(after) == num_parameters(before)) continue;
      EXPECT_NE(kind.shape_key(after), kind.shape_key(before)) << key << " " << gene->name;
    }
  }
}

TEST(MixerKinds, SizesOfParametersAreInTheShapeKeyOfARecurrentLayer) {
  const auto& kind = mixer_kinds().at("recurrent");
  for (const auto* name : {"decay_rank", "favor_features", "feature", "update", "key_width", "near",
                           "gate_rank", "decay_form"}) {
    const auto& gene = slot(name);
    auto before = standard("recurrent");
    if (!gene.owner.empty()) {
      assign(slot(gene.owner), gene.owner_options.front(), Semantics::corrected, before);
    }
    EXPECT_NE(kind.shape_key(with_other(gene, before)), kind.shape_key(before)) << name;
  }
}

TEST(MixerKinds, SizesOfHalvesAreInTheShapeKeyOfAPair) {
  const auto& kind = mixer_kinds().at("pair");
  const auto key_of = [&](const std::string& first, const std::string& second) {
    return kind.shape_key(standard("pair").set("first", first).set("second", second));
  };
  const auto before = key_of("attn", "recurrent");
  EXPECT_EQ(key_of("attn{temperature=learned}", "recurrent"), before);
  EXPECT_NE(key_of("attn{kv_heads=1}", "recurrent"), before);
  EXPECT_NE(key_of("attn", "recurrent{decay=scalar}"), before);
  EXPECT_NE(key_of("attn", "recurrent{key_width=8}"), before);
}

TEST(MixerKinds, APairCostsWhatItsHalvesCost) {
  auto whole = standard("pair");
  const auto halves = kind_parts(whole);
  ASSERT_EQ(halves.size(), 2U);
  EXPECT_EQ(num_parameters(whole), num_parameters(halves[0]) + num_parameters(halves[1]));
  // q, k, v of as many rows as of one layer with biases, O, and the norm of the recurrent heads.
  EXPECT_EQ(num_parameters(whole), 4 * 128 * 129 + 32);
  EXPECT_EQ(num_parameters(whole.set("bias", "no_bias")), 4 * 128 * 128 + 128 + 32);
}

TEST(MixerKinds, SizesOfOptionsSayHowSmallTheyMayBe) {
  for (const auto* gene : layer_slots()) {
    if (!gene->is_integer() || gene->owner.empty()) continue;
    EXPECT_GT(gene->small, 0) << gene->name << " may hide nothing in a small model";
    EXPECT_TRUE(gene->allows == nullptr || gene->allows(gene->small)) << gene->name;
    EXPECT_GE(static_cast<double>(gene->small), gene->min) << gene->name;
  }
}

}  // namespace
}  // namespace nas
