#include "core/optimizers.hpp"
#include "experiment_fixture.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/slots.hpp"
#include "prelude.hpp"
#include "study/reader/space.hpp"

namespace nas {
namespace {

TEST_F(ExperimentTest, GenesThatNothingElseOfTheSpaceUsesAreSaid) {
  const auto notes = [this](const std::string& space) {
    return load("space: {" + space + "}\n").notes;
  };
  const auto idle = [](const std::string& slot) {
    return Texts{"space." + slot +
                 ": its values make no difference beside anything else that the space offers"};
  };
  EXPECT_EQ(notes("window: [8, 16]"), idle("window")) << "every layer sees all";
  for (const auto& [slot, value] :
       {std::pair("window", "4"), {"rope_base", "500"}, {"decay_tau", "16.5"}, {"update", "add"}}) {
    EXPECT_EQ(notes(std::string(slot) + ": " + value), idle(slot));
  }
  EXPECT_EQ(notes("window: [8, 16], pattern: [full, window]"), Texts{});
  EXPECT_EQ(notes("window: [8, 16], pattern: window"), Texts{});
  EXPECT_EQ(notes("rope_fraction: {min: 0.25, max: 0.5}, position: none"), idle("rope_fraction"));
  EXPECT_EQ(notes("stack: cycle, period: 2, window: [8, 16]"), idle("window"));
  EXPECT_EQ(notes("mixer: none, ffn: gelu, norm: [layer, rms], similarity: [dot, cosine]")[0],
            idle("similarity")[0]);
  EXPECT_EQ(mistakes("space: {similarity: dot, normalization: softmax, gating: none, temperature: "
                     "fixed, bias: true, attention_dropout: 0, window: [8, 16]}\n"),
            "a.yaml:1:8: space: no gene that has an effect has more than one value");
}

TEST_F(ExperimentTest, TheDefaultSpaceIsThePapers) {
  const auto space = load("").space;
  for (const auto& gene : component_genes()) {
    EXPECT_EQ(space.gene(gene).options, paper_labels(gene));
  }
  EXPECT_EQ(space.gene("bias").options, (Texts{"bias", "no_bias"}));
  EXPECT_EQ(space.gene("attention_dropout").min, 0.0);
  EXPECT_EQ(space.gene("attention_dropout").max, 0.3);
  EXPECT_EQ(space.num_combinations(), 384);
}

TEST_F(ExperimentTest, SpaceOptionsAreLabelsOrKeysAsWritten) {
  const auto space = load(
                         "space:\n  similarity: [silu_dot, dot]\n  gating: [normed_highway]\n"
                         "  bias: [false, true]\n  attention_dropout: {min: 0.05, max: 0.1}\n")
                         .space;
  EXPECT_EQ(space.gene("similarity").options, (Texts{"silu_dot", "dot"}));
  EXPECT_EQ(space.gene("gating").options, Texts{"normed_highway"});
  EXPECT_EQ(space.gene("temperature").options, paper_labels("temperature"));
  EXPECT_EQ(space.gene("bias").options, (Texts{"no_bias", "bias"}));
  EXPECT_EQ(space.gene("attention_dropout").min, 0.05);
  EXPECT_EQ(space.gene("attention_dropout").max, 0.1);
}

TEST_F(ExperimentTest, SpaceShortForms) {
  const auto space = load("space: {gating: none, bias: true, attention_dropout: 0.1}\n").space;
  EXPECT_EQ(space.gene("gating").options, Texts{"none"});
  EXPECT_EQ(space.gene("bias").options, Texts{"bias"});
  EXPECT_EQ(space.gene("attention_dropout").min, 0.1);
  EXPECT_EQ(space.gene("attention_dropout").max, 0.1);
  EXPECT_EQ(load("space: {attention_dropout: {max: 0.2}}\n").space.gene("attention_dropout").max,
            0.2);
}

TEST_F(ExperimentTest, RangesOfNumbersMayBeLogarithmic) {
  const auto experiment = load("space: {attention_dropout: {min: 0.001, max: 0.2, log: True}}\n");
  const auto& gene = experiment.space.gene("attention_dropout");
  EXPECT_TRUE(gene.log);
  EXPECT_EQ(gene.decimals, -1);
  EXPECT_EQ(gene.digits, 3);
  const auto& resolved = experiment.resolved["space"]["attention_dropout"];
  auto before = experiment.resolved;
  EXPECT_EQ(before["space"]["attention_dropout"].erase("digits"), 1U);
  EXPECT_EQ(recorded_experiment(before).space.gene("attention_dropout").digits, 12);
  EXPECT_EQ(mistakes("space: {attention_dropout: {digits: 3}}\n"),
            "a.yaml:1:37: space.attention_dropout.digits = 3, must be left out where log is false");
  EXPECT_EQ(resolved["log"], true);
  EXPECT_TRUE(load("space: {attention_dropout: " + resolved.dump() + "}\n")
                  .space.gene("attention_dropout")
                  .log);
  EXPECT_FALSE(load("").resolved["space"]["attention_dropout"].contains("log"));
  EXPECT_EQ(mistakes("space:\n  attention_dropout: {max: 0.2, log: true}\n"),
            "a.yaml:2:22: space.attention_dropout = {max: 0.2, log: true}, min = 0, must be > 0 "
            "where log is true");
}

TEST_F(ExperimentTest, UnknownOptionsNameTheNearestLabelOrKey) {
  EXPECT_EQ(mistakes("space:\n  normalization: [softmax, sparsmax]\n"),
            "a.yaml:2:28: space.normalization = sparsmax, must be one of softmax, sparsemax, "
            "relu_norm, sigmoid, sigmoid_norm, topk_quarter; did you mean sparsemax?");
}

TEST_F(ExperimentTest, TwoNamesOfOneComponentAreRefused) {
  EXPECT_EQ(mistakes("space:\n  similarity: [multiplicative, silu_dot]\n"),
            "a.yaml:2:32: space.similarity = silu_dot, multiplicative and silu_dot are the same "
            "component");
  EXPECT_EQ(mistakes("space:\n  similarity: [dot, dot]\n"),
            "a.yaml:2:21: space.similarity = dot, is given twice");
  EXPECT_EQ(mistakes("space: {normalization: [sparsemax, topk_quarter]}\n"), "");
  EXPECT_EQ(
      mistakes("semantics: published\nspace:\n  normalization: [sparsemax, topk_quarter]\n"),
      "a.yaml:3:30: space.normalization = topk_quarter, sparsemax and topk_quarter are the same "
      "component");
}

TEST_F(ExperimentTest, MistakesOfTheSpace) {
  EXPECT_EQ(mistakes("space: 5\n"), "a.yaml:1:8: space = 5, must be a map of genes");
  const auto unknown = mistakes("space:\n  similarities: [dot]\n");
  EXPECT_THAT(unknown,
              StartsWith("a.yaml:2:3: space.similarities: unknown key; did you mean "
                         "similarity? Known: similarity, normalization, gating, temperature, bias, "
                         "attention_dropout, "));
  EXPECT_THAT(unknown, EndsWith(", stack, period, match_parameters, merge_section"));
  EXPECT_EQ(mistakes("space:\n  gating: []\n"),
            "a.yaml:2:11: space.gating = [], must be a list of at least one option");
  EXPECT_EQ(mistakes("space:\n  gating: [[none]]\n").substr(0, 46),
            "a.yaml:2:12: space.gating = [none], must be on");
  for (const std::string bias : {"[true, true]", "[]", "[maybe]", "['true']", "1"}) {
    EXPECT_NE(mistakes("space: {bias: " + bias + "}\n")
                  .find("must be a list of true, false or none, each once"),
              std::string::npos)
        << bias;
  }
}

TEST_F(ExperimentTest, OtherGenesAreSearchedWhereTheyAreListed) {
  const auto space = load(
                         "space:\n  norm: rms\n  position: [none, rope]\n  kv_heads: [1, 4]\n"
                         "  rope_base: {min: 100, max: 1e4}\n  bias: [none, true]\n  tied: 1\n")
                         .space;
  Texts names;
  for (const auto& gene : space.genes()) names.push_back(gene.name);
  EXPECT_EQ(names,
            (Texts{"similarity", "normalization", "gating", "temperature", "bias",
                   "attention_dropout", "norm", "tied", "kv_heads", "position", "rope_base"}));
  EXPECT_EQ(space.gene("norm").options, Texts{"rms"});
  EXPECT_EQ(space.gene("position").options, (Texts{"none", "rope"}));
  EXPECT_EQ(space.gene("kv_heads").options, (Texts{"1", "4"}));
  EXPECT_EQ(space.gene("rope_base").max, 1e4);
  EXPECT_EQ(space.gene("bias").options, (Texts{"none", "bias"}));
  EXPECT_EQ(space.gene("tied").options, Texts{"1"});
}

TEST_F(ExperimentTest, HalvesOfPairsAreLayers) {
  const auto read = load("space: {first: [attn, 'swa{window=8}'], second: [recurrent, ssd]}\n");
  EXPECT_EQ(read.space.gene("first").options, (Texts{"attn", "attn{pattern=window,window=8}"}));
  EXPECT_EQ(read.space.gene("second").options, (Texts{"recurrent", "recurrent{decay=scalar}"}));
  EXPECT_EQ(recorded_experiment(read.resolved).resolved, read.resolved);
  EXPECT_THAT(mistakes("space: {second: [ssd, 'recurrent{decay=scalar}']}\n"),
              HasSubstr("ssd and recurrent{decay=scalar} are the same"));
  EXPECT_THAT(mistakes("space: {second: [recurrent, attn]}\n"),
              HasSubstr("second = attn, must be a layer of mixer recurrent"));
}

TEST_F(ExperimentTest, AWideSpaceIsReadAgainFromItsRecord) {
  const std::string space =
      "space: {norm: rms, position: [none, rope], kv_heads: [1, 4], bias: [none, true], "
      "rope_base: {min: 100, max: 1000, decimals: 1}";
  for (const std::string stack : {"", ", stack: cycle, period: 2", ", stack: free"}) {
    const auto first = load(space + stack + "}\n");
    const auto again = recorded_experiment(first.resolved);
    EXPECT_EQ(again.resolved, first.resolved);
    EXPECT_EQ(first.resolved["space"]["kv_heads"], (nlohmann::json{1, 4}));
    EXPECT_EQ(first.resolved["space"]["bias"], (nlohmann::json{"none", true}));
    EXPECT_EQ(first.resolved["space"].contains("stack"), !stack.empty());
  }
}

TEST_F(ExperimentTest, LayersOfACycleHaveGenesOfTheirOwn) {
  const auto space = load(
                         "space: {stack: cycle, period: 2, norm: [layer, rms], pattern: [full, "
                         "window]}\n")
                         .space;
  Texts names;
  for (const auto& gene : space.genes()) names.push_back(gene.name);
  EXPECT_EQ(names,
            (Texts{"norm", "slot0.similarity", "slot0.normalization", "slot0.gating",
                   "slot0.temperature", "slot0.bias", "slot0.attention_dropout", "slot0.pattern",
                   "slot1.similarity", "slot1.normalization", "slot1.gating", "slot1.temperature",
                   "slot1.bias", "slot1.attention_dropout", "slot1.pattern"}));
  EXPECT_EQ(space.gene("slot1.pattern").options, (Texts{"full", "window"}));
}

TEST_F(ExperimentTest, AFreeStackIsACycleOfAllLayers) {
  const std::string genes = "pattern: [full, window], position: [none, rope]}\n";
  for (const int layers : {1, 3}) {
    const auto model = "model: {layers: " + std::to_string(layers) + "}\n";
    const auto free = load(model + "space: {stack: free, " + genes);
    const auto cycle = layers == 1 ? load(model + "space: {" + genes)
                                   : load(model + "space: {stack: cycle, period: 3, " + genes);
    EXPECT_EQ(free.resolved, cycle.resolved);
  }
  EXPECT_EQ(load("model: {layers: 40}\nspace: {stack: cycle, period: 40, " + genes).resolved,
            load("model: {layers: 40}\nspace: {stack: free, " + genes).resolved)
      << "as it is recorded";
}

TEST_F(ExperimentTest, MistakesOfAStack) {
  EXPECT_EQ(
      mistakes("space: {stack: cicle}\n"),
      "a.yaml:1:16: space.stack = cicle, must be one of uniform, cycle, free; did you mean cycle?");
  EXPECT_EQ(
      mistakes("space: {stack: cycle}\n"),
      "a.yaml:1:16: space.period: is missing, must be an integer in [2, 4096] where space.stack "
      "is cycle");
  EXPECT_EQ(mistakes("space: {period: 2}\n"),
            "a.yaml:1:17: space.period = 2, must be left out where space.stack is uniform");
  EXPECT_EQ(mistakes("space: {stack: free, period: 2}\n"),
            "a.yaml:1:30: space.period = 2, must be left out where space.stack is free");
  EXPECT_EQ(mistakes("space: {stack: cycle, period: 1}\n"),
            "a.yaml:1:31: space.period = 1, must be in [2, 4096]");
  EXPECT_EQ(mistakes("space: {stack: cycle, period: 3}\n"),
            "a.yaml:1:31: space.period = 3, must be at most model.layers = 2");
}

TEST_F(ExperimentTest, SizesOfWhatNoModuleComputesAreNotSearched) {
  for (const auto& [size, given] : std::map<std::string, std::string>{
           {"key_width", "[8, 16]"}, {"stride", "[4, 8]"}, {"cope_positions", "[4, 8]"}}) {
    EXPECT_THAT(mistakes("space: {" + size + ": " + given + "}\n"),
                HasSubstr("space." + size + " = " + given +
                          ", must be left out: no module computes what it is of"));
  }
}

TEST_F(ExperimentTest, SizesOfWhatNoModuleComputesMayBeRecorded) {
  auto resolved = load("space: {pattern: [full, window]}\n").resolved;
  resolved["space"]["stride"] = {4, 8};
  EXPECT_EQ(recorded_experiment(resolved).space.gene("stride").options, (Texts{"4", "8"}));
}

TEST_F(ExperimentTest, MistakesOfOtherGenes) {
  EXPECT_EQ(mistakes("space: {position: [none, roop]}\n"),
            "a.yaml:1:26: space.position = roop, must be one of none, rope; did you mean "
            "rope?");
  EXPECT_EQ(mistakes("space: {position: [none, cope]}\n"),
            "a.yaml:1:26: space.position = cope: no module computes it");
  EXPECT_EQ(mistakes("space: {maps: [single, difference]}\n"),
            "a.yaml:1:24: space.maps = difference: no module computes it");
  EXPECT_EQ(mistakes("space: {kv_heads: [4, 4]}\n"),
            "a.yaml:1:23: space.kv_heads = 4, is given twice");
  EXPECT_EQ(mistakes("space: {kv_heads: some}\n"),
            "a.yaml:1:19: space.kv_heads = some, must be an integer, got text");
  EXPECT_THAT(mistakes("space: {kv_heads: [-1]}\n"),
              StartsWith("a.yaml:1:20: space.kv_heads = -1, must be "));
  EXPECT_THAT(mistakes("space: {kv_heads: [1, 3]}\n"),
              StartsWith("a.yaml:1:19: space.kv_heads = 3: "))
      << "3 does not divide the model's 4 heads";
  EXPECT_THAT(mistakes("semantics: published\nspace: {norm: rms}\n"),
              StartsWith("a.yaml:2:15: space.norm = rms, must be left out: "));
  EXPECT_THAT(mistakes("semantics: published\nspace: {bias: [true, none]}\n"),
              StartsWith("a.yaml:2:22: space.bias = none, must be true or false: "));
}

TEST_F(ExperimentTest, ASpaceMayHoldWhatIsNoModel) {
  for (const std::string space :
       {"mixer: [attn, none], ffn: [swiglu, none]", "heads: [4, 2], kv_heads: [2, 4]",
        "position: [none, rope], rope_fraction: {min: 0.1, max: 1, decimals: 1}",
        "position: rope, rope_fraction: {min: 0.03, max: 0.5}, heads: [4, 32]"}) {
    EXPECT_EQ(mistakes("space: {" + space + "}\n"), "");
  }
  EXPECT_EQ(mistakes("model: {width: 96}\nspace: {kv_heads: [1, 3], heads: [4, 6]}\n"), "")
      << "3 divides 6";
  const std::string rotating = "space: {heads: [4, 64], position: rope, rope_fraction: 0.5";
  EXPECT_EQ(mistakes(rotating + "}\n"), "") << "additive scores are not rotated";
  EXPECT_EQ(mistakes(rotating + ", similarity: dot}\n"),
            "a.yaml:1:16: space.heads = 64: position = rope, must rotate an even number of "
            "entries, not 1 of 2");
}

TEST_F(ExperimentTest, WhereTheFrameAllowsNoVanillaModelABaselineIsNamed) {
  const std::string space = "model: {width: 96}\nspace: {kv_heads: 3, heads: [6, 12]}\n";
  EXPECT_EQ(mistakes(space),
            "a.yaml:2:8: baseline: is missing, and there is no vanilla transformer of what the "
            "space fixes: kv_heads = 3, must divide heads = 4");
  EXPECT_EQ(load(space + "baseline: 2*attn{heads=6,kv_heads=3}\n").baseline,
            "2*attn{heads=6,kv_heads=3}");
}

TEST_F(ExperimentTest, ModelsMatchInParametersWhereTheSpaceSaysSo) {
  EXPECT_FALSE(load("").match_parameters);
  EXPECT_FALSE(
      load("space: {match_parameters: false}\n").resolved["space"].contains("match_parameters"))
      << "records are as before there was such a setting";
  const auto matched = load("space: {match_parameters: true}\n");
  EXPECT_TRUE(matched.match_parameters);
  EXPECT_EQ(matched.space.num_combinations(), 384) << "it is no gene";
  EXPECT_TRUE(recorded_experiment(matched.resolved).match_parameters);
  EXPECT_EQ(differing_keys(load("").resolved, matched.resolved),
            Texts{"space.match_parameters: absent -> true"});
  EXPECT_THAT(mistakes("space: {match_parameters: 1}\n"),
              StartsWith("a.yaml:1:27: space.match_parameters = 1, must be true or "));
  EXPECT_THAT(mistakes("space: {match_parameters: true, norm: [layer, rms], ffn: none}\n"),
              StartsWith("a.yaml:1:8: space: match_parameters: no layer has a feed-"));
  EXPECT_THAT(mistakes("space: {match_parameters: true}\nbaseline: 2*attn+none\n"),
              HasSubstr("baseline: model '2*attn+none': match_parameters: no layer has"));
  const std::string wrong = "\nmodel: {width: 30}\n";
  EXPECT_EQ(mistakes("space: {match_parameters: true}" + wrong),
            mistakes("space: {match_parameters: false}" + wrong));
}

TEST_F(ExperimentTest, TheBaselineOfAWideSpaceIsVanillaInItsFrame) {
  const std::string space = "space: {norm: rms, position: [none, rope], bias: none, ffn: swiglu}\n";
  EXPECT_EQ(load(space).baseline, "model{norm=rms,bias=none}/2*attn+swiglu");
  EXPECT_EQ(load(space + "model: {layers: 3}\n").baseline,
            "model{norm=rms,bias=none}/3*attn+swiglu");
  EXPECT_EQ(load(space + "baseline: 2*attn{position=rope}\n").baseline, "2*attn{position=rope}");
  EXPECT_EQ(load("space: {gating: [none, highway], bias: [false]}\n").baseline,
            "dot|softmax|none|fixed|bias|0.1")
      << "the paper's genes alone";
  EXPECT_THAT(mistakes("baseline: 2*attn{position=cope}\n"), HasSubstr("cope"));
  EXPECT_EQ(mistakes("baseline: 4*attn\n"),
            "a.yaml:1:11: baseline: '4*attn' has 4 layers, must have model.layers = 2");
  EXPECT_EQ(mistakes("space: {kv_heads: 3}\n"),
            "a.yaml:1:8: space: kv_heads = 3, must divide heads = 4");
}

TEST_F(ExperimentTest, InformedModelsOfAWideSpaceLieInIt) {
  const std::string space = "space: {norm: rms, position: [none, rope], bias: none}\n";
  const auto informed = [&](const std::string& name) {
    return mistakes(space + "algorithm:\n  informed_share: 0.5\n  informed:\n    - " + name + "\n");
  };
  EXPECT_EQ(informed("model{norm=rms,bias=none}/2*attn{position=rope}"), "");
  EXPECT_EQ(mistakes("space: {kv_heads: [1, 4], pattern: [full, window], window: 8}\nalgorithm: "
                     "{informed_share: 0.5, informed: dot|softmax|none|fixed|bias|0.1}\n"),
            "")
      << "four heads of keys are as many as heads, and without a window its size is any";
  EXPECT_EQ(informed("model{bias=none}/2*attn"),
            "a.yaml:5:7: algorithm.informed = model{bias=none}/2*attn, norm must be one of rms, as "
            "the space is");
  EXPECT_THAT(informed("model{norm=rms,bias=none}/2*attn{kv_heads=1}"),
              HasSubstr("as one of the space it is model{norm=rms,bias=none}/2*attn"));
  EXPECT_THAT(informed("model{norm=rms,bias=none}/4*attn"),
              HasSubstr("has 4 layers, must have model.layers = 2"));
}

TEST_F(ExperimentTest, InformedCyclesLieInASpaceOfMoreLayers) {
  // What a layer does not use has any value, also where the name says a layer for two of the space.
  const std::string file =
      "space: {norm: rms, bias: none, attention_dropout: 0, stack: free, mixer: [attn, none]}\n"
      "model: {layers: 4}\nalgorithm:\n  informed_share: 0.5\n  informed:\n    - "
      "model{norm=rms,bias=none}";
  for (const std::string stack :
       {"/attn{dropout=0}/none/attn{dropout=0}/none", "/none/attn{dropout=0}/none/attn{dropout=0}",
        "/none/attn{dropout=0}/2*none", "/4*none"}) {
    EXPECT_EQ(mistakes(file + stack + "\n"), "") << stack;
  }
  EXPECT_THAT(mistakes(file + "/none/attn/none/attn\n"),
              HasSubstr("slot1.attention_dropout must be in [0, 0]"));
}

TEST_F(ExperimentTest, MistakesOfDropout) {
  EXPECT_EQ(mistakes("space:\n  attention_dropout: 1\n"),
            "a.yaml:2:22: space.attention_dropout = 1, must be in [0, 1)");
  EXPECT_EQ(mistakes("space:\n  attention_dropout: {min: -0.1, max: 1}\n"),
            "a.yaml:2:28: space.attention_dropout.min = -0.1, must be in [0, 1)\n"
            "a.yaml:2:39: space.attention_dropout.max = 1, must be in [0, 1)");
  EXPECT_EQ(mistakes("space:\n  attention_dropout: {min: 0.4}\n"),
            "a.yaml:2:22: space.attention_dropout = {min: 0.4}, min = 0.4 must be <= max = 0.3");
  EXPECT_EQ(
      mistakes("space:\n  attention_dropout: {min: 0.001, max: 0.004}\n"),
      "a.yaml:2:22: space.attention_dropout = {min: 0.001, max: 0.004}, min = 0.001 and max = "
      "0.004 are one value by decimals = 2: give more decimals, or one number");
  EXPECT_EQ(mistakes("space:\n  attention_dropout: [0, 0.3]\n"),
            "a.yaml:2:22: space.attention_dropout = [0, 0.3], must be a number or {min: ..., max: "
            "...}");
}

TEST_F(ExperimentTest, ASpaceMustHaveSomethingToSearch) {
  EXPECT_EQ(mistakes("space: {similarity: dot, normalization: softmax, gating: none, temperature: "
                     "fixed, bias: true, attention_dropout: 0}\n"),
            "a.yaml:1:8: space: every gene has one value only, at least one must vary");
  // In the user's file, not in that which it extends.
  write("base.yaml",
        "space: {similarity: dot, normalization: softmax, gating: none, temperature: fixed}\n");
  EXPECT_EQ(mistakes("extends: base.yaml\nspace:\n  bias: true\n  attention_dropout: 0\n"),
            "a.yaml:3:3: space: every gene has one value only, at least one must vary");
}

TEST_F(ExperimentTest, WhatTheSectionSaysOfTrainingIsOneCandidateInEitherSpelling) {
  const bool trains = !optimizers().keys().empty();  // without LibTorch there are none
  const std::string own = "model{learning_rate=0.00282842712475" +
                          std::string(trains ? ",optimizer=soap" : "") + "}/2*attn";
  for (const std::string optimizer : {"section", "adamw"}) {
    const auto text = "space: {training.learning_rate: {min: 1e-3, max: 8e-3, log: true}" +
                      (trains ? ", training.optimizer: [" + optimizer + ", soap]}\n" : "}\n") +
                      "training: {learning_rate: 0.003}\nmodel: {layers: 2}\n";
    const auto given = load(text);
    for (const auto& experiment : {given, recorded_experiment(given.resolved)}) {
      const auto frame = frame_of(experiment);
      for (const std::string name : {"", "optimizer=adamw", "learning_rate=0.003", "own"}) {
        if (!trains && name.starts_with("optimizer")) continue;
        const auto model = parse_model(name == "own" ? own : "model{" + name + "}/2*attn", frame);
        const auto in_space = genotype_in(experiment.space, model, frame);
        for (const auto& one : {model, architecture_of(in_space, frame)})
          EXPECT_EQ(candidate_of(one).name, name == "own" ? own : "dot|softmax|none|fixed|bias|0.1")
              << name;
      }
    }
    auto before = given.resolved;
    EXPECT_EQ(before["space"].erase("merge_section"), 1U);
    EXPECT_EQ(recorded_experiment(before).section, ModelGenes{});
  }
}

TEST_F(ExperimentTest, InformedMechanismsLieInTheSpace) {
  const std::string space =
      "space: {gating: [none, highway], bias: [true], attention_dropout: {max: 0.2}}\n";
  const auto informed = [&](const std::string& name) {
    return mistakes(space + "algorithm:\n  informed_share: 0.5\n  informed:\n    - " + name + "\n");
  };
  EXPECT_EQ(informed("dot|sigmoid|highway|learned|bias|0.2"), "");
  EXPECT_EQ(informed("dot|sigmoid_norm|highway|learned|bias|0"), "");
  EXPECT_EQ(informed("dot|softmax|output_gate|fixed|bias|0.1"),
            "a.yaml:5:7: algorithm.informed = dot|softmax|output_gate|fixed|bias|0.1, gating must "
            "be one of none, highway, as the space is");
  EXPECT_EQ(informed("dot|softmax|none|fixed|bias|0.3"),
            "a.yaml:5:7: algorithm.informed = dot|softmax|none|fixed|bias|0.3, attention_dropout "
            "must be in [0, 0.2], as the space is");
  EXPECT_EQ(load(space + "algorithm: {informed_share: 0.5, informed: [\"" +
                 "dot|softmax|none|fixed|bias|0.125\", \"dot|softmax|none|fixed|bias|0.1\"]}\n")
                .notes,
            Texts{"algorithm.informed = dot|softmax|none|fixed|bias|0.125 is taken as "
                  "dot|softmax|none|fixed|bias|0.13, by the decimals of the space"});
  EXPECT_EQ(informed("dot|softmax|none").substr(0, 61),
            "a.yaml:5:7: algorithm.informed: mechanism 'dot|softmax|none':");
}

}  // namespace
}  // namespace nas
