#include "study/experiment.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_fixture.hpp"
#include "core/installed.hpp"
#include "core/temporary_folder.hpp"
#include "genotype/slots.hpp"
#include "paper_components.hpp"
#include "places.hpp"
#include "stand_in_plugins.hpp"
#include "study/engines.hpp"

namespace nas {
namespace {

using Integer = std::int64_t;
using Integers = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

class ExperimentTest : public ConfigTest {
 protected:
  Experiment load(const std::string& text, const Texts& overrides = {}) const {
    return load_experiment(write("a.yaml", text), overrides);
  }
  static Texts objective_names(const Experiment& experiment) {
    Texts names;
    for (const auto& objective : experiment.objectives.objectives) names.push_back(objective.name);
    return names;
  }
  std::string mistakes(const std::string& text, const Texts& overrides = {}) const {
    return error_of([&] { (void)load(text, overrides); });
  }
};

/// An algorithm that takes any number of objectives.
const std::string kAny = "algorithm: stand_in_search\n";

TEST_F(ExperimentTest, AWarmUpIsShortenedWhereAnOverrideShortensTheTrainingRun) {
  const std::string file = "training: {steps: 1000, warmup_steps: 100}\n";
  const auto shortened = load(file, {"training.steps=50"});
  EXPECT_EQ(shortened.training.get<Integer>("warmup_steps"), 5);
  EXPECT_EQ(shortened.notes, Texts{"training.warmup_steps = 100 is shortened to 5, a tenth of "
                                   "training.steps = 50"});
  EXPECT_EQ(shortened.resolved["training"]["warmup_steps"], 5);
  const auto fits = load(file, {"training.steps=100"});
  EXPECT_EQ(fits.training.get<Integer>("warmup_steps"), 100);
  EXPECT_TRUE(fits.notes.empty());
  EXPECT_EQ(mistakes(file, {"training.steps=50", "training.warmup_steps=60"}),
            "command line: training.warmup_steps = 60, must be <= training.steps = 50");
}

TEST_F(ExperimentTest, ValidationsThatNeverComeAreSaid) {
  const std::string file =
      "training: {steps: 1000, checkpoints: [100, 500], early_stop_after: 400}\n";
  EXPECT_TRUE(load(file).notes.empty());
  EXPECT_EQ(load(file, {"training.steps=500"}).notes,
            Texts{"training.early_stop_after = 400 stops nobody: training.checkpoints has no step "
                  "from there on before the last one"});
  const auto cut = load(file, {"training.steps=300", "training.early_stop_after=100"});
  EXPECT_EQ(cut.notes, Texts{"training.checkpoints beyond training.steps = 300 are left out"});
  EXPECT_EQ(cut.training.get<std::vector<Integer>>("checkpoints"), std::vector<Integer>{100});
  EXPECT_TRUE(recorded_experiment(cut.resolved).notes.empty());
}

TEST_F(ExperimentTest, AnEmptySectionOfTheCommandLineIsNotOneOfDefaults) {
  for (const std::string section : {"retest", "fidelity", "baseline.tune", "training"}) {
    const auto refused = "command line: " + section + " is empty, must be a map of settings";
    EXPECT_EQ(mistakes("", {section + "="}), refused);
    EXPECT_EQ(mistakes("training: {steps: 9}\n", {section + "="}), refused);
  }
  EXPECT_EQ(mistakes("space: {bias: true}\n", {"space="}),
            "command line: space = (empty), must be a map of genes");
  EXPECT_EQ(load("retest:\n").retest.get<Integer>("replicates"), 5);
}

TEST_F(ExperimentTest, GenesThatNothingElseOfTheSpaceUsesAreSaid) {
  const auto notes = [this](const std::string& space) {
    return load("space: {" + space + "}\n").notes;
  };
  const auto idle = [](const std::string& slot) {
    return Texts{"space." + slot +
                 ": its values make no difference beside anything else that the space offers"};
  };
  EXPECT_EQ(notes("window: [8, 16]"), idle("window")) << "every layer sees all";
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

// Workers elsewhere.

TEST_F(ExperimentTest, AClusterChangesNothingOfARunButWhoMeasures) {
  const auto alone = load("");
  EXPECT_FALSE(has_cluster(alone));
  EXPECT_FALSE(alone.resolved.contains("cluster")) << "records are as before there was one";
  const auto elsewhere = load("cluster: {engine: dask, silence: 5}\n");
  EXPECT_TRUE(has_cluster(elsewhere));
  EXPECT_EQ(elsewhere.resolved["cluster"]["silence"], 5.0);
  EXPECT_EQ(elsewhere.resolved["cluster"]["grace"], 25.0);
  EXPECT_EQ(recorded_experiment(elsewhere.resolved).resolved, elsewhere.resolved);
  EXPECT_EQ(differing_keys(alone.resolved, elsewhere.resolved), Texts{});
  EXPECT_EQ(differing_keys(elsewhere.resolved, alone.resolved), Texts{});
  EXPECT_FALSE(has_cluster(load("cluster: {engine: dask}\n", {"cluster.engine=''"})));
}

TEST_F(ExperimentTest, TheDeviceOfAClusterIsThatOfTheRunsFirstResult) {
  const TemporaryFolder folder;
  Store store(folder.path() / "store.sqlite");
  const auto any = load("cluster: {engine: dask}\n");
  Evaluation evaluation;
  evaluation.id = "here";
  evaluation.measured = {{"device", "cpu"}};
  store.add({evaluation});
  evaluation.id = "of another run";
  evaluation.measured = {{"model", "slide rule"}, {"reused_from", "runs/x"}};
  store.add({evaluation});
  EXPECT_EQ(device_of_workers(any, store), "auto");
  evaluation.id = "of a worker";
  evaluation.measured = {{"model", "abacus"}};
  store.add({evaluation});
  EXPECT_EQ(device_of_workers(any, store), "abacus");
  EXPECT_EQ(device_of_workers(load("cluster: {engine: dask, device: mixed}\n"), store), "mixed");
}

TEST_F(ExperimentTest, AnEngineIsAFileOfTheProgramsOrACommand) {
  const auto command = engine_command(load("cluster: {engine: dask}\n"));
  ASSERT_EQ(command.size(), 3U);
  EXPECT_TRUE(command.back().ends_with("python/attnas/engines/dask.py")) << command.back();
  EXPECT_EQ(engine_command(load("cluster: {command: [my_engine, a b]}\n")),
            (Texts{"my_engine", "a b"}));
  EXPECT_THAT(
      mistakes("cluster: {engine: dusk}\n"),
      AllOf(testing::StartsWith("a.yaml:1:19: cluster.engine: unknown engine 'dusk', known: "),
            HasSubstr("did you mean dask?")));
  EXPECT_THAT(mistakes("cluster: {engine: dask, command: x}\n"),
              HasSubstr("cluster.command = [x], must be empty where cluster.engine is given"));
  EXPECT_THAT(mistakes("cluster: {engine: dask, grace: 0}\n"),
              HasSubstr("cluster.grace = 0, must be > 0"));
  EXPECT_THAT(mistakes("cluster: {silence: 0}\n"), HasSubstr("cluster.silence = 0, must be > 0"));
}

// A text of the user's own.

TEST_F(ExperimentTest, ATextInPlaceOfACorpusIsRefusedWithTheRightForm) {
  EXPECT_THAT(mistakes("data: {corpus: mytext.txt}\n"),
              testing::EndsWith("; for a text of your own: data: {corpus: text_file, path: "
                                "mytext.txt}"));
  EXPECT_THAT(mistakes("data: texts/mine\n"), testing::HasSubstr("path: texts/mine}"));
  EXPECT_THAT(mistakes("data: {corpus: brwn}\n"),
              testing::Not(testing::HasSubstr("a text of your own")));
}

TEST_F(ExperimentTest, ATextThatIsNotThereIsNamedWithItsPlace) {
  write("folder/a.txt", "text");
  EXPECT_EQ(mistakes("data:\n  corpus: text_file\n  path: " + path("folder") + "\n"),
            "a.yaml:3:9: data.path = folder, must be a text file, is a folder");
  EXPECT_EQ(mistakes("data: {corpus: text_file, path: /dev/zero}\n"),
            "a.yaml:1:33: data.path = /dev/zero, must be a text file, is a device");
  EXPECT_EQ(mistakes("data: {corpus: text_file, train: none.txt}\n"),
            "a.yaml:1:34: data.train = none.txt, must be a text file, there is none" +
                places_of_file("none.txt", path("a.yaml")));
  EXPECT_EQ(mistakes("data: {corpus: text_file, path: " + path("folder/a.txt") + "}\n"), "");
}

// What is read.

TEST_F(ExperimentTest, AnEmptyFileIsThePapersSearch) {
  const auto experiment = load("");
  EXPECT_EQ(experiment.name, "a");
  EXPECT_EQ(experiment.seed, 42U);
  EXPECT_EQ(experiment.semantics, Semantics::corrected);
  EXPECT_EQ(experiment.problem, "attention_search");
  EXPECT_EQ(objective_names(experiment), Texts{"perplexity"});
  EXPECT_EQ(experiment.corpus, "wikitext-2");
  EXPECT_EQ(experiment.algorithm, "evo_ga");
  EXPECT_EQ(experiment.population, 12);
  EXPECT_EQ(experiment.baseline, "dot|softmax|none|fixed|bias|0.1");
  EXPECT_EQ(experiment.model.get<Integer>("width"), 128);
  EXPECT_EQ(experiment.training.get<Integer>("steps"), 5000);
  EXPECT_EQ(experiment.algorithm_settings.get<Integer>("generations"), 10);
  EXPECT_EQ(experiment.data.get<Integer>("vocabulary"), 10000);
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

TEST_F(ExperimentTest, EverySectionIsRead) {
  const auto experiment = load(
      "name: mine\nseed: 7\nsemantics: published\nobjectives: [flops, perplexity]\n"
      "baseline: cosine|relu_norm|highway|learned|no_bias|0\nmodel: {width: 64}\n"
      "data: {corpus: stand_in_corpus, path: x}\ntraining: {steps: 10, checkpoints: [5]}\n"
      "evaluation: {workers: 3, device: 'cuda:1'}\n"
      "algorithm: {name: stand_in_search, population: 5, rate: 0.5}\n");
  EXPECT_EQ(experiment.name, "mine");
  EXPECT_EQ(experiment.seed, 7U);
  EXPECT_EQ(experiment.semantics, Semantics::published);
  EXPECT_EQ(objective_names(experiment), (Texts{"flops", "perplexity"}));
  EXPECT_EQ(experiment.model.get<Integer>("width"), 64);
  EXPECT_EQ(experiment.corpus, "stand_in_corpus");
  EXPECT_EQ(experiment.data.get<std::string>("path"), "x");
  EXPECT_EQ(experiment.data.get<Integer>("lines"), 100);
  EXPECT_EQ(experiment.training.get<Integers>("checkpoints"), Integers{5});
  EXPECT_EQ(experiment.evaluation.get<std::string>("workers"), "3");
  EXPECT_EQ(experiment.evaluation.get<std::string>("device"), "cuda:1");
  EXPECT_EQ(experiment.algorithm, "stand_in_search");
  EXPECT_EQ(experiment.population, 5);
  EXPECT_EQ(experiment.algorithm_settings.get<double>("rate"), 0.5);
}

TEST_F(ExperimentTest, OneTextStandsForAPlugInOrAList) {
  const auto experiment =
      load("problem: attention_search\nobjectives: flops\nalgorithm: stand_in_search\n");
  EXPECT_EQ(experiment.problem, "attention_search");
  EXPECT_EQ(objective_names(experiment), Texts{"flops"});
  EXPECT_EQ(experiment.algorithm, "stand_in_search");
}

TEST_F(ExperimentTest, AnotherAlgorithmKeepsThePopulation) {
  write("base.yaml", "algorithm: {population: 9, generations: 3}\n");
  const auto experiment = load("extends: base.yaml\nalgorithm: {name: stand_in_search}\n");
  EXPECT_EQ(experiment.population, 9);
  EXPECT_FALSE(experiment.algorithm_settings.contains("generations"));
}

TEST_F(ExperimentTest, AnotherCorpusInheritsNothing) {
  write("base.yaml", "data: {corpus: wikitext-2, vocabulary: 77}\n");
  const auto experiment = load("extends: base.yaml\ndata: {corpus: brown}\n");
  EXPECT_EQ(experiment.data.get<Integer>("vocabulary"), 10000);
}

TEST_F(ExperimentTest, CheckpointsAfterTheEndAreDropped) {
  const auto experiment = load("training: {checkpoints: [50, 100, 200]}", {"training.steps=100"});
  EXPECT_EQ(experiment.training.get<Integers>("checkpoints"), (Integers{50, 100}));
}

// The space.

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
  const auto& resolved = experiment.resolved["space"]["attention_dropout"];
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
  EXPECT_EQ(mistakes("space:\n  gating:\n    - none\n    - normd_highway\n"),
            "a.yaml:4:7: space.gating = normd_highway, must be one of none, input_gate, "
            "output_gate, highway, normed_highway; did you mean normed_highway?");
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
  EXPECT_THAT(unknown, testing::StartsWith("a.yaml:2:3: space.similarities: unknown key, known: "
                                           "similarity, normalization, gating, temperature, bias, "
                                           "attention_dropout, "));
  EXPECT_THAT(unknown,
              testing::EndsWith(", stack, period, match_parameters; did you mean similarity?"));
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

// Spaces of more than the paper's genes.

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

TEST_F(ExperimentTest, AWideSpaceIsReadAgainFromItsRecord) {
  const std::string space =
      "space: {norm: rms, position: [none, rope], kv_heads: [1, 4], bias: [none, true], "
      "rope_base: {min: 100, max: 1000, decimals: 1}";
  for (const std::string stack : {"", ", stack: cycle, period: 2"}) {
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

TEST_F(ExperimentTest, MistakesOfAStack) {
  EXPECT_EQ(mistakes("space: {stack: cicle}\n"),
            "a.yaml:1:16: space.stack = cicle, must be one of uniform, cycle; did you mean cycle?");
  EXPECT_EQ(
      mistakes("space: {stack: cycle}\n"),
      "a.yaml:1:16: space.period: is missing, must be an integer in [2, 16] where space.stack "
      "is cycle");
  EXPECT_EQ(mistakes("space: {period: 2}\n"),
            "a.yaml:1:17: space.period = 2, must be left out where space.stack is uniform");
  EXPECT_EQ(mistakes("space: {stack: cycle, period: 1}\n"),
            "a.yaml:1:31: space.period = 1, must be in [2, 16]");
  EXPECT_EQ(mistakes("space: {stack: cycle, period: 3}\n"),
            "a.yaml:1:31: space.period = 3, must be at most model.layers = 2");
}

TEST_F(ExperimentTest, SizesOfWhatNoModuleComputesAreNotSearched) {
  for (const auto& [size, given] : std::map<std::string, std::string>{
           {"key_width", "[8, 16]"}, {"stride", "[4, 8]"}, {"decay_tau", "{min: 1, max: 2}"}}) {
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
              testing::StartsWith("a.yaml:1:20: space.kv_heads = -1, must be "));
  EXPECT_THAT(mistakes("space: {kv_heads: [1, 3]}\n"),
              testing::StartsWith("a.yaml:1:19: space.kv_heads = 3: "))
      << "3 does not divide the model's 4 heads";
  EXPECT_THAT(mistakes("semantics: published\nspace: {norm: rms}\n"),
              testing::StartsWith("a.yaml:2:15: space.norm = rms, must be left out: "));
  EXPECT_THAT(mistakes("semantics: published\nspace: {bias: [true, none]}\n"),
              testing::StartsWith("a.yaml:2:22: space.bias = none, must be true or false: "));
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
              testing::StartsWith("a.yaml:1:27: space.match_parameters = 1, must be true or "));
  EXPECT_THAT(mistakes("space: {match_parameters: true, norm: [layer, rms], ffn: none}\n"),
              testing::StartsWith("a.yaml:1:8: space: match_parameters: no layer has a feed-"));
  EXPECT_THAT(mistakes("space: {match_parameters: true}\nbaseline: 2*attn+none\n"),
              testing::HasSubstr("baseline: model '2*attn+none': match_parameters: no layer has"));
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
  EXPECT_THAT(mistakes("baseline: 2*attn{position=cope}\n"), testing::HasSubstr("cope"));
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
              testing::HasSubstr("as one of the space it is model{norm=rms,bias=none}/2*attn"));
  EXPECT_THAT(informed("model{norm=rms,bias=none}/4*attn"),
              testing::HasSubstr("has 4 layers, must have model.layers = 2"));
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

// Mistakes.

TEST_F(ExperimentTest, EveryMistakeIsReportedWithItsPlace) {
  EXPECT_EQ(mistakes("seed: -1\nsemantic: corrected\nmodel:\n  widht: 64\n  heads: 0\n"
                     "training:\n  learning_rate: 0\n  schedule: cosin\n"
                     "algorithm:\n  crossover: 1.4\n  population: -1\n",
                     {"evaluation.threads=two"}),
            "a.yaml:1:7: seed = -1, must be >= 0\n"
            "a.yaml:2:1: semantic: unknown key, known: name, seed, semantics, mechanisms, "
            "controls, plugins, "
            "baseline, "
            "problem, objectives, constraints, space, model, data, training, evaluation, budget, "
            "fidelity, algorithm, retest, cluster; did you mean semantics?\n"
            "a.yaml:4:3: model.widht: unknown key, known: layers, width, heads, context, "
            "feed_forward, dropout; did you mean width?\n"
            "a.yaml:5:10: model.heads = 0, must be >= 1\n"
            "a.yaml:7:18: training.learning_rate = 0, must be > 0\n"
            "a.yaml:8:13: training.schedule = cosin, must be one of constant, cosine; did you mean "
            "cosine?\n"
            "a.yaml:10:14: algorithm.crossover = 1.4, must be in [0, 1]\n"
            "a.yaml:11:15: algorithm.population = -1, must be in [0, 1e+06]\n"
            "command line: evaluation.threads = two, must be an integer, got text");
}

TEST_F(ExperimentTest, UnknownPlugInsNameTheNearest) {
  EXPECT_EQ(mistakes("data:\n  corpus: wikitext2\n  anything: 1\n").substr(0, 59),
            "a.yaml:2:11: data.corpus: unknown corpus 'wikitext2', known");
  const auto text = mistakes("algorithm:\n  name: stand_in_serch\n  rate: 5\n  population: -1\n");
  EXPECT_EQ(text.substr(0, 63), "a.yaml:2:9: algorithm.name: unknown algorithm 'stand_in_serch',");
  EXPECT_NE(text.find("; did you mean stand_in_search?\n"
                      "a.yaml:4:15: algorithm.population = -1, must be in [0, 1e+06]"),
            std::string::npos)
      << text;
  EXPECT_EQ(mistakes("problem: atention_search\n").substr(0, 50),
            "a.yaml:1:10: problem.type: unknown problem 'atenti");
  EXPECT_EQ(mistakes("data: {corpus: [x]}\n"),
            "a.yaml:1:16: data.corpus = [x], must be text, got a list");
  EXPECT_EQ(mistakes("data: [x]\n"), "a.yaml:1:7: data = [x], must be a map of settings");
}

TEST_F(ExperimentTest, PlugInSettingsAreChecked) {
  EXPECT_EQ(mistakes("data: {corpus: stand_in_corpus}\n"),
            "a.yaml:1:7: data.path: is missing, must be text (folder of the text)");
  EXPECT_EQ(mistakes("algorithm: {name: stand_in_search, schedule: fallin}\n"),
            "a.yaml:1:46: algorithm.schedule = fallin, must be one of constant, falling; did you "
            "mean falling?");
  EXPECT_EQ(mistakes("algorithm: {name: stand_in_search, crossover: 0.5}\n"),
            "a.yaml:1:36: algorithm.crossover: unknown key, known: name, population, informed, "
            "informed_share, decomposition, weights, rate, schedule");
}

TEST_F(ExperimentTest, FilesLieBesideTheConfigurationThatNamesThem) {
  const auto text = write("texts/mine.txt", "a text");
  (void)write("base.yaml", "data: {corpus: stand_in_corpus, path: texts/mine.txt}\n");
  const auto path = [this](const std::string& name, const std::string& config,
                           const Texts& overrides = {}) {
    return load_experiment(write(name, config), overrides).data.get<std::string>("path");
  };
  EXPECT_EQ(path("a.yaml", "extends: base.yaml\n"), text);
  EXPECT_EQ(path("deeper/b.yaml", "extends: ../base.yaml\n"), text);
  EXPECT_EQ(path("c.yaml", "data: {corpus: stand_in_corpus, path: " + text + "}\n"), text);
  // Given on the command line, it counts from the current folder; what is nowhere stays as written.
  EXPECT_EQ(path("d.yaml", "extends: base.yaml\n", {"data.path=texts/mine.txt"}), "texts/mine.txt");
  EXPECT_EQ(path("e.yaml", "data: {corpus: stand_in_corpus, path: texts/other.txt}\n"),
            "texts/other.txt");
}

TEST_F(ExperimentTest, AFileWhosePathNoRecordCanHoldIsRefused) {
  (void)write("caf\xe9/mine.txt", "a text");
  const auto config =
      write("caf\xe9/a.yaml", "data: {corpus: stand_in_corpus, path: mine.txt, sise: 3}\n");
  EXPECT_THAT(
      error_of([&] { (void)load_experiment(config, {}); }),
      AllOf(HasSubstr("caf\xe9/a.yaml:1:39: data.path = mine.txt, found as caf\xe9/mine.txt, "
                      "must have a path in UTF-8"),
            HasSubstr("data.sise: unknown key")));
}

TEST_F(ExperimentTest, FilesThatComeWithTheProgramsAreFoundFromAnyFolder) {
  const auto config =
      write("a.yaml", "data: {corpus: stand_in_corpus, path: configs/smoke.yaml}\n");
  const auto before = std::filesystem::current_path();
  const auto path = [&config](const std::filesystem::path& folder) {
    std::filesystem::current_path(folder);
    return load_experiment(config, {}).data.get<std::string>("path");
  };
  const auto here = path(source_folder());
  const auto elsewhere = path(std::filesystem::path(config).parent_path());
  std::filesystem::current_path(before);
  EXPECT_EQ(here, "configs/smoke.yaml");
  EXPECT_EQ(elsewhere, source_folder() + "/configs/smoke.yaml");
}

TEST_F(ExperimentTest, AComparisonIsNoSearch) {
  EXPECT_EQ(mistakes("algorithms: [stand_in_search]\n"),
            "a.yaml:1:13: algorithms: a search has one, under the key algorithm; nas-compare "
            "compares several");
}

TEST_F(ExperimentTest, ObjectivesAreKnownOnes) {
  EXPECT_NE(mistakes("objectives: [perplexty]\n").find("did you mean perplexity?"),
            std::string::npos);
  EXPECT_THAT(mistakes("objectives: perplexity,flops\n"),
              testing::EndsWith("; several must be a list: [perplexity,flops]"));
  EXPECT_EQ(mistakes("objectives: []\n").substr(0, 60),
            "a.yaml:1:13: objectives = [], must be a list of at least one");
  EXPECT_EQ(mistakes("objectives:\n  - flops\n  - {name: flops, context: 64}\n" + kAny),
            "a.yaml:3:5: objectives: flops is given twice, must be distinguished by `as`");
  EXPECT_EQ(mistakes("objectives: [[flops]]\n").substr(0, 76),
            "a.yaml:1:14: objectives = [flops], every item must be a name or a map with a");
  EXPECT_EQ(mistakes("objectives: [{context: 5}]\n").substr(0, 36),
            "a.yaml:1:14: objectives = {context: ");
  EXPECT_EQ(mistakes("objectives: [{name: flops, contxt: 5}]\n").substr(0, 63),
            "a.yaml:1:28: objectives.flops.contxt: unknown key, known: name,");
}

TEST_F(ExperimentTest, ObjectivesHaveSettingsGoalsAndRanges) {
  const auto experiment = load(
      "objectives:\n  - {name: flops, context: 1024, as: long_flops, range: [1e6, 5e6]}\n"
      "  - {name: accuracy, range: [0.9, 0.1]}\n  - {name: parameters, goal: maximise}\n" +
      kAny);
  const auto& [flops, accuracy, parameters] =
      std::tie(experiment.objectives.objectives.at(0), experiment.objectives.objectives.at(1),
               experiment.objectives.objectives.at(2));
  EXPECT_EQ(flops.name, "long_flops");
  EXPECT_EQ(flops.key, "flops");
  EXPECT_EQ(flops.settings.get<Integer>("context"), 1024);
  EXPECT_EQ(flops.range->worst, 5e6);
  EXPECT_TRUE(accuracy.maximise);
  EXPECT_TRUE(parameters.maximise);
  EXPECT_FALSE(flops.maximise);
  EXPECT_EQ(mistakes("objectives: [{name: flops, range: [5, 1]}]\n"),
            "a.yaml:1:35: objectives.flops.range = [5, 1], must be [best, worst], the best smaller "
            "since it is minimised");
  EXPECT_EQ(mistakes("objectives: [{name: accuracy, range: [0, 1]}]\n"),
            "a.yaml:1:38: objectives.accuracy.range = [0, 1], must be [best, worst], the best "
            "larger since it is maximised");
  EXPECT_NE(mistakes("objectives: [{name: flops, range: [1]}]\n"), "");
  EXPECT_EQ(mistakes("objectives: [{name: flops, goal: max}]\n"),
            "a.yaml:1:34: objectives.flops.goal = max, must be one of natural, minimise, maximise; "
            "did you mean maximise?");
}

TEST_F(ExperimentTest, NoObjectiveHasTheNameOfAnotherQuantity) {
  const auto named = [this](const std::string& key, const std::string& as) {
    return mistakes("objectives: [{name: " + key + ", as: '" + as +
                    "'}]\nevaluation: {replicates: 2}\n");
  };
  for (const auto& key : objectives().keys()) {
    if (key == "peak_bytes") continue;  // of another test
    EXPECT_FALSE(is_recorded_name(key)) << key;
    for (const auto& other : objectives().keys()) {
      const auto prefix = "a.yaml:1:" + std::to_string(27 + key.size()) + ": objectives." + key +
                          ".as = " + other + ", must be another name";
      if (key == other) {
        EXPECT_EQ(named(key, other), "");
      } else {
        EXPECT_THAT(named(key, other), HasSubstr(prefix));
      }
    }
  }
  for (const std::string recorded : {"status", "id", "steps", "seed", "n", "nll", "peak_bytes",
                                     "worker", "test_nll", "similarity", "position", "x1"}) {
    EXPECT_THAT(named("flops", recorded),
                HasSubstr(".as = " + recorded + ", must be another name: runs record something"));
  }
  for (const std::string text :
       {"a,b", "a|b", "a=b", "a b", "a<=b", "1", "-a", "a.b", " ", "a\"b"}) {
    EXPECT_THAT(named("flops", text), HasSubstr("must begin with a letter")) << text;
  }
  EXPECT_EQ(named("flops", "größe-64_b"), "");
}

TEST_F(ExperimentTest, NoObjectiveHasTheNameOfAnothersColumn) {
  for (const std::string other :
       {"perplexity_mean", "perplexity_standard_error", "fitness_perplexity"}) {
    const auto item = "{name: flops, as: " + other + "}";
    EXPECT_THAT(mistakes("objectives: [perplexity, " + item + "]\n" + kAny),
                HasSubstr("perplexity and " + other + " have a column of one name"));
    EXPECT_THAT(mistakes("objectives: [" + item + ", perplexity]\n" + kAny),
                HasSubstr("have a column of one name, must be distinguished by `as`"));
    EXPECT_EQ(mistakes("objectives: [accuracy, " + item + "]\n" + kAny), "");
  }
}

TEST_F(ExperimentTest, ObjectivesOfAPlugInHaveNoNameThatRunsRecordAnythingElseUnder) {
  objectives().add({.key = "peak_bytes", .summary = "of a plug-in", .file = "mine.so"},
                   [](const Parameters&) { return Objective{}; });
  const std::string refusal =
      "the objective peak_bytes, of mine.so, must have another key: runs record something else";
  EXPECT_THAT(mistakes("objectives: [peak_bytes]\n"), HasSubstr(refusal));
  EXPECT_THAT(mistakes("constraints: [peak_bytes <= 1]\n"), HasSubstr(refusal));
}

TEST_F(ExperimentTest, ConstraintsAreBoundsOfObjectives) {
  const auto experiment = load(
      "objectives: [perplexity, {name: flops, context: 64, as: short_flops}]\n"
      "constraints: [short_flops <= 4e6, parameters >= 10]\n" +
      kAny);
  ASSERT_EQ(experiment.objectives.constraints.size(), 2U);
  EXPECT_EQ(experiment.objectives.constraints[0].quantity.settings.get<Integer>("context"), 64);
  EXPECT_EQ(experiment.objectives.constraints[1].text(), "parameters >= 10");
  EXPECT_FALSE(experiment.objectives.constraints[1].at_most);
  for (const std::string text :
       {"flops < 4", "flops <= many", "flops <=", "flops", "flops <= 4 6", "flops <= nan"}) {
    EXPECT_NE(
        mistakes("constraints: ['" + text + "']\n").find("must be of the form NAME <= NUMBER"),
        std::string::npos)
        << text;
  }
  EXPECT_NE(mistakes("constraints: [flps <= 4]\n").find("did you mean flops?"), std::string::npos);
  EXPECT_NE(mistakes("constraints: [divergence_rate <= 0.4]\n")
                .find("must be at least 2 for the constraint divergence_rate <= 0.4"),
            std::string::npos);
  EXPECT_EQ(mistakes("constraints: [divergence_rate <= 0.4]\nevaluation: {replicates: 2}\n"), "");
}

TEST_F(ExperimentTest, BoundsOfConstraintsMayHavePrefixesAndNeedNoBlanks) {
  const std::pair<const char*, double> bounds[] = {
      {"parameters<=1.7M", 1.7e6},     {"parameters <= 1.7 M", 1.7e6},
      {" parameters>=2k ", 2e3},       {"parameters <=3G", 3e9},
      {"parameters<= 1e3k", 1e6},      {"parameters<=.5T", 5e11},
      {"parameters<=+512Ki", 524288},  {"parameters<=2Mi", 2097152},
      {"parameters<=1Gi", 1073741824}, {"parameters<=4e6", 4e6}};
  for (const auto& [text, bound] : bounds) {
    const auto experiment = load("constraints: ['" + std::string(text) + "']\n" + kAny);
    ASSERT_EQ(experiment.objectives.constraints.size(), 1U);
    EXPECT_EQ(experiment.objectives.constraints[0].bound, bound) << text;
    EXPECT_EQ(
        mistakes("constraints: ['" + experiment.objectives.constraints[0].text() + "']\n" + kAny),
        "");
  }
  for (const std::string text :
       {"parameters<=1.7m", "parameters<=M", "parameters<=1MB", "parameters<=1Mk", "parameters<1M",
        "parameters=1M", "parameters=<1M", "<=1M", "parameters<=1e308T", "parameters<=1<=2"}) {
    EXPECT_THAT(mistakes("constraints: ['" + text + "']\n" + kAny),
                HasSubstr("must be of the form NAME <= NUMBER"))
        << text;
  }
}

TEST_F(ExperimentTest, StabilityNeedsReplicates) {
  EXPECT_EQ(mistakes("objectives: [perplexity, seed_sd]\n" + kAny),
            "a.yaml:1:1: evaluation.replicates = 1, must be at least 2 for the objective seed_sd");
  EXPECT_EQ(mistakes("objectives: [perplexity, seed_sd]\nevaluation: {replicates: 3}\n" + kAny),
            "");
}

TEST_F(ExperimentTest, RacingNeedsRoomAndReuseAndValuesOfSingleReplicates) {
  EXPECT_EQ(
      mistakes("evaluation: {replicates: 2, racing_replicates: 5, racing_elites: 1}\n" + kAny), "");
  for (const auto* most : {"3", "2"}) {
    EXPECT_EQ(mistakes("evaluation:\n  replicates: 3\n  racing_replicates: " + std::string(most) +
                       "\n" + kAny),
              "a.yaml:3:22: evaluation.racing_replicates = " + std::string(most) +
                  ", must be more than evaluation.replicates = 3, or 0 for no racing");
  }
  for (const auto* repeated : {"retrain", "replicate"}) {
    EXPECT_EQ(mistakes("evaluation: {racing_replicates: 5, repeated: " + std::string(repeated) +
                       "}\n" + kAny),
              "a.yaml:1:46: evaluation.repeated = " + std::string(repeated) +
                  ", must be reuse where evaluation.racing_replicates = 5: races decide what is "
                  "evaluated again");
  }
  EXPECT_EQ(mistakes("evaluation: {replicates: 3, racing_replicates: 5}\n"
                     "objectives: [perplexity, seed_sd]\n" +
                     kAny),
            "a.yaml:1:48: evaluation.racing_replicates = 5, must be 0 for the objective seed_sd, "
            "of which a single replicate has no value");
  EXPECT_EQ(mistakes("evaluation: {racing_confidence: 1}\n" + kAny),
            "a.yaml:1:33: evaluation.racing_confidence = 1, must be in (0, 1)");
  EXPECT_EQ(mistakes("evaluation: {racing_elites: 0}\n" + kAny),
            "a.yaml:1:29: evaluation.racing_elites = 0, must be >= 1");
}

TEST_F(ExperimentTest, WhatIsOutAtOnceGoesWithNeitherRacesNorTimingsNorBatches) {
  const std::string several = "algorithm: {name: regularized_evolution, in_flight: 4";
  EXPECT_EQ(mistakes(several + "}\n"), "");
  EXPECT_EQ(mistakes(several + ", order: arrival}\nevaluation: {replicates: 2}\n"), "");
  EXPECT_EQ(mistakes(several + "}\nevaluation: {racing_replicates: 5}\n"),
            "a.yaml:1:53: algorithm.in_flight = 4, must be 1 where evaluation.racing_replicates = "
            "5: a race is between candidates of a batch");
  EXPECT_EQ(mistakes("algorithm: {name: regularized_evolution}\n"
                     "evaluation: {racing_replicates: 5}\n"),
            "");
  EXPECT_EQ(mistakes(several + ", batch: 2}\n"),
            "a.yaml:1:63: algorithm.batch = 2, must be 1 where algorithm.in_flight > 1: nothing "
            "waits for a batch");
  objectives().add(
      {.key = "stand_in_timing", .summary = "seconds", .file = __FILE__}, [](const Parameters&) {
        return Objective{.unit = "s", .measured = [](const Subject&) { return nlohmann::json(); }};
      });
  const std::string timing = "objectives: [perplexity, stand_in_timing]\n";
  EXPECT_EQ(mistakes(timing + "algorithm: {name: nsga2_async}\n"),
            "a.yaml:2:12: algorithm.in_flight = 16, must be 1 for stand_in_timing, which is "
            "measured while nothing is trained");
  EXPECT_THAT(mistakes("algorithm: {name: nsga2_async, in_flight: 1}\n"
                       "objectives: [perplexity, flops]\nevaluation: {racing_replicates: 5}\n"),
              ::testing::HasSubstr("evaluation.racing_replicates = 5, must be 0 with nsga2_async"));
  EXPECT_NE(mistakes("algorithm: {name: simulated_annealing, in_flight: 4}\n").find("in_flight"),
            std::string::npos);
}

TEST_F(ExperimentTest, RungsCompareOneWholeTrainingRunOfEachCandidate) {
  using ::testing::HasSubstr;
  const std::string asha = "algorithm: {name: nsga2_async}\nobjectives: [perplexity, flops]\n";
  const std::string rungs = "fidelity: {rungs: [50, 150]}\n";
  const auto read = load(asha + rungs, {"training.steps=400"});
  EXPECT_EQ(read.resolved["fidelity"]["promote"], "asha");
  EXPECT_EQ(read.notes, Texts{});
  EXPECT_EQ(recorded_experiment(read.resolved).resolved, read.resolved);
  const auto without = load(asha, {"training.steps=400"});
  EXPECT_FALSE(without.resolved.contains("fidelity")) << "records are as before there was one";
  EXPECT_NE(differing_keys(without.resolved, read.resolved), Texts{});
  const auto more = load(asha + rungs, {"training.steps=400", "fidelity.checkpoint_space=5"});
  EXPECT_EQ(differing_keys(read.resolved, more.resolved), Texts{});
  EXPECT_EQ(load(asha + rungs, {"training.steps=601"}).notes,
            Texts{"fidelity: steps 150 and 601 are more than 4 times apart: who is best at the "
                  "first may not be at the second"});

  EXPECT_EQ(mistakes(asha + "fidelity: {rungs: [50], min: 20}\n"),
            "a.yaml:3:30: fidelity.min = 20, must be 0 where fidelity.rungs is given");
  EXPECT_THAT(mistakes(asha + "fidelity: {eta: 3}\n"),
              HasSubstr("fidelity.min = 0, must be at least 1 where fidelity.rungs is empty"));
  EXPECT_THAT(mistakes(asha + "fidelity: {min: 20, eta: 1}\n"),
              HasSubstr("fidelity.eta = 1, must be 0 or more than 1"));
  EXPECT_THAT(mistakes(asha + "fidelity: {rungs: [50, 50]}\n"), HasSubstr("must ascend"));
  for (const auto& [setting, why] : {std::pair("evaluation: {repeated: retrain}",
                                               "evaluation.repeated = retrain, must be reuse"),
                                     std::pair("evaluation: {replicates: 2, racing_replicates: 4}",
                                               "evaluation.replicates = 2, must be 1 with"),
                                     std::pair("training: {early_stop_after: 9}",
                                               "training.early_stop_after = 9, must be 0 with")}) {
    EXPECT_THAT(mistakes(asha + rungs + setting + "\n"), HasSubstr(why));
  }
  EXPECT_EQ(mistakes(asha + rungs + "evaluation: {replicates: 3}\n"), "");
  EXPECT_THAT(mistakes(asha + "fidelity: {min: 9, audit: 1.5}\n"),
              HasSubstr("fidelity.audit = 1.5, must be"));
  const auto audited = load(asha + rungs, {"training.steps=400", "fidelity.audit=0.5"});
  EXPECT_EQ(differing_keys(read.resolved, audited.resolved), Texts{});
  // Who asks in batches halves them; nobody else does.
  const std::string halving = "fidelity: {min: 9, promote: successive_halving}\n";
  EXPECT_EQ(mistakes("algorithm: random_search\n" + halving), "");
  EXPECT_EQ(mistakes("algorithm: random_search\nevaluation: {racing_replicates: 5}\n" + halving),
            "");
  EXPECT_THAT(mistakes(asha + halving), HasSubstr("fidelity.promote = successive_halving, must be "
                                                  "asha or pasha with algorithm.in_flight: "
                                                  "nothing waits"));
  EXPECT_EQ(mistakes("algorithm: random_search\nfidelity: {min: 9, promote: hyperband}\n"), "");
  EXPECT_EQ(mistakes(asha + "fidelity: {min: 9, promote: pasha, epsilon: [0.1, 0]}\n"), "");
  EXPECT_THAT(mistakes(asha + "fidelity: {min: 9, promote: pasha, epsilon: [0.1]}\n"),
              HasSubstr("fidelity.epsilon = [0.1], must be empty or have a number for each"));
  for (const std::string one : {"motpe", "simulated_annealing"}) {
    EXPECT_THAT(mistakes("algorithm: " + one + "\n" + halving),
                HasSubstr("must be asha, with algorithm.in_flight > 1, where candidates are asked "
                          "for one at a time"));
  }
  EXPECT_THAT(mistakes("algorithm: random_search\n" + rungs),
              HasSubstr("fidelity.promote = asha, must be successive_halving or hyperband unless"));
  EXPECT_THAT(mistakes(asha + "fidelity: {rungz: [5]}\n"), HasSubstr("did you mean rungs?"));
}

TEST_F(ExperimentTest, AlgorithmsRefuseWhatTheyCannotDo) {
  const std::string two = "objectives: [perplexity, flops]\n";
  EXPECT_THAT(mistakes(two + "algorithm: {name: moead, scale: 1.5}\n"),
              HasSubstr("algorithm.scale = 1.5, must be in [0, 1]"));
  for (const std::string pull : {"own_pull", "leader_pull"}) {
    EXPECT_THAT(mistakes(two + "algorithm: {name: nspso, " + pull + ": 0}\n"),
                HasSubstr("algorithm." + pull + " = 0"));
  }
  for (const std::string kind : {"uniform", "gaussian"}) {
    EXPECT_THAT(
        mistakes("algorithm: {name: sga, mutation_parameter: 2, mutation_kind: " + kind + "}\n"),
        HasSubstr("algorithm.mutation_parameter = 2, must be in (0, 1] for " + kind));
  }
  EXPECT_EQ(mistakes("algorithm: {name: sga, mutation_parameter: 2, mutation_kind: polynomial}\n"),
            "");
  EXPECT_THAT(mistakes("algorithm: {name: evo_ga, elite: 12}\n"),
              HasSubstr("algorithm.elite = 12, must be less than algorithm.population = 12"));
  EXPECT_EQ(mistakes("algorithm: {name: evo_ga, elite: 12, generations: 1}\n"), "");
  EXPECT_THAT(mistakes("algorithm: {name: simulated_annealing, last_temperature: 1}\n"),
              HasSubstr("must be 0 where algorithm.first_temperature is"));
  for (const std::string name :
       {"random_search", "local_search", "regularized_evolution", "motpe", "ihs"}) {
    EXPECT_THAT(mistakes("algorithm: {name: " + name + ", evaluations: 5, population: 6}\n"),
                HasSubstr("algorithm.evaluations = 5, must be at least algorithm.population = 6"));
    EXPECT_EQ(mistakes("algorithm: {name: " + name + ", evaluations: 5}\n"), "") << "is fitted";
  }
  EXPECT_THAT(mistakes(two + "algorithm: {name: nsga2_async, evaluations: 2}\n"),
              HasSubstr("algorithm.evaluations = 2, must be at least algorithm.population = 4"));
  EXPECT_THAT(mistakes("algorithm: {informed: [\"dot|softmax|none|fixed|bias|0.1\"]}\n"),
              HasSubstr("algorithm.informed_share = 0, must be greater than 0 where"));
}

TEST_F(ExperimentTest, AlgorithmsTakeTheNumberOfObjectivesTheyCan) {
  const auto one = mistakes("objectives: [perplexity, flops]\nalgorithm: {name: evo_ga}\n");
  EXPECT_EQ(
      one.substr(0, 95),
      "a.yaml:2:19: algorithm.name = evo_ga, minimises one objective, the experiment has 2; set "
      "algori");
  EXPECT_NE(one.find("nsga2"), std::string::npos);
  EXPECT_EQ(mistakes("algorithm: {name: nsga2}\n").substr(0, 94),
            "a.yaml:1:19: algorithm.name = nsga2, minimises two objectives or more, the experiment "
            "has 1; n");
  const auto ihs = mistakes("objectives: [perplexity, flops]\nalgorithm: {name: ihs}\n");
  EXPECT_NE(ihs.find("overwrites the population that it reads"), std::string::npos) << ihs;
}

TEST_F(ExperimentTest, DecompositionMakesOneObjectiveOfSeveral) {
  const std::string two = "objectives: [perplexity, flops]\n";
  const auto experiment = load(two +
                               "algorithm: {name: cmaes, decomposition: tchebycheff, weights: [3, "
                               "1]}\n");
  EXPECT_EQ(experiment.decomposition->method, "tchebycheff");
  EXPECT_EQ(experiment.decomposition->weights, (std::vector<double>{0.75, 0.25}));
  EXPECT_EQ(experiment.search_facts.num_objectives, 1U);
  EXPECT_EQ(load(two + "algorithm: {name: cmaes, decomposition: bi}\n").decomposition->weights,
            (std::vector<double>{0.5, 0.5}));
  EXPECT_NE(mistakes(two + "algorithm: {name: cmaes, decomposition: bi, weights: [1]}\n")
                .find("must be 2 numbers >= 0"),
            std::string::npos);
  EXPECT_NE(mistakes("algorithm: {name: cmaes, decomposition: bi}\n")
                .find("must be none for one objective"),
            std::string::npos);
  EXPECT_NE(mistakes(two + "algorithm: {name: nsga2, decomposition: bi}\n")
                .find("must be none: nsga2 needs several objectives"),
            std::string::npos);
  EXPECT_NE(mistakes(two + "algorithm: {name: nsga2, weights: [1, 2]}\n")
                .find("must be empty where algorithm.decomposition is none"),
            std::string::npos);
}

TEST_F(ExperimentTest, SettingsAreFittedToTheSearch) {
  const std::string two = "objectives: [perplexity, flops]\n";
  const auto nsga2 = load(two + "algorithm: nsga2\n");
  EXPECT_EQ(nsga2.population, 12);
  EXPECT_DOUBLE_EQ(nsga2.algorithm_settings.get<double>("mutation"), 1.0 / 6);
  EXPECT_EQ(nsga2.resolved["algorithm"]["mutation"], 1.0 / 6);
  const auto moead = load(two + "algorithm: moead\n");
  EXPECT_EQ(moead.algorithm_settings.get<Integer>("neighbours"), 11);
  EXPECT_EQ(moead.algorithm_settings.get<std::string>("weight_generation"), "grid");
  EXPECT_EQ(load(two + "algorithm: maco\n").algorithm_settings.get<Integer>("kernel"), 12);
  const auto cmaes = load("algorithm: cmaes\n");
  EXPECT_EQ(cmaes.search_facts.dimension, 18U);
  EXPECT_EQ(cmaes.population, 12);  // 4 + 3 ln 18
}

TEST_F(ExperimentTest, WhatDoesNotFitIsRefused) {
  const std::string two = "objectives: [perplexity, flops]\n";
  EXPECT_EQ(mistakes(two + "algorithm: {name: nsga2, population: 10}\n"),
            "a.yaml:2:38: algorithm.population = 10, must be at least 8 and a multiple of 4 for "
            "nsga2");
  EXPECT_EQ(mistakes(two + "algorithm: {name: nsga2, population: 4}\n"),
            "a.yaml:2:38: algorithm.population = 4, must be at least 8 and a multiple of 4 for "
            "nsga2");
  EXPECT_EQ(mistakes(two + "algorithm: {name: maco, generations: 20, threshold: 50}\n"),
            "a.yaml:2:53: algorithm.threshold = 50, must be at most 19, the generations after the "
            "initial population");
  for (const std::string neighbours : {"1", "24"}) {
    EXPECT_THAT(
        mistakes("algorithm: {name: pso, population: 12, neighbours: " + neighbours + "}\n"),
        HasSubstr("algorithm.neighbours = " + neighbours + ", must be in [2, 23] in a ring"));
    EXPECT_EQ(mistakes("algorithm: {name: pso, population: 12, neighbourhood: 4, neighbours: " +
                       neighbours + "}\n"),
              "");
  }
  EXPECT_EQ(mistakes("algorithm: {population: 4, parents: 5}\n"),
            "a.yaml:1:37: algorithm.parents = 5, must be at most algorithm.population = 4");
  EXPECT_EQ(mistakes(two + "algorithm: {name: moead, neighbours: 12}\n"),
            "a.yaml:2:38: algorithm.neighbours = 12, must be in [2, 11], at most "
            "algorithm.population - 1");
  EXPECT_EQ(mistakes("objectives: [perplexity, flops, parameters]\n"
                     "algorithm: {name: moead, weight_generation: grid}\n"),
            "a.yaml:2:45: algorithm.weight_generation = grid, must be another, or "
            "algorithm.population 10 or 15: a grid of 3 objectives has so many weights");
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

TEST_F(ExperimentTest, TargetsAreNumbersForOneObjective) {
  EXPECT_EQ(load("budget: {target: 80.5}\n").budget.get<std::string>("target"), "80.5");
  EXPECT_EQ(mistakes("budget: {target: low}\n"),
            "a.yaml:1:18: budget.target = low, must be a number or empty");
  EXPECT_EQ(mistakes("objectives: [perplexity, flops]\nbudget: {target: 3}\n" + kAny),
            "a.yaml:2:18: budget.target = 3, must be empty where there are several objectives");
}

TEST_F(ExperimentTest, TheNameIsOneOfAFolder) {
  EXPECT_EQ(
      mistakes("name: a/b\n"),
      "a.yaml:1:7: name = a/b, must be the name of a folder: no '/', no '.' in front, all of it "
      "printable");
  for (const auto* name : {"..", R"("x\e]0;owned\a")", R"("a\nb")", R"("a\x9b2J")"}) {
    EXPECT_THAT(mistakes("name: " + std::string(name) + "\n"), HasSubstr("all of it printable"))
        << name;
  }
}

TEST_F(ExperimentTest, HeadsDivideTheWidth) {
  EXPECT_EQ(mistakes("model:\n  width: 50\n  heads: 4\n"),
            "a.yaml:2:10: model.width = 50, must be a multiple of model.heads = 4");
  EXPECT_EQ(mistakes("", {"model.heads=3"}).substr(0, 66),
            "command line: model.width = 128, must be a multiple of model.heads");
}

TEST_F(ExperimentTest, TheWarmUpEndsWithinTheTrainingRun) {
  EXPECT_EQ(mistakes("training: {steps: 10, warmup_steps: 11}\n"),
            "a.yaml:1:37: training.warmup_steps = 11, must be <= training.steps = 10");
  EXPECT_EQ(mistakes("training: {steps: 10, warmup_steps: 10}\n"), "");
}

TEST_F(ExperimentTest, SectionsWithMistakesAreNotComparedWithThemselves) {
  EXPECT_EQ(mistakes("model:\n  width: wide\n  heads: 7\n"),
            "a.yaml:2:10: model.width = wide, must be an integer, got text");
}

TEST_F(ExperimentTest, WorkersAndArrayAreAutoOrANumber) {
  for (const std::string key : {"workers", "array"}) {
    EXPECT_EQ(mistakes("evaluation: {" + key + ": auto}\n"), "");
    EXPECT_EQ(mistakes("evaluation: {" + key + ": 16}\n"), "");
    for (const std::string count : {"0", "-1", "1.5", "many", "10000", "''"}) {
      const auto shown = count == "''" ? "" : count;
      EXPECT_EQ(mistakes("evaluation: {" + key + ": " + count + "}\n"),
                "a.yaml:1:" + std::to_string(16 + key.size()) + ": evaluation." + key + " = " +
                    shown + ", must be auto or an integer in [1, 9999]");
    }
  }
}

TEST_F(ExperimentTest, CountsThatNobodyMeansAreRefused) {
  const std::vector<std::pair<std::string, std::string>> bounds{
      {"model.layers", "[1, 4096]"},           {"evaluation.threads", "[1, 9999]"},
      {"evaluation.replicates", "[1, 10000]"}, {"evaluation.racing_replicates", "[0, 10000]"},
      {"evaluation.retry_lost", "[0, 1e+06]"}, {"retest.replicates", "[0, 10000]"}};
  for (const auto& [key, bound] : bounds) {
    for (const std::string count : {"1000000000", "4294967297"}) {
      EXPECT_EQ(mistakes("seed: 1\n", {key + "=" + count}),
                "command line: " + key + " = " + count + ", must be in " + bound);
    }
  }
}

TEST_F(ExperimentTest, WhatOnlyALoneTrainingRunHasRefusesArrays) {
  const std::string memory = kAny + "objectives: [perplexity, peak_memory]\n";
  const std::string seconds = "constraints: [train_seconds <= 9]\n";
  for (const auto& wanted : {memory, seconds}) {
    EXPECT_EQ(mistakes(wanted + "evaluation: {array: 1}\n"), "");
    EXPECT_EQ(mistakes(wanted + "evaluation: {array: auto}\n"), "");
  }
  EXPECT_EQ(mistakes(memory + "evaluation: {array: 4}\n"),
            "a.yaml:3:21: evaluation.array = 4, must be auto or 1 for peak_memory, which only a "
            "training run by itself has");
  EXPECT_EQ(mistakes(seconds + "evaluation: {array: 4}\n"),
            "a.yaml:2:21: evaluation.array = 4, must be auto or 1 for train_seconds, which only a "
            "training run by itself has");
}

TEST_F(ExperimentTest, DevicesHaveAForm) {
  for (const std::string device :
       {"auto", "cpu", "cuda", "cuda:0", "cuda:12", "cuda:1,cuda:0", "cpu,cpu"}) {
    EXPECT_EQ(mistakes("evaluation: {device: '" + device + "'}\n"), "");
  }
  EXPECT_EQ(mistakes("evaluation: {device: cud}\n"),
            "a.yaml:1:22: evaluation.device = cud, must be one of auto, cpu, cuda, cuda:N, or "
            "several: cuda:0,cuda:1; did you mean cuda?");
  for (const std::string devices : {"cuda:0,cpu", "auto,auto", "cpu,auto"}) {
    EXPECT_EQ(mistakes("evaluation: {device: '" + devices + "'}\n"),
              "a.yaml:1:22: evaluation.device = " + devices +
                  ", must be devices of one kind, as cuda:0,cuda:1: results differ between kinds");
  }
  for (const std::string device :
       {"cuda:", "cuda:x", "cpu:0", "gpu", "", "cpu,", "cuda:0, cuda:1"}) {
    EXPECT_NE(mistakes("evaluation: {device: '" + device + "'}\n"), "") << device;
  }
}

TEST_F(ExperimentTest, TheBaselineIsAMechanism) {
  EXPECT_EQ(mistakes("baseline: dot|sofmax|none|fixed|bias|0.1\n"),
            "a.yaml:1:11: baseline: mechanism 'dot|sofmax|none|fixed|bias|0.1': unknown "
            "normalization 'sofmax', known: relu_norm, sigmoid_norm, softmax, sparsemax, "
            "topk_quarter; did you mean softmax?");
}

TEST_F(ExperimentTest, ABaselineIsATextOrAMapWithItsTuning) {
  EXPECT_FALSE(load("").tuning);
  EXPECT_FALSE(load("baseline: {tune: false}\n").tuning);
  const auto experiment = load(
      "baseline: {mechanism: dot|softmax|none|fixed|bias|0, tune: {trials: 4, winners: 2, "
      "learning_rate: [1e-3, 1e-2], weight_decay: 0.5}}\n");
  EXPECT_EQ(experiment.baseline, "dot|softmax|none|fixed|bias|0");
  EXPECT_EQ(experiment.tuning->get<Integer>("trials"), 4);
  EXPECT_EQ(experiment.tuning->get<Integer>("winners"), 2);
  EXPECT_EQ(experiment.tuning->get<std::vector<double>>("weight_decay"), std::vector<double>{0.5});
  EXPECT_EQ(experiment.resolved["baseline"]["tune"]["trials"], 4);
  EXPECT_EQ(load(experiment.resolved.dump()).resolved, experiment.resolved);
  // Tuning laid over a text keeps its mechanism, a mechanism laid over tuning keeps that.
  write("base.yaml", "baseline: dot|softmax|none|fixed|bias|0\n");
  const auto over = load("extends: base.yaml\nbaseline: {tune: {trials: 3}}\n",
                         {"baseline=cosine|softmax|none|fixed|bias|0"});
  EXPECT_EQ(over.baseline, "cosine|softmax|none|fixed|bias|0");
  EXPECT_EQ(over.tuning->get<Integer>("trials"), 3);
  EXPECT_EQ(load("extends: base.yaml\nbaseline: {tune: }\n").baseline,
            "dot|softmax|none|fixed|bias|0");
}

TEST_F(ExperimentTest, MistakesOfTuningHaveTheirPlace) {
  EXPECT_THAT(mistakes("baseline:\n  mechanism: dot|sofmax\n  tun: {}\n"),
              testing::HasSubstr("a.yaml:2:14: baseline: mechanism 'dot|sofmax': 2 f"));
  EXPECT_NE(mistakes("baseline:\n  tun: {}\n").find("did you mean tune?"), std::string::npos);
  EXPECT_EQ(mistakes("baseline:\n  tune: yes\n"),
            "a.yaml:2:9: baseline.tune = yes, must be a map of settings, or false");
  EXPECT_EQ(mistakes("baseline:\n  tune:\n    trials: -1\n    learning_rate: [0.1, 0.01]\n"
                     "    weight_decay: []\n    winner: 1\n"),
            "a.yaml:3:13: baseline.tune.trials = -1, must be in [0, 1e+06]\n"
            "a.yaml:4:20: baseline.tune.learning_rate = [0.1, 0.01], must be [lowest, highest]\n"
            "a.yaml:5:19: baseline.tune.weight_decay = [], must have at least one choice\n"
            "a.yaml:6:5: baseline.tune.winner: unknown key, known: trials, learning_rate, "
            "weight_decay, winners; did you mean winners?");
}

TEST_F(ExperimentTest, ARetestIsThereWhereItsSectionIs) {
  EXPECT_EQ(load("").retest.get<Integer>("replicates"), 0);
  EXPECT_EQ(load("retest: {top: 2}\n").retest.get<Integer>("replicates"), 5);
  EXPECT_EQ(load("retest: {replicates: 0}\n").resolved["retest"].dump(),
            R"({"confidence":0.95,"replicates":0,"top":3})");
  EXPECT_EQ(mistakes("retest: {replicates: -1, top: 0, confidence: 1}\n"),
            "a.yaml:1:22: retest.replicates = -1, must be in [0, 10000]\n"
            "a.yaml:1:31: retest.top = 0, must be in [1, 1e+06]\n"
            "a.yaml:1:46: retest.confidence = 1, must be in (0, 1)");
}

TEST_F(ExperimentTest, ListedMechanismsAreTrainedInPlaceOfASearch) {
  const auto experiment = load(
      "mechanisms: [dot|sparsemax|none|fixed|bias|0.1, 2*mqa]\n"
      "objectives: [perplexity, accuracy]\n"  // more than the default algorithm takes
      "space: {similarity: [dot], normalization: [softmax], gating: [none], temperature: [fixed], "
      "bias: [true], attention_dropout: 0.1}\n"
      "training: {early_stop_after: 50}\nbaseline: {tune: {trials: 3}}\n");
  EXPECT_EQ(experiment.mechanisms,
            (Texts{"dot|sparsemax|none|fixed|bias|0.1", "2*attn{kv_heads=1}"}))
      << "by canonical name, whether in the space or not";
  EXPECT_EQ(experiment.retest.get<Integer>("replicates"), 5);
  EXPECT_EQ(experiment.training.get<Integer>("early_stop_after"), 0);
  EXPECT_TRUE(experiment.training.get<bool>("score_test"));
  EXPECT_FALSE(experiment.tuning);
  EXPECT_EQ(experiment.notes,
            (Texts{"baseline.tune is left out, since mechanisms are listed",
                   "training.early_stop_after is left out, since mechanisms are listed"}));
  EXPECT_EQ(load("mechanisms: 2*mqa\nevaluation: {replicates: 2}\nbudget: {asks: 9}\n",
                 {"budget.asks=10", "evaluation.replicates=3", "space.bias=true"})
                .notes,
            (Texts{"budget is left out, since mechanisms are listed",
                   "evaluation.replicates is left out, since mechanisms are listed"}))
      << "of what the command line says";
  const auto& resolved = experiment.resolved;
  EXPECT_EQ(resolved["mechanisms"], experiment.mechanisms);
  for (const auto* section : {"algorithm", "budget", "space"}) {
    EXPECT_FALSE(resolved.contains(section)) << section;
  }
  EXPECT_FALSE(resolved["evaluation"].contains("replicates"));
  EXPECT_EQ(load(resolved.dump()).resolved, resolved);
  EXPECT_EQ(load("mechanisms: 2*mqa\nretest: {replicates: 3}\n").retest.get<Integer>("replicates"),
            3);
  EXPECT_FALSE(load("").resolved.contains("mechanisms"));
}

TEST_F(ExperimentTest, TheRecordOfListedMechanismsSaysThatTheyMatchInParameters) {
  const auto matched = load("mechanisms: 2*mqa\nspace: {match_parameters: true, gating: none}\n");
  EXPECT_EQ(matched.resolved["space"].dump(), R"({"match_parameters":true})");
  const auto recorded = recorded_experiment(matched.resolved);
  EXPECT_TRUE(recorded.match_parameters);
  EXPECT_EQ(recorded.resolved, matched.resolved);
}

TEST_F(ExperimentTest, ListedMechanismsAreModelsEachOnceAndNotTheBaseline) {
  EXPECT_THAT(mistakes("mechanisms:\n  - dot|sofmax|none|fixed|bias|0.1\n  - 2*attn{kv=1}\n"),
              AllOf(HasSubstr("a.yaml:2:5: mechanisms: mechanism 'dot|sofmax|none|fixed|bias|0.1': "
                              "unknown normalization 'sofmax'"),
                    HasSubstr("a.yaml:3:5: mechanisms: model '2*attn{kv=1}': character 8: unknown "
                              "gene of mixer attn 'kv'")));
  EXPECT_EQ(mistakes("mechanisms: [2*mqa, dot|softmax|none|fixed|bias|0.1]\n",
                     {R"(mechanisms=["2*mqa", "2*attn{kv_heads=1}"])"}),
            "command line: mechanisms = 2*attn{kv_heads=1}, must be left out: it is 2*mqa, which "
            "is trained anyway");
  EXPECT_EQ(mistakes("mechanisms: [2*mqa, 2*mqa]\n"),
            "a.yaml:1:21: mechanisms = 2*mqa, is given twice");
  EXPECT_EQ(
      mistakes("mechanisms: [2*mqa, dot|softmax|none|fixed|bias|0.1]\n"),
      "a.yaml:1:21: mechanisms = dot|softmax|none|fixed|bias|0.1, must be left out: it is the "
      "baseline, which is trained anyway");
  EXPECT_EQ(mistakes("mechanisms: mqa\n"),
            "a.yaml:1:13: mechanisms: 'mqa' has 1 layer, must have model.layers = 2; did you mean "
            "2*mqa?");
  EXPECT_EQ(mistakes("mechanisms: 2*mqa\nretest: {replicates: 0}\n"),
            "a.yaml:2:22: retest.replicates = 0, must be at least 1 where mechanisms are listed");
}

TEST_F(ExperimentTest, MoreMechanismsMayBeListedAndNoneLeftOut) {
  const auto listed = [this](const std::string& names) {
    return load("mechanisms: [" + names + "]\n").resolved;
  };
  const auto one = listed("2*mqa");
  EXPECT_EQ(differing_keys(one, listed("dot|sparsemax|none|fixed|bias|0.1, 2*mqa")), Texts{});
  EXPECT_EQ(differing_keys(one, listed("dot|sparsemax|none|fixed|bias|0.1")),
            Texts{"mechanisms: [\"2*attn{kv_heads=1}\"] -> "
                  "[\"dot|sparsemax|none|fixed|bias|0.1\"]"});
  EXPECT_EQ(differing_keys(one, load("mechanisms: 2*mqa\nretest: {replicates: 9}\n").resolved),
            Texts{});
  EXPECT_THAT(differing_keys(one, load("").resolved),
              Contains("mechanisms: [\"2*attn{kv_heads=1}\"] -> absent"));
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
  EXPECT_EQ(informed("dot|softmax|none|fixed|no_bias|0.1"),
            "a.yaml:5:7: algorithm.informed = dot|softmax|none|fixed|no_bias|0.1, bias must be one "
            "of bias, as the space is");
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

TEST_F(ExperimentTest, AnInformedShareNeedsMechanisms) {
  EXPECT_EQ(mistakes("algorithm: {informed_share: 0.5}\n"),
            "a.yaml:1:29: algorithm.informed_share = 0.5, must be 0 where algorithm.informed names "
            "no mechanism");
  const auto experiment =
      load("algorithm: {informed_share: 0.5, informed: dot|softmax|none|fixed|bias|0.1}\n");
  EXPECT_EQ(experiment.informed, Texts{"dot|softmax|none|fixed|bias|0.1"});
  EXPECT_EQ(experiment.informed_share, 0.5);
}

// The resolved configuration.

TEST_F(ExperimentTest, ResolvedIsCompleteAndTyped) {
  const auto resolved = load("training: {weight_decay: 1}\nspace: {bias: [false]}\n").resolved;
  EXPECT_EQ(resolved["algorithm"]["name"], "evo_ga");
  EXPECT_EQ(resolved["algorithm"]["population"], 12);
  EXPECT_EQ(resolved["data"]["corpus"], "wikitext-2");
  EXPECT_EQ(resolved["problem"]["type"], "attention_search");
  EXPECT_EQ(resolved["space"]["bias"].dump(), "[false]");
  EXPECT_EQ(resolved["space"]["attention_dropout"].dump(), R"({"decimals":2,"max":0.3,"min":0.0})");
  EXPECT_EQ(resolved["training"]["weight_decay"].dump(), "1.0");
  EXPECT_EQ(resolved["training"]["learning_rate"].dump(), "0.0003");
  EXPECT_EQ(nlohmann::json::parse(resolved.dump()), resolved);
}

TEST_F(ExperimentTest, ResolvedIsAConfigurationOfTheSameExperiment) {
  const auto first = load(
      "semantics: published\nspace: {gating: [none], bias: [false]}\n"
      "objectives: [{name: flops, context: 64, as: short_flops}]\nconstraints: [parameters <= "
      "3e6]\n"
      "budget: {evaluations: 7, target: 3}\n"
      "training: {checkpoints: [1, 2], learning_rate: 1e-5}\n"
      "algorithm: {informed: [dot|softmax|none|fixed|no_bias|0.1], informed_share: 0.1}\n");
  EXPECT_EQ(load(first.resolved.dump()).resolved, first.resolved);
  EXPECT_EQ(load(first.resolved.dump(2)).resolved, first.resolved);
}

TEST_F(ExperimentTest, DifferingKeysSayOldAndNew) {
  const auto recorded = load("training: {checkpoints: [50]}\n").resolved;
  const auto given = load(
                         "seed: 1\nmodel: {width: 64}\ntraining: {checkpoints: [50, 60]}\n"
                         "algorithm: {name: stand_in_search}\n")
                         .resolved;
  EXPECT_EQ(differing_keys(recorded, recorded), Texts{});
  const auto keys = differing_keys(recorded, given);
  const auto has = [&keys](const std::string& text) {
    return std::find(keys.begin(), keys.end(), text) != keys.end();
  };
  EXPECT_TRUE(has("seed: 42 -> 1"));
  EXPECT_TRUE(has("model.width: 128 -> 64"));
  EXPECT_TRUE(has("training.checkpoints: [50] -> [50,60]"));
  EXPECT_TRUE(has("algorithm.name: \"evo_ga\" -> \"stand_in_search\""));
  EXPECT_TRUE(has("algorithm.rate: absent -> 0.25"));
  EXPECT_TRUE(has("algorithm.generations: 10 -> absent"));
}

TEST_F(ExperimentTest, DifferencesWithoutEffectAreLeftOut) {
  const auto recorded = load("").resolved;
  const auto given = load(
                         "name: other\ntraining: {checkpoint_minutes: 1}\n"
                         "evaluation: {workers: 7, array: 2, device: cpu, keep_models: 3,\n"
                         "  retry_failed: 1, retry_crashed: 2, retry_lost: 0, failure_window: 7}\n"
                         "budget: {evaluations: 5}\n"
                         "baseline: {tune: {trials: 4}}\nretest: {top: 2}\n")
                         .resolved;
  EXPECT_EQ(differing_keys(recorded, given), Texts{});
  auto as_text = recorded;  // as earlier versions recorded it
  as_text["baseline"] = recorded["baseline"]["mechanism"];
  EXPECT_EQ(differing_keys(as_text, given), Texts{});
  EXPECT_EQ(differing_keys(as_text, load("baseline: dot|softmax|none|fixed|bias|0\n").resolved),
            Texts{"baseline.mechanism: \"dot|softmax|none|fixed|bias|0.1\" -> "
                  "\"dot|softmax|none|fixed|bias|0\""});
  EXPECT_EQ(differing_keys(recorded, load("evaluation: {threads: 2}\n").resolved),
            Texts{"evaluation.threads: 1 -> 2"});
}

TEST_F(ExperimentTest, WhereAFileLiesIsNoDifference) {
  (void)write("mine.txt", "a text\n");
  (void)write("elsewhere/mine.txt", "a text\n");
  const auto of = [this](const std::string& settings) {
    return load("data: {corpus: text_file, " + settings + "}\n").resolved;
  };
  const auto recorded = of("path: mine.txt, valid_share: 0.2");
  EXPECT_EQ(differing_keys(recorded, of("path: elsewhere/mine.txt, valid_share: 0.2")), Texts{});
  EXPECT_EQ(differing_keys(recorded, of("path: mine.txt, valid_share: 0.3")),
            Texts{"data.valid_share: 0.2 -> 0.3"});
  EXPECT_EQ(differing_keys(of("train: mine.txt, valid: mine.txt, test: mine.txt"),
                           of("train: elsewhere/mine.txt, valid: elsewhere/mine.txt, test: "
                              "elsewhere/mine.txt")),
            Texts{});
  const auto problem = [&recorded](const char* type, const char* table) {
    auto config = recorded;
    config["problem"] = {{"type", type}, {"table", table}};
    return config;
  };
  EXPECT_EQ(differing_keys(problem("tabular", "a.table"), problem("tabular", "/b.table")), Texts{});
  EXPECT_EQ(differing_keys(problem("another", "a.table"), problem("another", "/b.table")),
            Texts{"problem.table: \"a.table\" -> \"/b.table\""})
      << "nobody knows whether its identity holds the contents";
}

TEST_F(ExperimentTest, SettingsThatARecordLacksCountAsTheirDefaults) {
  const auto now = load("algorithm: {name: stand_in_search}\n").resolved;
  auto older = now;
  older["model"].erase("feed_forward");
  older["training"].erase("schedule");
  older["evaluation"].erase("numerical_mode");
  older["data"].erase("layout");
  older["algorithm"].erase("rate");
  older["algorithm"].erase("weights");
  EXPECT_EQ(differing_keys(older, now), Texts{});
  const auto changed = load(
                           "evaluation: {numerical_mode: fast}\ndata: {layout: published}\n"
                           "algorithm: {name: stand_in_search, rate: 0.5}\n")
                           .resolved;
  EXPECT_EQ(differing_keys(older, changed),
            (Texts{"algorithm.rate: 0.25 -> 0.5", "data.layout: \"standard\" -> \"published\"",
                   "evaluation.numerical_mode: \"exact\" -> \"fast\""}));
}

// The configurations of the project.

class Configuration : public ConfigTest, public testing::WithParamInterface<const char*> {
 protected:
  static Experiment load(const std::string& name, const Texts& overrides = {}) {
    return load_experiment(std::filesystem::path(source_folder()) / "configs" / (name + ".yaml"),
                           overrides);
  }
};

INSTANTIATE_TEST_SUITE_P(, Configuration,
                         testing::Values("ga_baseline", "ga_published", "quickstart", "smoke"),
                         [](const auto& name) { return std::string(name.param); });

TEST_P(Configuration, Loads) { EXPECT_EQ(load(GetParam()).name, GetParam()); }

TEST_F(Configuration, BaselineWritesTheDefaultsDown) {
  const auto defaults = load_experiment(write("empty.yaml", ""), {});
  EXPECT_EQ(differing_keys(defaults.resolved, load("ga_baseline").resolved),
            Texts{"training.checkpoints: [] -> [50,100,200,350,600,1000,1800,3000,5000]"});
}

TEST_F(Configuration, PublishedDiffersOnlyInWhatThePublishedCodeDoes) {
  EXPECT_EQ(
      differing_keys(load("ga_baseline").resolved, load("ga_published").resolved),
      (Texts{
          "algorithm.binary: \"redraw\" -> \"flip\"", "data.layout: \"standard\" -> \"published\"",
          "evaluation.repeated: \"reuse\" -> \"retrain\"",
          R"(objectives: [{"as":"perplexity","goal":"minimise","name":"perplexity","range":[]}] -> )"
          R"([{"as":"published_perplexity","goal":"minimise","name":"published_perplexity","range":[]}])",
          "semantics: \"corrected\" -> \"published\"",
          "space.attention_dropout.decimals: 2 -> -1"}));
}

TEST_F(Configuration, AShorterTrainingRunIsOneOverride) {
  const auto experiment = load("ga_baseline", {"training.steps=500", "algorithm.generations=4"});
  EXPECT_EQ(experiment.training.get<Integers>("checkpoints"), (Integers{50, 100, 200, 350}));
}

}  // namespace
}  // namespace nas
