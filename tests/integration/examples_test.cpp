// The examples of docs/how-to/own-*.md, extracted from them and compiled: what they add is offered,
// described, searched, reported and recorded without a line anywhere else.

#include "cli/describe.hpp"
#include "cli/schema.hpp"
#include "core/error.hpp"
#include "core/run_program.hpp"
#include "core/temporary_folder.hpp"
#include "digest_file.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "genotype/mechanism_name.hpp"
#include "genotype/shorthand.hpp"
#include "genotype/slots.hpp"
#include "models/model_folder.hpp"
#include "models/trained_model.hpp"
#include "nn/recurrent_layer.hpp"
#include "prelude.hpp"
#include "report/files.hpp"
#include "study/study.hpp"

namespace nas::testing {
namespace {

using ::testing::ContainsRegex;

/// Searches for little, with all that the examples add.
constexpr const char* kConfiguration =
    "controls: false\n"
    "objectives: [perplexity, {name: cache_megabytes, batch: 4, range: [0, 1]}]\n"
    "algorithm: {name: simple_evolution, population: 4, children: 6, decomposition: weighted}\n"
    "space:\n"
    "  similarity: [dot, additive]\n"
    "  normalization: [squared_relu_norm]\n"
    "  gating: [none]\n"
    "  temperature: [fixed, learned]\n"
    "  bias: [true]\n"
    "  attention_dropout: 0\n"
    "baseline: dot|softmax|none|fixed|bias|0\n"
    "model: {layers: 1, width: 8, heads: 2, context: 8}\n"
    "data: {corpus: counting}\n"
    "training: {steps: 2, batch_size: 4}\n"
    "evaluation: {device: cpu, workers: 1}\n";

/// One search for all cases.
class OneSearchTest : public ::testing::Test {
 protected:
  static void search(const std::string& text) {
    folder_ = std::make_unique<TemporaryFolder>();
    const auto configuration = folder_->write("run.yaml", text);
    run_ = std::make_unique<RunSummary>(Study(configuration, {}, folder_->path() / "run").run());
  }
  static void TearDownTestSuite() {
    run_.reset();
    folder_.reset();
  }

  void SetUp() override { ASSERT_NE(run_, nullptr) << "the search failed"; }

  /// What is wrong with the configuration and another setting.
  static std::string mistake(const std::string& override_) {
    return message_of<InputError>([&] { (void)Study(folder_->path() / "run.yaml", {override_}); });
  }

  inline static std::unique_ptr<TemporaryFolder> folder_;
  inline static std::unique_ptr<RunSummary> run_;
};

class ExamplesTest : public OneSearchTest {
 protected:
  static void SetUpTestSuite() { search(kConfiguration); }
};

const nlohmann::json& named(const nlohmann::json& list, const char* key, const std::string& name) {
  return *std::find_if(list.begin(), list.end(),
                       [&](const auto& item) { return item.at(key) == name; });
}

Texts fields(const std::string& line) {
  Texts texts(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      texts.emplace_back();
    } else {
      texts.back() += c;
    }
  }
  return texts;
}

TEST_F(ExamplesTest, AreListedAndDescribed) {
  EXPECT_THAT(list_text("components"),
              ContainsRegex("  normalization +squared_relu_norm +max\\(s, 0\\)"));
  EXPECT_THAT(list_text("algorithms"), HasSubstr("  simple_evolution "));
  EXPECT_THAT(list_text("objectives"), HasSubstr("  cache_megabytes "));
  EXPECT_THAT(list_text("data"), HasSubstr("  counting "));
  EXPECT_THAT(describe_text("squared_relu_norm"), HasSubstr("voids          temperature\n"));
  EXPECT_THAT(describe_text("squared_relu_norm"), HasSubstr("none: not in the paper"));
  EXPECT_THAT(describe_text("simple_evolution"),
              ContainsRegex("  children +integer +100 +.*candidates after the initial population"));
  EXPECT_THAT(describe_text("cache_megabytes"), ContainsRegex("  batch +integer +1 +"));
  const auto schema = schema_json().dump();
  for (const auto* key : {"squared_relu_norm", "simple_evolution", "cache_megabytes", "counting"}) {
    EXPECT_THAT(schema, HasSubstr("\"" + std::string(key) + "\"")) << key;
  }
}

TEST_F(ExamplesTest, AreReadAndCorrectedLikeAllOthers) {
  const Study study(folder_->path() / "run.yaml");
  const auto& space = study.experiment().space;
  EXPECT_EQ(space.gene("normalization").options, Texts{"squared_relu_norm"});
  EXPECT_THAT(mistake("space.normalization=[squared_relu_nrm]"),
              HasSubstr("did you mean squared_relu_norm?"));
  EXPECT_THAT(mistake("algorithm.children=0"), HasSubstr("algorithm.children = 0, must be "));
}

TEST_F(ExamplesTest, AVoidedGeneMakesNoCandidateOfItsOwn) {
  const auto candidate = [](const char* name) {
    return candidate_of(parse_mechanism(name, Semantics::corrected), Semantics::corrected).name;
  };
  EXPECT_EQ(candidate("dot|squared_relu_norm|none|learned|bias|0"),
            "dot|squared_relu_norm|none|fixed|bias|0");
  EXPECT_EQ(run_->asks.size(), 10U) << "4 individuals and 6 children";
  const std::set<std::string> possible{"dot|squared_relu_norm|none|fixed|bias|0",
                                       "additive|squared_relu_norm|none|fixed|bias|0",
                                       "dot|softmax|none|fixed|bias|0"};
  for (const auto& evaluation : run_->evaluations) {
    EXPECT_EQ(evaluation.status, Status::ok) << evaluation.candidate << ": " << evaluation.reason;
    EXPECT_TRUE(possible.contains(evaluation.candidate)) << evaluation.candidate;
  }
}

TEST_F(ExamplesTest, AreShownInTheClosingTable) {
  const auto table = closing_table(*run_);
  EXPECT_THAT(table, HasSubstr("cache_megabytes (MB)"));
  EXPECT_THAT(table, HasSubstr("squared_relu_norm|none|fixed|bias|0"));
}

TEST_F(ExamplesTest, AreColumnsAndFieldsOfTheCsv) {
  std::istringstream lines(evaluations_csv(*run_));
  std::string line;
  std::getline(lines, line);
  const auto header = fields(line);
  for (const auto* column : {"normalization", "cache_megabytes", "cache_megabytes_mean"}) {
    EXPECT_THAT(header, ::testing::Contains(column));
  }
  int added = 0;
  while (std::getline(lines, line)) {
    const auto values = fields(line);
    ASSERT_EQ(values.size(), header.size()) << line;
    std::map<std::string, std::string> row;
    for (std::size_t i = 0; i < header.size(); ++i) row[header[i]] = values[i];
    added += row["normalization"] == "squared_relu_norm" ? 1 : 0;
    // 4 sequences of 8 tokens, keys and values of width 8 in float32.
    EXPECT_EQ(row["cache_megabytes"], "0.002048") << line;
  }
  EXPECT_GE(added, 1);
}

TEST_F(ExamplesTest, AreInTheRecord) {
  const auto& genes = run_->schema.at("genes");
  const auto& normalizations = named(genes, "name", "normalization").at("options");
  EXPECT_EQ(named(normalizations, "key", "squared_relu_norm").at("voids"),
            nlohmann::json{"temperature"});
  EXPECT_THAT(named(genes, "name", "temperature").at("voided_by").at("normalization").get<Texts>(),
              ::testing::Contains("squared_relu_norm"));
  EXPECT_EQ(run_->schema.at("objectives").at("cache_megabytes"),
            (nlohmann::json{{"source", "analytic"}, {"unit", "MB"}, {"maximise", false}}));
  EXPECT_EQ(run_->config.at("algorithm").at("name"), "simple_evolution");
  EXPECT_EQ(run_->config.at("data").at("corpus"), "counting");
  EXPECT_EQ(test::results_json(*run_).at("record_schema"), run_->schema);
}

/// Layers of the mixer and the feed-forward layer that the examples add, each with two sizes.
constexpr const char* kLayers =
    "{mixer: [moving_average], taps: [2, 3], ffn: [gelu, geglu], ratio: [1, 2]}";
/// The update and the decay that they add, beside others.
constexpr const char* kStates =
    "{mixer: [recurrent], bias: [true], update: [add, gated_add], decay: [none, learned_rate], "
    "feature: [identity, elu1]}";

/// Searches a space whole.
constexpr const char* kWhole =
    "controls: false\n"
    "objectives: [perplexity]\n"
    "algorithm: {name: exhaustive}\n"
    "baseline: dot|softmax|none|fixed|bias|0\n"
    "model: {layers: 1, width: 8, heads: 2, context: 8}\n"
    "data: {corpus: counting}\n"
    "training: {steps: 2, batch_size: 4}\n"
    "evaluation: {device: cpu, workers: 1, causality: require, keep_models: 8}\n"
    "space: ";

class LayerExamplesTest : public OneSearchTest {
 protected:
  static void SetUpTestSuite() { search(std::string(kWhole) + kLayers + "\n"); }

  /// The model of a candidate, with its weights.
  static ModelRequest request_of(const std::string& candidate) {
    return {.run = folder_->path() / "run",
            .candidate = candidate,
            .folder = folder_->path() / "again"};
  }

  static void expect_costs_of_built_models() {
    for (const auto& candidate : run_->ranking) {
      TrainedModel trained(*run_, request_of(candidate.candidate));
      std::int64_t built = 0;
      for (const auto& [name, values] : trained.load().parameters()) built += values.numel();
      EXPECT_EQ(candidate.usable_evaluation()->values.at("parameters"), static_cast<double>(built))
          << candidate.candidate;
    }
  }
  static void expect_tokens_one_by_one() {
    for (const auto& candidate : run_->ranking) {
      TrainedModel trained(*run_, request_of(candidate.candidate));
      auto model = trained.load();
      const auto tokens =
          at::arange(5, at::kLong).remainder(trained.architecture().vocabulary).view({1, 5});
      const auto whole = model.logits(tokens, {});
      auto state = model.array().start(2);
      for (std::int64_t t = 0; t < 5; ++t) {
        const auto next = model.array().step(tokens.narrow(1, t, 1), state).view({-1});
        EXPECT_TRUE(at::allclose(next, whole[0][t], 1e-5, 1e-6)) << candidate.candidate << " " << t;
      }
    }
  }
  /// @param why  of the first layer.
  static void expect_pytorch_to_refuse(const std::string& candidate, const std::string& why) {
    const std::string python = "/usr/bin/python3";
    if (run_program({python, "-c", "import torch"}).status != 0) GTEST_SKIP() << "no torch";
    TrainedModel trained(*run_, request_of(candidate));
    const auto corpus = trained.corpus();
    const auto config = model_config(trained.architecture(), corpus, trained.experiment().data);
    const auto model = folder_->path() / "model";
    write_model_folder(model, config, corpus, trained.load());
    const auto loaded = run_program(
        {python, "-B", "-c",
         "import sys; sys.path.insert(0, sys.argv[1]); import model; model.load(sys.argv[1])",
         model.string()});
    EXPECT_NE(loaded.status, 0);
    EXPECT_THAT(last_line(loaded.output), HasSubstr(why));
  }
};

TEST_F(LayerExamplesTest, AMixerIsListedAndDescribed) {
  EXPECT_THAT(list_text("components"), ContainsRegex("  mixer +moving_average +W \\(x_t"));
  EXPECT_THAT(describe_text("moving_average"), HasSubstr("the mean of the newest taps inputs"));
  EXPECT_THAT(describe_text("taps"), HasSubstr("of mixer moving_average"));
  EXPECT_THAT(schema_json().dump(), HasSubstr("\"moving_average\""));
}

TEST_F(LayerExamplesTest, ASizeIsSearchedAndPassesTheGateOfCausality) {
  EXPECT_EQ(run_->ranking.size(), 8U)
      << "two sizes each of mixer and feed-forward layer, two of these";
  for (const auto& evaluation : run_->evaluations) {
    EXPECT_EQ(evaluation.status, Status::ok) << evaluation.candidate << ": " << evaluation.reason;
  }
}

TEST_F(LayerExamplesTest, CostsAreThoseOfTheModelThatIsBuilt) { expect_costs_of_built_models(); }

TEST_F(LayerExamplesTest, AModelGoesOnTokenByToken) { expect_tokens_one_by_one(); }

TEST_F(LayerExamplesTest, SizesAreColumnsOfTheCsv) {
  std::istringstream lines(evaluations_csv(*run_));
  std::string line;
  std::getline(lines, line);
  const auto header = fields(line);
  std::map<std::string, std::set<std::string>> seen;  // values by column
  while (std::getline(lines, line)) {
    if (line.find("moving_average") == std::string::npos) continue;  // the baseline
    const auto values = fields(line);
    for (std::size_t i = 0; i < header.size(); ++i) seen[header[i]].insert(values.at(i));
  }
  EXPECT_EQ(seen["mixer"], std::set<std::string>{"moving_average"});
  EXPECT_EQ(seen["taps"], (std::set<std::string>{"2", "3"}));
  EXPECT_EQ(seen["ffn"], (std::set<std::string>{"geglu", "gelu"}));
  EXPECT_EQ(seen["ratio"], (std::set<std::string>{"1", "2"}));
}

TEST_F(LayerExamplesTest, MistakesAreNamed) {
  EXPECT_THAT(mistake("space.mixer=[moving_averge]"), HasSubstr("did you mean moving_average?"));
  EXPECT_THAT(mistake("space.taps=[9]"), HasSubstr("must be an integer in [2, 8]"));
  EXPECT_THAT(mistake("space.tabs=[3]"), HasSubstr("did you mean taps?"));
  EXPECT_EQ(to_string(parse_model("2*moving_average{taps=4}", Architecture{})), "2*moving_average");
}

TEST_F(LayerExamplesTest, PyTorchRefusesTheMixerByName) {
  expect_pytorch_to_refuse(run_->ranking.front().candidate,
                           "mixer = moving_average, must be one of attn, ");
}

class StateExamplesTest : public LayerExamplesTest {
 protected:
  static void SetUpTestSuite() { search(std::string(kWhole) + kStates + "\n"); }
};

TEST_F(StateExamplesTest, AreListedAndDescribed) {
  const auto list = list_text("components");
  EXPECT_THAT(list, ContainsRegex("  update +gated_add +S <- alpha S \\+ i k v'"));
  EXPECT_THAT(list, ContainsRegex("  decay +learned_rate +alpha_h"));
  EXPECT_THAT(describe_text("gated_add"), ContainsRegex("voids +neg_eigen\n"));
  EXPECT_THAT(describe_text("learned_rate"), ContainsRegex("mixer +recurrent"));
  EXPECT_THAT(
      describe_text("space.decay"),
      ContainsRegex("learned_rate(.|\n)*of mixer attn \\(none, channel, scalar\\), recurrent"));
}

TEST_F(StateExamplesTest, AreSearchedTrainedAndCosted) {
  std::set<std::string> candidates;
  for (const auto& candidate : run_->ranking) candidates.insert(candidate.candidate);
  EXPECT_EQ(candidates.size(), 8U) << "two each of update, decay and feature";
  EXPECT_THAT(candidates,
              ::testing::Contains("recurrent{decay=learned_rate,update=gated_add,feature=elu1}"));
  for (const auto& evaluation : run_->evaluations) {
    EXPECT_EQ(evaluation.status, Status::ok) << evaluation.candidate << ": " << evaluation.reason;
  }
  expect_costs_of_built_models();
  expect_tokens_one_by_one();
}

TEST_F(StateExamplesTest, LayersAreTheirNaiveForms) {
  const at::NoGradGuard no_grad;
  for (const auto& candidate : run_->ranking) {
    const auto model = parse_model(candidate.candidate, Architecture{.width = 24, .heads = 3});
    const auto& layer = model.layer(0);
    for (const auto mode : {NumericalMode::reference, NumericalMode::exact}) {
      std::vector<nn::Parameter> parameters;
      nn::RecurrentLayer recurrent({{layer}, attention_shape(model, layer)},
                                   nn::ParameterScope(parameters, mode));
      nn::initialise(parameters, {{1, 0}});
      const auto x = at::sin(at::arange(2 * 37 * 24).to(at::kFloat).square()).view({1, 2, 37, 24});
      const auto expected = recurrent.naive(x);
      EXPECT_TRUE(at::allclose(recurrent.forward(x, x, {}, 0), expected, 1e-4, 1e-6))
          << candidate.candidate;
    }
  }
}

TEST_F(StateExamplesTest, MistakesAreNamed) {
  EXPECT_THAT(mistake("space.update=[gated_ad]"), HasSubstr("did you mean gated_add?"));
  EXPECT_THAT(mistake("space.decay=[learned_rat]"), HasSubstr("did you mean learned_rate?"));
  const auto canonical_name = [](const char* name) {
    return to_string(canonical(parse_model(name, Architecture{})));
  };
  EXPECT_EQ(canonical_name("2*recurrent{update=gated_add,neg_eigen=1}"),
            canonical_name("2*recurrent{update=gated_add}"));
  EXPECT_EQ(canonical_name("2*attn{decay=learned_rate}+swiglu"), "2*attn+swiglu");
  EXPECT_THAT(message_of<InputError>([] { (void)named_model("learned_rate", Architecture{}); }),
              HasSubstr("which is attn; it belongs to mixer recurrent"));
}

TEST_F(StateExamplesTest, PyTorchRefusesThemByName) {
  expect_pytorch_to_refuse("recurrent{update=gated_add}",
                           "update = gated_add, must be one of add, delta, delta2");
}

}  // namespace
}  // namespace nas::testing
