#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/search_space.hpp"
#include "unit/paper_components.hpp"

namespace nas {
namespace {

using ::testing::HasSubstr;

class GenotypeTest : public ::testing::TestWithParam<Semantics> {
 protected:
  static void SetUpTestSuite() { testing::register_paper_components(); }

  static SearchSpace paper_space(int decimals = -1) {
    std::vector<Gene> genes;
    for (const auto gene : kComponentGenes) {
      genes.push_back({.name = std::string(gene), .options = paper_labels(gene)});
    }
    genes.push_back({.name = "bias", .options = {"bias", "no_bias"}});
    genes.push_back({.name = "attention_dropout", .min = 0.0, .max = 0.3, .decimals = decimals});
    return SearchSpace(genes);
  }

  template <class Call>
  static std::string message_of(Call call) {
    try {
      call();
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
};

TEST_P(GenotypeTest, EncodeInvertsDecodeOverTheWholeSpace) {
  const auto space = paper_space();
  EXPECT_EQ(space.num_combinations(), 384);
  EXPECT_EQ(space.num_integers(), 5U);
  const auto [lower, upper] = space.bounds();
  EXPECT_EQ(lower, (std::vector<double>{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(upper, (std::vector<double>{0.3, 3, 3, 3, 2, 1}));
  std::set<std::string> names;
  for (int i = 0; i < 384; ++i) {
    const std::vector<double> x{0.1,
                                double(i % 4),
                                double(i / 4 % 4),
                                double(i / 16 % 4),
                                double(i / 64 % 3),
                                double(i / 192)};
    const auto genotype = space.decode(x);
    EXPECT_EQ(space.encode(genotype), x);
    names.insert(genotype.option("similarity") + genotype.option("normalization") +
                 genotype.option("gating") + genotype.option("temperature") +
                 genotype.option("bias"));
  }
  EXPECT_EQ(names.size(), 384U);
}

TEST_P(GenotypeTest, DecodesDefensively) {
  const auto space = paper_space(2);
  const auto genotype = space.decode({0.7, -3, 9, 1.4, 1.6, 0.2});
  EXPECT_EQ(genotype.real("attention_dropout"), 0.3);
  EXPECT_EQ(genotype.option("similarity"), "dot");
  EXPECT_EQ(genotype.option("normalization"), "sigmoid");
  EXPECT_EQ(genotype.option("gating"), "input_gate");
  EXPECT_EQ(genotype.option("temperature"), "adaptive");
  EXPECT_EQ(space.decode({0.0712345, 0, 0, 0, 0, 0}).real("attention_dropout"), 0.07);
  EXPECT_THROW((void)space.decode({0.1, 0, 0, 0, 0}), std::invalid_argument);
  EXPECT_THROW((void)space.decode({std::nan(""), 0, 0, 0, 0, 0}), std::invalid_argument);
}

TEST_P(GenotypeTest, EncodeNamesWhatIsNotInTheSpace) {
  const SearchSpace space({{.name = "normalization", .options = {"softmax", "sparsemax"}},
                           {.name = "dropout", .min = 0, .max = 0.3}});
  using Values = std::vector<std::pair<std::string, GeneValue>>;
  EXPECT_EQ(
      message_of([&] {
        (void)space.encode(
            Genotype(Values{{"normalization", std::string("sparsmax")}, {"dropout", 0.1}}));
      }),
      "gene normalization = sparsmax, must be one of softmax, sparsemax; did you mean sparsemax?");
  EXPECT_EQ(message_of([&] {
              (void)space.encode(
                  Genotype(Values{{"normalization", std::string("softmax")}, {"dropout", 0.4}}));
            }),
            "gene dropout = 0.4, must be in [0, 0.3]");
  EXPECT_THAT(message_of([] {
                SearchSpace({{.name = "a", .options = {"x", "x"}}});
              }),
              HasSubstr("x is given twice"));
}

TEST_P(GenotypeTest, Labels384AreFunctions320) {
  std::set<std::string> with_bias;
  std::set<std::string> without_bias;
  for (const auto& similarity : paper_labels("similarity")) {
    for (const auto& normalization : paper_labels("normalization")) {
      for (const auto& gating : paper_labels("gating")) {
        for (const auto& temperature : paper_labels("temperature")) {
          for (const bool bias : {true, false}) {
            const auto name = similarity + "|" + normalization + "|" + gating + "|" + temperature +
                              "|" + (bias ? "bias" : "no_bias") + "|0.1";
            const auto mechanism = parse_mechanism(name, GetParam());
            EXPECT_EQ(label(mechanism, GetParam()), name);
            EXPECT_EQ(parse_mechanism(to_string(mechanism), GetParam()), mechanism) << name;
            const auto form = canonical(mechanism, GetParam());
            EXPECT_EQ(canonical(form, GetParam()), form);
            (bias ? with_bias : without_bias).insert(to_string(form));
          }
        }
      }
    }
  }
  EXPECT_EQ(with_bias.size(), 160U);
  EXPECT_EQ(without_bias.size(), 160U);
}

TEST_P(GenotypeTest, BadNamesSayWhichFieldAndWhatIsAllowed) {
  const auto parse = [](const std::string& name) {
    return message_of([&] { (void)parse_mechanism(name, GetParam()); });
  };
  EXPECT_THAT(parse("dot|softmax|none|fixed|bias"), HasSubstr("5 fields, must be 6"));
  EXPECT_THAT(parse("dot|softmacks|none|fixed|bias|0.1"),
              HasSubstr("unknown normalization 'softmacks', known: "));
  EXPECT_THAT(parse("dot|softmacks|none|fixed|bias|0.1"), HasSubstr("did you mean softmax?"));
  EXPECT_THAT(parse("dot|softmax|none|fixed|maybe|0.1"),
              HasSubstr("bias = maybe, must be one of bias, no_bias"));
  for (const auto* dropout : {"1", "-0.1", "x", "", "0.1x", "nan"}) {
    EXPECT_THAT(parse(std::string("dot|softmax|none|fixed|bias|") + dropout),
                HasSubstr(std::string("dropout = ") + dropout + ", must be a number in [0, 1)"));
  }
}

INSTANTIATE_TEST_SUITE_P(Both, GenotypeTest,
                         ::testing::Values(Semantics::corrected, Semantics::published));

TEST_F(GenotypeTest, PublishedLabelsStandForWhatTheCodeComputes) {
  EXPECT_EQ(
      to_string(parse_mechanism("dot|sparsemax|highway|adaptive|bias|0.1", Semantics::published)),
      "dot|topk_quarter|normed_highway|sequence_mean|bias|0.1");
  EXPECT_EQ(to_string(parse_mechanism("multiplicative|sparsemax|highway|learned|no_bias|0",
                                      Semantics::corrected)),
            "silu_dot|sparsemax|highway|learned|no_bias|0");
  const auto leaky = parse_mechanism("dot|softmax|none|adaptive|bias|0.1", Semantics::published);
  EXPECT_FALSE(is_causal(leaky));
  EXPECT_TRUE(
      is_causal(parse_mechanism("dot|relu_norm|none|adaptive|bias|0.1", Semantics::published)));
  EXPECT_EQ(to_string(vanilla_mechanism(Semantics::published)), "dot|softmax|none|sqrt_d|bias|0.1");
}

}  // namespace
}  // namespace nas
