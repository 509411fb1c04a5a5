#include "cli/describe.hpp"

#include "core/error.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/slots.hpp"
#include "paper_components.hpp"
#include "prelude.hpp"
#include "stand_in_plugins.hpp"

namespace nas {
namespace {

TEST(ListText, ListsOneKind) {
  const auto text = list_text("algorithms");
  EXPECT_THAT(text, ::testing::ContainsRegex("  stand_in_search +an algorithm with a rate\n"));
  EXPECT_THAT(text, HasSubstr("  evo_ga "));
  EXPECT_THAT(text, Not(HasSubstr("stand_in_corpus")));
}

TEST(ListText, ListsComponentsByGene) {
  const auto text = list_text("components");
  EXPECT_THAT(text, HasSubstr("  similarity     additive "));
  EXPECT_THAT(text, ::testing::ContainsRegex("  gating +none +h \\+ o: no gate\n"));
  // With the paper's word, which is read too.
  EXPECT_THAT(text, ::testing::ContainsRegex("  similarity +silu_dot +\\(multiplicative\\) +"));
  EXPECT_THAT(text, ::testing::ContainsRegex("  temperature +per_query +\\(adaptive\\) +"));
  EXPECT_LT(text.find("similarity "), text.find("normalization "));
}

TEST(ListText, ListsEverythingUnderHeadings) {
  const auto text = list_text("");
  std::size_t at = 0;
  for (const std::string heading : {"algorithms", "problems", "objectives", "components", "data",
                                    "tasks", "sections", "engines", "configurations"}) {
    const auto found = ("\n" + text).find("\n" + heading + "\n", at);
    ASSERT_NE(found, std::string::npos) << heading;
    at = found;
  }
  EXPECT_THAT(text, HasSubstr("stand_in_corpus"));
  EXPECT_THAT(text, HasSubstr("attention_search"));
}

TEST(ListText, ListsSectionsAndInstalledConfigurations) {
  EXPECT_THAT(list_text("sections"),
              ::testing::ContainsRegex("  training +how one candidate is trained\n"));
  const auto text = list_text("configurations");
  EXPECT_THAT(text, ::testing::ContainsRegex(
                        "  cmaes_sphere +CMA-ES on the sum of squares until it is below 1e-9\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("  compare_text +Which search algorithm [^\n]+\\?\n"));
  EXPECT_THAT(text, HasSubstr("Ageing evolution (Real et al. 2019): the oldest dies"));
  EXPECT_THAT(text, Not(::testing::ContainsRegex("  [a-z_]+ *\n"))) << "each says what it is for";
}

TEST(ListText, ListsEnginesByWhatTheirFilesSay) {
  EXPECT_THAT(list_text("engines"), ::testing::ContainsRegex("  dask +Dask distributed: [^\n]+\n"));
  const auto text = describe_text("dask");
  EXPECT_THAT(text, StartsWith("engine dask: Dask distributed: "));
  EXPECT_THAT(text, HasSubstr("scripts/workers RUN --slots N"));
}

TEST(ListText, AnUnknownKindNamesTheNearest) {
  EXPECT_EQ(message_of<InputError>([] { (void)list_text("component"); }),
            "list: unknown kind 'component'; did you mean components? Known: algorithms, problems, "
            "objectives, components, data, tasks, optimizers, sections, engines, configurations");
}

TEST(DescribeText, APlugInHasATableOfSettings) {
  EXPECT_EQ(describe_text("stand_in_search"),
            "algorithm stand_in_search: an algorithm with a rate\n"
            "  objectives   any number\n"
            "  encoding     integers: a categorical gene is an integer\n"
            "  population   at least 1; by default 12\n"
            "  asks         one candidate at a time: a single worker is busy after the initial "
            "population\n"
            "  noise        keeps the first value of a candidate\n"
            "  constraints  a candidate that violates one is rejected before training\n"
            "  resume       by replay, identical\n"
            "  setting   type    default   allowed                   effect  meaning\n"
            "  rate      number  0.25      in [0, 1)                 search  of change\n"
            "  schedule  text    constant  one of constant, falling  search  of the rate\n");
  EXPECT_THAT(describe_text("stand_in_corpus"), HasSubstr("  path     text     required  any "));
  EXPECT_THAT(describe_text("attention_search"), HasSubstr("problem attention_search: "));
}

TEST(DescribeText, AComponentHasFormulaCostAndLabels) {
  EXPECT_EQ(describe_text("additive"),
            "similarity additive: s = v.tanh(W_q q + W_k k + b)\n"
            "  paper's label  additive (corrected), additive (published)\n"
            "  voids          qk_norm\n"
            "  parameters     2112 per layer (width 128, 4 heads, 128 tokens)\n"
            "  cost           8.39 M FLOPs per layer and sequence\n"
            "  state          65536 bytes per layer and sequence, beside keys and values\n"
            "  fused          no: attention with it is computed by LibTorch's operations in every "
            "numerical mode, from the whole map\n"
            "  causal         yes\n"
            "  prefixes       do not change when tokens are appended\n");
  EXPECT_THAT(describe_text("relu_norm"), HasSubstr("voids          temperature\n"));
  const auto mean = describe_text("sequence_mean");
  EXPECT_THAT(mean, HasSubstr("paper's label  adaptive (published)\n"));
  EXPECT_THAT(mean, HasSubstr("fused          computed outside the attention kernel\n"));
  EXPECT_THAT(mean, HasSubstr("causal         no: it sees later tokens\n"));
  EXPECT_THAT(mean, HasSubstr("prefixes       change when tokens are appended\n"));
}

TEST(DescribeText, CostsOfMixersAndFeedForwardLayersAreThoseOfALayer) {
  components().add({.gene = "mixer", .key = "attn", .summary = "of attention"});
  for (const auto* key : {"attn", "swiglu"}) {
    const auto text = describe_text(key);
    EXPECT_THAT(text, HasSubstr("costs          of a layer, by its other genes, too"));
    EXPECT_THAT(text, Not(HasSubstr("parameters     0")));
  }
}

TEST(DescribeText, ALabelShowsWhatItComputesUnderEitherSemantics) {
  const auto text = describe_text("sparsemax");
  EXPECT_THAT(text, HasSubstr("normalization sparsemax: "));
  EXPECT_THAT(text, HasSubstr("sparsemax (corrected)\n"));
  EXPECT_THAT(text, HasSubstr("normalization topk_quarter: "));
  EXPECT_THAT(text, HasSubstr("sparsemax (published)\n"));
  EXPECT_THAT(describe_text("topk_quarter"), Not(HasSubstr("normalization sparsemax")));
}

TEST(DescribeText, ANameOfSeveralThingsShowsAll) {
  components().add({.gene = "gating", .key = "stand_in_search", .summary = "of the same name"});
  const auto text = describe_text("stand_in_search");
  EXPECT_THAT(text, HasSubstr("algorithm stand_in_search: "));
  EXPECT_THAT(text, HasSubstr("\n\ngating stand_in_search: of the same name\n"));
  EXPECT_THAT(text, HasSubstr("none: not in the paper"));
}

TEST(DescribeText, SectionsOfAConfiguration) {
  EXPECT_THAT(describe_text("training"), HasSubstr("section training: "));
  EXPECT_THAT(describe_text("training"), HasSubstr("  learning_rate "));
  EXPECT_THAT(describe_text("experiment"), HasSubstr("  semantics "));
  EXPECT_THAT(describe_text("algorithm"), HasSubstr("  informed_share "));
  EXPECT_THAT(describe_text("algorithm"), HasSubstr("stand_in_search"));
  EXPECT_THAT(describe_text("data"), HasSubstr("stand_in_corpus"));
}

TEST(DescribeText, SettingsByName) {
  const auto rate = describe_text("rate");
  EXPECT_THAT(rate, HasSubstr("settings\n  of "));
  EXPECT_THAT(rate, ::testing::ContainsRegex("algorithm stand_in_search +rate +number +0.25 +in "));
  EXPECT_THAT(describe_text("racing"), HasSubstr("section evaluation  racing_replicates "));
  EXPECT_THAT(describe_text("generations"), HasSubstr("algorithm evo_ga "));
  EXPECT_THAT(describe_text("informed"), HasSubstr("informed_share"));
  EXPECT_THAT(describe_text("keep_models"), HasSubstr("section evaluation"));
  for (const std::string limit : {"budget.target", "budget.stagnation"}) {
    EXPECT_THAT(describe_text(limit), HasSubstr("search ends, looked at after each batch"));
  }
  const auto space = describe_text("space");
  EXPECT_THAT(
      space,
      HasSubstr("section space: the options of each gene that are searched, or its range; "));
  for (const auto& slot : slots()) {
    EXPECT_EQ(space.find("\n  " + slot.name + " ") != std::string::npos, has_effect(slot))
        << slot.name;
  }
  EXPECT_THAT(space, HasSubstr("a list of fixed, learned, adaptive, "));
  EXPECT_THAT(space, HasSubstr("a list of true, false, none and qkv\n"));
  EXPECT_THAT(space, HasSubstr("unless listed: learned; of the whole model\n"));
  EXPECT_THAT(space, HasSubstr("unless listed: 64; of pattern window\n"));
  EXPECT_THAT(space, HasSubstr("a list of integers in [1, 64]\n"));
  EXPECT_THAT(space, HasSubstr("uniform: all layers have the same genes; cycle: "));
  EXPECT_THAT(space, ::testing::ContainsRegex("  match_parameters +true or false +false "));
  EXPECT_THAT(describe_text("constraints"), HasSubstr("NAME <= NUMBER"));
  EXPECT_EQ(message_of<InputError>([] { (void)describe_text("keep_model"); }),
            "describe: nothing is called 'keep_model'; did you mean keep_models?");
}

TEST(DescribeText, ASettingHasWhatItMustBe) {
  EXPECT_THAT(describe_text("evaluation.repeated"),
              ::testing::ContainsRegex("\nconditions\n  evaluation.repeated  must be reuse where "
                                       "evaluation.racing_replicates: races decide what is "));
  EXPECT_THAT(describe_text("in_flight"), HasSubstr("  algorithm.in_flight  must be 1 where "));
  EXPECT_THAT(describe_text("mechanisms"), HasSubstr("  mechanisms  must be left out: "));
  EXPECT_THAT(describe_text("fidelity"), HasSubstr("\nconditions\n  fidelity  must be left out "));
  EXPECT_THAT(describe_text("training.steps"), Not(HasSubstr("conditions")));
}

TEST(DescribeText, ASettingHasAPathAndAGeneAPage) {
  const auto steps = describe_text("training.steps");
  EXPECT_THAT(steps, ::testing::ContainsRegex("section training +steps +integer +5000 "));
  EXPECT_THAT(steps, Not(HasSubstr("section budget")));
  for (const std::string path : {"algorithm.rate", "stand_in_search.rate"}) {
    EXPECT_THAT(describe_text(path), ::testing::ContainsRegex("algorithm stand_in_search +rate "));
  }
  for (const std::string name : {"normalization", "space.normalization"}) {
    const auto text = describe_text(name);
    EXPECT_THAT(text, HasSubstr("gene of the section space\n  normalization  "));
    EXPECT_THAT(text, HasSubstr("a list of softmax, sparsemax"));
  }
  EXPECT_EQ(message_of<InputError>([] { (void)describe_text("training.stepz"); }),
            "describe: nothing is called 'training.stepz'; did you mean training.steps?");
  EXPECT_EQ(message_of<InputError>([] { (void)describe_text("space.normalisation"); }),
            "describe: nothing is called 'space.normalisation'; did you mean space.normalization?");
}

TEST(DescribeText, WhatIsNamedButNotBuiltIsSaidToBe) {
  const std::string unbuilt = "named by the space, but not built: no module computes it\n";
  EXPECT_EQ(describe_text("performer"),
            "layer performer: recurrent{feature=favor}: " + unbuilt +
                "  the published layer redraws its random features, and subtracts the maximum over "
                "all keys, later ones included\n");
  EXPECT_EQ(describe_text("mqa"), "layer mqa: attn{kv_heads=1}\n");
  EXPECT_THAT(describe_text("retnet"),
              HasSubstr("\n  the published layer has values twice as wide\n"));
  for (const auto& slot : slots()) {
    for (const auto& word : slot.choices) {
      if (is_built(slot, word) || !(slot.is_component() || slot.is_word())) continue;
      EXPECT_THAT(describe_text(word), HasSubstr(slot.name + " " + word + ": " + unbuilt));
    }
  }
}

TEST(DescribeText, AMechanismIsGivenItsName) {
  EXPECT_EQ(describe_text("sparsemax+output_gate"),
            "mechanism sparsemax+output_gate: dot|sparsemax|output_gate|fixed|bias|0.1, vanilla "
            "attention so changed, in 2 layers\n");
  EXPECT_EQ(describe_text("dot|softmax|none|fixed|bias|0.10"),
            "mechanism dot|softmax|none|fixed|bias|0.10: dot|softmax|none|fixed|bias|0.1\n");
  EXPECT_THAT(message_of<InputError>([] { (void)describe_text("rope+sofmax"); }),
              HasSubstr("nothing is called 'sofmax'; did you mean softmax? Known: "));
}

TEST(DescribeText, AnUnknownNameNamesTheNearest) {
  EXPECT_EQ(message_of<InputError>([] { (void)describe_text("trainig"); }),
            "describe: nothing is called 'trainig'; did you mean training?");
  EXPECT_EQ(message_of<InputError>([] { (void)describe_text("multiplicativ"); }),
            "describe: nothing is called 'multiplicativ'; did you mean multiplicative?");
  EXPECT_EQ(describe_text("RMS-norm"),
            "RMS-norm is written norm=rms: norms of the residual stream\n");
  EXPECT_EQ(message_of<InputError>([] { (void)describe_text("mine.so"); }),
            "describe: mine.so is a file of plug-ins; with --plugin mine.so list names what it "
            "registers, and describe KEY describes it");
  EXPECT_EQ(message_of<InputError>([] { (void)describe_text("gradient_descent_of_weights"); }),
            "describe: nothing is called 'gradient_descent_of_weights', list shows what there is");
}

}  // namespace
}  // namespace nas
