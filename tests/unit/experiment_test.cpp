#include "cli/experiment.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/describe.hpp"
#include "core/error.hpp"
#include "search/problem.hpp"
#include "unit/paper_components.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

/// Configuration files in a folder of their own.
class ExperimentTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    testing::register_paper_components();
    // The real problem links Torch.
    problems().add({.key = "attention_search", .summary = "stand-in"},
                   [](const ProblemInputs&) { return nullptr; });
  }
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "attnas-config-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  Experiment load(const std::string& text, const std::vector<std::string>& overrides = {}) {
    return load_experiment(write("x.yaml", text), overrides);
  }
  /// The mistakes that loading reports, without the folder's name.
  std::string mistakes(const std::string& text, const std::vector<std::string>& overrides = {}) {
    try {
      load(text, overrides);
    } catch (const InputError& error) {
      std::string message = error.what();
      const auto prefix = folder_.string() + "/";
      for (auto at = message.find(prefix); at != std::string::npos; at = message.find(prefix)) {
        message.erase(at, prefix.size());
      }
      return message;
    }
    return "no mistake";
  }

  fs::path folder_;
};

TEST_F(ExperimentTest, DefaultsAreThePapersSearch) {
  const auto experiment = load("");
  EXPECT_EQ(experiment.name, "x");
  EXPECT_EQ(experiment.seed, 42U);
  EXPECT_EQ(experiment.semantics, Semantics::corrected);
  EXPECT_EQ(experiment.space.num_combinations(), 384);
  EXPECT_EQ(experiment.algorithm, "evo_ga");
  EXPECT_EQ(experiment.population, 12);
  EXPECT_EQ(experiment.algorithm_settings.get<std::int64_t>("generations"), 10);
  EXPECT_EQ(experiment.model.get<std::int64_t>("width"), 128);
  EXPECT_EQ(experiment.training.get<double>("learning_rate"), 3e-4);
}

TEST_F(ExperimentTest, EveryMistakeIsReportedAtOnceWithItsPlace) {
  EXPECT_EQ(mistakes("seed: -1\n"
                     "semantics: correct\n"
                     "traning: {}\n"
                     "training:\n"
                     "  steps: many\n"
                     "  stepz: 5\n"
                     "  learning_rate: 0\n"
                     "  steps: 5\n"
                     "model: {dropout: 1}\n"),
            "x.yaml:1:7: seed = -1, must be >= 0\n"
            "x.yaml:2:12: semantics = correct, must be one of corrected, published; did you mean "
            "corrected?\n"
            "x.yaml:3:1: traning: unknown key, did you mean training?\n"
            "x.yaml:5:10: training.steps = many, must be an integer\n"
            "x.yaml:6:3: training.stepz: unknown key, did you mean steps?\n"
            "x.yaml:7:18: training.learning_rate = 0, must be > 0\n"
            "x.yaml:8:3: training.steps: given twice\n"
            "x.yaml:9:18: model.dropout = 1, must be in [0, 1)");
}

TEST_F(ExperimentTest, UnknownOptionOfACustomSpaceNamesTheNearest) {
  EXPECT_EQ(mistakes("space:\n  normalization: [softmax, entmx15]\n"),
            "x.yaml:2:28: space.normalization: unknown option entmx15, known: softmax, sparsemax, "
            "relu_norm, "
            "sigmoid, entmax15, sigmoid_norm, topk_quarter; did you mean entmax15?");
  EXPECT_THAT(mistakes("space: {similarity: [multiplicative, silu_dot]}"),
              HasSubstr("multiplicative and silu_dot are the same component, silu_dot"));
  EXPECT_THAT(mistakes("space: {similarity: []}"),
              HasSubstr("must be a list of at least one option"));
  EXPECT_THAT(mistakes("space: {bias: [true, true]}"), HasSubstr("each once"));
  EXPECT_THAT(mistakes("space: {attention_dropout: {min: 0.2, max: 0.1}}"),
              HasSubstr("min must be <= max"));
  EXPECT_THAT(mistakes("space: {colour: [red]}"), HasSubstr("space.colour: unknown key"));
}

TEST_F(ExperimentTest, SpaceIsNarrowedAndWidened) {
  const auto experiment =
      load("space: {normalization: [softmax, entmax15], bias: [false], attention_dropout: 0.1}");
  EXPECT_EQ(experiment.space.num_combinations(), 4 * 2 * 4 * 3);
  EXPECT_EQ(experiment.space.gene("attention_dropout").min, 0.1);
  EXPECT_EQ(experiment.space.gene("attention_dropout").max, 0.1);
}

TEST_F(ExperimentTest, ExtendsAndOverridesMergeKeyByKey) {
  write("base.yaml", "seed: 7\ntraining: {steps: 100, batch_size: 8}\n");
  const auto experiment =
      load("extends: base.yaml\ntraining: {steps: 50}\n",
           {"training.batch_size=4", "name=mine", "training.checkpoints=[10, 20]"});
  EXPECT_EQ(experiment.seed, 7U);
  EXPECT_EQ(experiment.name, "mine");
  EXPECT_EQ(experiment.training.get<std::int64_t>("steps"), 50);
  EXPECT_EQ(experiment.training.get<std::int64_t>("batch_size"), 4);
  EXPECT_EQ(experiment.training.get<std::vector<std::int64_t>>("checkpoints"),
            (std::vector<std::int64_t>{10, 20}));
  // Mistakes are reported where they were made.
  write("base.yaml", "training: {stepz: 1}\n");
  EXPECT_THAT(mistakes("extends: base.yaml\n"), HasSubstr("base.yaml:1:12: training.stepz"));
  EXPECT_EQ(mistakes("{}", {"training.steps=x"}),
            "command line: training.steps = x, must be an integer");
  EXPECT_EQ(mistakes("{}", {"training.steps"}),
            "command line: 'training.steps', must be key.path=value");
  EXPECT_THAT(mistakes("extends: x.yaml\n"), HasSubstr("extends itself"));
  EXPECT_THAT(mistakes("extends: absent.yaml\n"),
              HasSubstr("x.yaml:1:10: extends = absent.yaml, there is no file"));
  EXPECT_THAT(mistakes("a: [1, 2\n"), HasSubstr("no valid YAML"));
}

TEST_F(ExperimentTest, AnotherPluginDoesNotInheritTheFormersSettings) {
  write("base.yaml", "data: {corpus: wikitext-2, layout: published}\n");
  const auto experiment = load("extends: base.yaml\ndata: {corpus: mqar, pairs: 2}\n");
  EXPECT_EQ(experiment.corpus, "mqar");
  EXPECT_EQ(experiment.data.get<std::int64_t>("pairs"), 2);
  const auto same = load("extends: base.yaml\ndata: {corpus: wikitext-2, vocabulary: 500}\n");
  EXPECT_EQ(same.data.get<std::string>("layout"), "published");
  EXPECT_THAT(mistakes("data: {corpus: wikitext2}"), HasSubstr("did you mean wikitext-2?"));
  EXPECT_THAT(mistakes("algorithm: {name: evo_ga, crosover: 1}"),
              HasSubstr("did you mean crossover?"));
  EXPECT_EQ(load("algorithm: evo_ga").algorithm, "evo_ga");
}

TEST_F(ExperimentTest, WhatMustFitTogetherIsChecked) {
  EXPECT_EQ(mistakes("model: {width: 10, heads: 4}"),
            "x.yaml:1:16: model.width = 10, must be a multiple of model.heads = 4");
  EXPECT_THAT(mistakes("training: {steps: 5, warmup_steps: 6}"),
              HasSubstr("must be at most training.steps = 5"));
  EXPECT_THAT(mistakes("evaluation: {workers: 0}"), HasSubstr("must be auto or a number >= 1"));
  EXPECT_THAT(mistakes("evaluation: {device: gpu}"),
              HasSubstr("must be auto, cpu, cuda or cuda:N"));
  EXPECT_THAT(mistakes("algorithm: {informed: [dot|softmax]}"), HasSubstr("2 fields, must be 6"));
  EXPECT_THAT(mistakes("algorithm: {informed_share: 0.5}"),
              HasSubstr("needs mechanisms in algorithm.informed"));
  EXPECT_THAT(mistakes("objectives: []"), HasSubstr("must name at least one"));
  EXPECT_THAT(mistakes("baseline: dot|softmaxx|none|fixed|bias|0.1"),
              HasSubstr("unknown normalization 'softmaxx'"));
  // A shorter training keeps the validation steps that it reaches.
  EXPECT_EQ(load("training: {steps: 15, checkpoints: [10, 20]}")
                .training.get<std::vector<std::int64_t>>("checkpoints"),
            std::vector<std::int64_t>{10});
}

TEST_F(ExperimentTest, DifferingKeysLeavesOutWhatChangesNoResult) {
  const auto before = load("").resolved;
  EXPECT_TRUE(differing_keys(before, nlohmann::json::parse(before.dump())).empty());
  const auto after = load("", {"training.steps=7", "evaluation.workers=3", "name=other",
                               "space.similarity=[dot]", "evaluation.keep_models=4"})
                         .resolved;
  EXPECT_THAT(differing_keys(before, after),
              ::testing::ElementsAre(
                  R"(space.similarity: ["dot","multiplicative","additive","cosine"] -> ["dot"])",
                  "training.steps: 5000 -> 7"));
}

TEST_F(ExperimentTest, DescribeAndList) {
  EXPECT_THAT(describe_text("evo_ga"), HasSubstr("number, in [0, 1], default 0.7"));
  EXPECT_THAT(describe_text("training"), HasSubstr("learning_rate"));
  EXPECT_THAT(describe_text("sparsemax"),
              HasSubstr("topk_quarter"));  // what the label means as published
  EXPECT_THAT(describe_text("relu_norm"), HasSubstr("voids        temperature"));
  EXPECT_THAT(list_text("algorithms"), HasSubstr("evo_ga"));
  EXPECT_THAT(list_text("algorithms"), Not(HasSubstr("perplexity")));
  EXPECT_THROW(list_text("animals"), InputError);
  try {
    describe_text("evo_gaa");
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean evo_ga?"));
  }
}

}  // namespace
}  // namespace nas
