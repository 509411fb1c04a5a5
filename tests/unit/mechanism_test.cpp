#include "genotype/mechanism.hpp"

#include "core/error.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/mechanism_name.hpp"
#include "genotype/slots.hpp"
#include "paper_components.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

class BothSemantics : public ::testing::TestWithParam<Semantics> {};

INSTANTIATE_TEST_SUITE_P(, BothSemantics,
                         ::testing::Values(Semantics::corrected, Semantics::published),
                         [](const auto& semantics) {
                           return std::string(to_string(semantics.param));
                         });

Mechanism mechanism_of(std::string similarity, std::string normalization, std::string gating,
                       std::string temperature, bool bias) {
  Mechanism mechanism;
  mechanism.set("similarity", std::move(similarity));
  mechanism.set("normalization", std::move(normalization));
  mechanism.set("gating", std::move(gating));
  mechanism.set("temperature", std::move(temperature));
  mechanism.set("bias", bias ? "bias" : "no_bias");
  mechanism.set("attention_dropout", 0.1);
  return mechanism;
}

/// The mechanisms of the paper's space, dropout aside.
std::vector<Mechanism> paper_space(Semantics semantics, const std::vector<bool>& biases) {
  std::vector<Mechanism> mechanisms;
  const auto key = [semantics](std::string_view gene, const std::string& label) {
    return component_key(semantics, gene, label);
  };
  for (const auto& similarity : paper_labels("similarity")) {
    for (const auto& normalization : paper_labels("normalization")) {
      for (const auto& gating : paper_labels("gating")) {
        for (const auto& temperature : paper_labels("temperature")) {
          for (const bool bias : biases) {
            mechanisms.push_back(
                mechanism_of(key("similarity", similarity), key("normalization", normalization),
                             key("gating", gating), key("temperature", temperature), bias));
          }
        }
      }
    }
  }
  return mechanisms;
}

std::size_t num_functions(const std::vector<Mechanism>& mechanisms, Semantics semantics) {
  std::set<std::string> names;
  for (const auto& mechanism : mechanisms) names.insert(to_string(canonical(mechanism, semantics)));
  return names.size();
}

std::string parse_error(const std::string& text, Semantics semantics = Semantics::corrected) {
  return message_of<InputError>([&] { (void)parse_mechanism(text, semantics); });
}

TEST(Semantics, ParsesItsTwoNames) {
  EXPECT_EQ(parse_semantics("corrected"), Semantics::corrected);
  EXPECT_EQ(parse_semantics("published"), Semantics::published);
  EXPECT_EQ(message_of<InputError>([&] { (void)parse_semantics("paper"); }),
            "semantics = paper, must be one of corrected, published");
}

TEST(ComponentKey, SaysWhatALabelComputes) {
  EXPECT_EQ(component_key(Semantics::published, "normalization", "sparsemax"), "topk_quarter");
  EXPECT_EQ(component_key(Semantics::corrected, "normalization", "sparsemax"), "sparsemax");
  EXPECT_EQ(component_key(Semantics::published, "gating", "highway"), "normed_highway");
  EXPECT_EQ(component_key(Semantics::published, "temperature", "adaptive"), "sequence_mean");
  EXPECT_EQ(component_key(Semantics::corrected, "temperature", "adaptive"), "per_query");
  EXPECT_EQ(component_key(Semantics::corrected, "similarity", "multiplicative"), "silu_dot");
}

TEST_P(BothSemantics, LabelsAndKeysAreInverse) {
  for (const auto& gene : component_genes()) {
    for (const auto& label : paper_labels(gene)) {
      const auto key = component_key(GetParam(), gene, label);
      EXPECT_EQ(component_label(GetParam(), gene, key), label) << gene;
    }
    EXPECT_EQ(component_label(GetParam(), gene, "bilinear"), "bilinear");
  }
}

TEST(Mechanism, HoldsWhatSlotsDeclare) {
  Mechanism mechanism;
  EXPECT_EQ(mechanism, vanilla_mechanism(Semantics::corrected));
  mechanism.set("window", 8).set("rope_base", 500.0);
  EXPECT_EQ(mechanism.integer("window"), 8);
  EXPECT_EQ(mechanism.real("rope_base"), 500.0);
  EXPECT_EQ(mechanism.word("pattern"), "full");
  EXPECT_NE(mechanism, Mechanism());
  EXPECT_EQ(mechanism.set("rope_base", 10000.0).set("window", 64), Mechanism());
  EXPECT_THROW((void)mechanism.integer("widow"), std::logic_error);
  EXPECT_THROW((void)mechanism.integer("pattern"), std::logic_error);
  EXPECT_THROW(mechanism.set("window", 0.5), std::logic_error);
}

TEST_P(BothSemantics, EveryNameOfThePaperParsesAndPrints) {
  for (const auto& mechanism : paper_space(GetParam(), {true, false})) {
    EXPECT_EQ(parse_mechanism(label(mechanism, GetParam()), GetParam()), mechanism);
    // A key that is also another label is read as the label; the paper has no such key.
    EXPECT_EQ(parse_mechanism(to_string(mechanism), GetParam()), mechanism);
  }
}

TEST(ParseMechanism, KeepsEveryDigitOfDropout) {
  const auto mechanism =
      parse_mechanism("dot|softmax|none|fixed|bias|0.12345678901234566", Semantics::corrected);
  EXPECT_EQ(mechanism.real("attention_dropout"), 0.12345678901234566);
  EXPECT_EQ(parse_mechanism(to_string(mechanism), Semantics::corrected), mechanism);
}

TEST(ParseMechanism, SaysWhichFieldIsWrong) {
  EXPECT_EQ(parse_error("dot|softmax|none|fixed|bias"),
            "mechanism 'dot|softmax|none|fixed|bias': 5 fields, must be 6: "
            "similarity|normalization|gating|temperature|bias|attention_dropout");
  EXPECT_EQ(
      parse_error("dot|softmax|nome|fixed|bias|0.1"),
      "mechanism 'dot|softmax|nome|fixed|bias|0.1': unknown gating 'nome'; did you mean none? "
      "Known: highway, input_gate, none, normed_highway, output_gate");
  EXPECT_EQ(parse_error("dot|softmax|none|fixed|true|0.1"),
            "mechanism 'dot|softmax|none|fixed|true|0.1': bias = true, must be one of bias, "
            "no_bias");
  EXPECT_EQ(parse_error("dot|softmax|none|fixed|none|0.1"),
            "mechanism 'dot|softmax|none|fixed|none|0.1': bias = none, must be one of bias, "
            "no_bias");
  EXPECT_EQ(parse_error("dot|softmax|none|fixed|bias|1"),
            "mechanism 'dot|softmax|none|fixed|bias|1': attention_dropout = 1, must be a number in "
            "[0, 1)");
}

TEST(ParseMechanism, RefusesWhatIsNoDropout) {
  for (const std::string dropout : {"", "-0.1", "0.1x", "nan", "inf", "1e400", "a"}) {
    EXPECT_THROW(
        (void)parse_mechanism("dot|softmax|none|fixed|bias|" + dropout, Semantics::corrected),
        InputError)
        << dropout;
  }
}

TEST_P(BothSemantics, ThePaperHas320Functions) {
  const auto all = paper_space(GetParam(), {true, false});
  EXPECT_EQ(all.size(), 384U);
  EXPECT_EQ(num_functions(all, GetParam()), 320U);
  const auto without_bias = paper_space(GetParam(), {false});
  EXPECT_EQ(without_bias.size(), 192U);
  EXPECT_EQ(num_functions(without_bias, GetParam()), 160U);
}

TEST(Canonical, SetsOnlyWhatIsVoid) {
  const auto canonical_name = [](const std::string& name, Semantics semantics) {
    return to_string(canonical(parse_mechanism(name, semantics), semantics));
  };
  EXPECT_EQ(canonical_name("cosine|relu_norm|highway|learned|no_bias|0.2", Semantics::corrected),
            "cosine|relu_norm|highway|fixed|no_bias|0.2");
  EXPECT_EQ(canonical_name("cosine|relu_norm|highway|learned|no_bias|0.2", Semantics::published),
            "cosine|relu_norm|normed_highway|sqrt_d|no_bias|0.2");
  EXPECT_EQ(canonical_name("cosine|softmax|highway|learned|no_bias|0.2", Semantics::corrected),
            "cosine|softmax|highway|learned|no_bias|0.2");
}

TEST(Canonical, NegativeZeroIsZero) {
  auto mechanism = vanilla_mechanism(Semantics::corrected);
  mechanism.set("attention_dropout", -0.0);
  EXPECT_EQ(to_string(canonical(mechanism, Semantics::corrected)), "dot|softmax|none|fixed|bias|0");
}

TEST(IsCausal, FailsOnlyForTheSequenceMeanThatHasAnEffect) {
  const auto causal = [](const std::string& name) {
    return is_causal(parse_mechanism(name, Semantics::published));
  };
  EXPECT_TRUE(causal("dot|softmax|none|learned|bias|0"));
  EXPECT_FALSE(causal("dot|softmax|none|adaptive|bias|0"));
  EXPECT_FALSE(causal("dot|sparsemax|none|adaptive|bias|0"));
  EXPECT_TRUE(causal("dot|relu_norm|none|adaptive|bias|0"));
  for (const auto& mechanism : paper_space(Semantics::corrected, {true})) {
    EXPECT_TRUE(is_causal(mechanism)) << to_string(mechanism);
  }
}

TEST(VanillaMechanism, IsTheTransformer) {
  EXPECT_EQ(to_string(vanilla_mechanism(Semantics::corrected)), "dot|softmax|none|fixed|bias|0.1");
  EXPECT_EQ(to_string(vanilla_mechanism(Semantics::published)), "dot|softmax|none|sqrt_d|bias|0.1");
}

}  // namespace
}  // namespace nas
