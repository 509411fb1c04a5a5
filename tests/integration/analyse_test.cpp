// nas-analyse on runs: whose weights it takes, what it writes and what it refuses.

#include "models/analyse.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "integration/changed_record.hpp"
#include "integration/program.hpp"

namespace nas::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class AnalyseTest : public ProgramTest {
 protected:
  /// What an analysis wrote.
  static nlohmann::json analysis(const fs::path& folder) {
    return nlohmann::json::parse(read_file(folder / "attention.json"));
  }
};

TEST_F(AnalyseTest, TakesWeightsThatTheRunHasKept) {
  const auto folder = small_run({"evaluation.keep_models=1"});
  const auto out = folder_ / "out";
  ASSERT_EQ(run("nas-analyse", {folder, "best", "--output", out.string(), "--no-report"}), 0)
      << text();
  EXPECT_THAT(text(), HasSubstr("weights kept by the run, 40 sequences of the test split"));
  EXPECT_FALSE(fs::exists(out / "models"));
  const auto json = analysis(out);
  EXPECT_EQ(json.at("schema"), 1);
  EXPECT_EQ(json.at("weights"), "kept by the run");
  EXPECT_EQ(json.at("length"), 16);
  EXPECT_EQ(json.at("windows").size(), 40U);
  const auto& layers = json.at("layers");
  ASSERT_EQ(layers.size(), 1U);
  const auto& statistics = layers[0].at("statistics");
  for (const auto* name : {"row_mass", "entropy_ratio", "sink_mass", "previous_token", "induction",
                           "score_sd", "mean_distance"}) {
    const auto& found = statistics.at(name);
    ASSERT_EQ(found.at("heads").size(), 2U) << name;
    ASSERT_EQ(found.at("layer").at("values").size(), 40U) << name;
    if (found.at("layer").at("mean").is_null()) continue;
    EXPECT_LE(found.at("layer").at("low"), found.at("layer").at("mean")) << name;
  }
  EXPECT_EQ(layers[0].at("example").size(), 2U);
  EXPECT_EQ(layers[0].at("example")[0].size(), 16U);
  EXPECT_EQ(layers[0].at("profile")[0].size(), 16U);
  EXPECT_TRUE(json.at("model").contains("nll"));
}

TEST_F(AnalyseTest, LooksIntoRecurrentLayers) {
  const auto folder = small_run({"space.mixer=recurrent", "space.update=delta",
                                 "space.decay=scalar", "evaluation.keep_models=1000"});
  const auto out = folder_ / "out";
  const auto winner = results_of(folder).at("ranking")[0].at("candidate").get<std::string>();
  ASSERT_EQ(run("nas-analyse", {folder, winner, "-o", out.string(), "--no-report"}), 0) << text();
  EXPECT_THAT(text(), HasSubstr("state used"));
  const auto json = analysis(out);
  EXPECT_FALSE(json.at("model").contains("sink_rate")) << "which is of attention";
  const auto& layer = json.at("layers")[0];
  EXPECT_EQ(layer.at("mixer"), "recurrent");
  for (const auto* name : {"mean_distance", "induction", "half_life", "memory_length", "beta_mean",
                           "beta_sd", "state_used"}) {
    const auto& found = layer.at("statistics").at(name);
    ASSERT_EQ(found.at("heads").size(), 2U) << name;
    ASSERT_EQ(found.at("layer").at("values").size(), 40U) << name;
    EXPECT_LE(found.at("layer").at("low"), found.at("layer").at("mean")) << name;
  }
  EXPECT_FALSE(layer.at("statistics").contains("score_sd"));
  EXPECT_EQ(layer.at("example")[0][15].size(), 16U);
  // The baseline attends, and is described as ever.
  ASSERT_EQ(run("nas-analyse", {folder, "baseline", "-o", out.string(), "--no-report"}), 0);
  EXPECT_THAT(text(), Not(HasSubstr("state used")));
}

TEST_F(AnalyseTest, LeavesOutAWindowThatTheTextDoesNotFill) {
  const auto file = [this](const std::string& name, int words) {
    std::ofstream out(folder_ / name);
    for (int i = 0; i < words; ++i) out << "abcdefg"[i % 7] << ' ';
    return (folder_ / name).string();
  };
  // Three windows of 16 and two tokens.
  const auto folder =
      small_run({"data={corpus: text_file, vocabulary: 12, train: " + file("train", 200) +
                     ", valid: " + file("valid", 50) + ", test: " + file("test", 50) + "}",
                 "evaluation.keep_models=1"});
  const auto out = folder_ / "out";
  ASSERT_EQ(run("nas-analyse", {folder, "best", "--output", out.string(), "--no-report"}), 0)
      << text();
  EXPECT_EQ(analysis(out).at("windows"), (nlohmann::json{0, 1, 2}));
}

TEST_F(AnalyseTest, TrainsAgainWhatWasNotKept) {
  // All models of one run are kept, of the other none: the same trainings.
  const auto folder = small_run({"evaluation.keep_models=1000"});
  const auto kept = folder_ / "kept";
  ASSERT_EQ(run("nas-analyse", {folder, "baseline", "-o", kept.string(), "--no-report"}), 0)
      << text();
  fs::remove_all(fs::path(folder) / "models");
  const auto again = folder_ / "again";
  ASSERT_EQ(run("nas-analyse", {folder, "baseline", "-o", again.string(), "--no-report"}), 0)
      << text();
  EXPECT_THAT(text(), HasSubstr("weights trained again"));
  EXPECT_THAT(text(), ::testing::Not(HasSubstr("warning")));
  auto a = analysis(kept);
  auto b = analysis(again);
  EXPECT_EQ(b.at("weights"), "trained again");
  a.erase("weights");
  b.erase("weights");
  EXPECT_EQ(a, b) << "the training run is deterministic";
  EXPECT_TRUE(fs::exists(again / "models" / (b.at("evaluation").get<std::string>() + ".pt")));
  EXPECT_TRUE(fs::is_empty(again / "checkpoints")) << "nothing is left of the training run";
  // Its weights are there now.
  const auto file = again / "models" / (b.at("evaluation").get<std::string>() + ".pt");
  const auto written = fs::last_write_time(file);
  ASSERT_EQ(run("nas-analyse", {folder, "baseline", "-o", again.string(), "--no-report"}), 0);
  EXPECT_EQ(fs::last_write_time(file), written);
}

TEST_F(AnalyseTest, SaysEveryTimeThatWhatWasTrainedAgainIsNotAsRecorded) {
  const auto folder = small_run();
  fs::remove_all(fs::path(folder) / "models");
  record_other_nll(folder);
  const auto out = folder_ / "out";
  const auto analyse = [&] {
    ASSERT_EQ(run("nas-analyse", {folder, "baseline", "-o", out.string(), "--no-report"}), 0)
        << text();
    EXPECT_THAT(text(), HasSubstr("warning: the weights of "));
    EXPECT_THAT(text(), HasSubstr(", weights trained again with validation nll "));
    EXPECT_THAT(analysis(out).at("weights").get<std::string>(),
                MatchesRegex("trained again with validation nll [0-9.]+, not [0-9.]+ as recorded"));
  };
  analyse();
  const auto id = analysis(out).at("evaluation").get<std::string>();
  const auto weights = out / "models" / (id + ".pt");
  const auto written = fs::last_write_time(weights);
  analyse();
  EXPECT_EQ(fs::last_write_time(weights), written);
  // An earlier version has kept weights, but not what they score.
  fs::remove(out / "models" / (id + ".again.json"));
  analyse();
  std::ofstream(out / "models" / (id + ".again.json")) << "torn";
  analyse();
}

TEST_F(AnalyseTest, FindsAMechanismByItsNameOrLabel) {
  const auto folder = small_run({"evaluation.keep_models=1000"});
  const auto results = results_of(folder);
  const auto candidate = results.at("baseline").at("candidate").get<std::string>();
  ASSERT_EQ(run("nas-analyse", {folder, candidate, "--no-report"}), 0) << text();
  const auto expected =
      fs::path(folder) / "attention" / "dot-softmax-none-fixed-bias-0.1" / "attention.json";
  EXPECT_TRUE(fs::exists(expected)) << text();
  EXPECT_EQ(nlohmann::json::parse(read_file(expected)).at("candidate"), candidate);
}

TEST_F(AnalyseTest, FindsAMechanismAsTheTableNamesIt) {
  const auto folder = small_run({"space.kv_heads=1", "evaluation.keep_models=1000"});
  const auto results = results_of(folder);
  const auto winner = results.at("ranking")[0].at("candidate").get<std::string>();
  const auto name = results.at("models").at("differences").at(winner).get<std::string>();
  EXPECT_THAT(name, Not(HasSubstr("kv_heads"))) << "which the space fixes";
  ASSERT_EQ(run("nas-analyse", {folder, name, "--no-report", "--output", folder + "/out"}), 0)
      << text();
  const auto json = nlohmann::json::parse(read_file(fs::path(folder) / "out" / "attention.json"));
  EXPECT_EQ(json.at("candidate"), winner);
}

TEST_F(AnalyseTest, SaysWhatIsWrong) {
  EXPECT_EQ(run("nas-analyse", {}), 2);
  EXPECT_THAT(text(), HasSubstr("command line: give a run and a mechanism"));
  EXPECT_EQ(run("nas-analyse", {"nowhere", "best"}), 2);
  EXPECT_THAT(text(), HasSubstr("nowhere: no such store; give a run's folder"));
  const auto folder = small_run();
  EXPECT_EQ(run("nas-analyse", {folder, "dot|softmax|none|fixed|bias|0.7"}), 2);
  EXPECT_THAT(text(), HasSubstr("must be best, baseline or one that the run has trained: "));
  EXPECT_THAT(text(), HasSubstr("dot|softmax|none|fixed|bias|0.1, "));
  EXPECT_THAT(text(), HasSubstr("did you mean"));
  EXPECT_EQ(run("nas-analyse", {folder, "best", "--replicate", "7"}), 2);
  EXPECT_THAT(text(), HasSubstr("--replicate = 7, must be one of the trained replicates 0"));
  EXPECT_EQ(run("nas-analyse", {folder, "best", "--sequences", "1"}), 2);
  EXPECT_THAT(text(), HasSubstr("--sequences = 1, must be at least 2"));
  EXPECT_EQ(run("nas-analyse", {folder, "best", "data.vocabulary=64"}), 2) << text();
  EXPECT_EQ(run("nas-analyse", {folder, "best", "training.learning_rate=1"}), 2);
  EXPECT_THAT(text(), HasSubstr("must be made again with the recorded settings:\n  training."));
  EXPECT_FALSE(fs::exists(fs::path(folder) / "attention")) << "nothing was changed";
  EXPECT_EQ(run("nas-analyse", {"--help"}), 0);
  EXPECT_THAT(text(), HasSubstr("Exit codes"));
}

TEST(FolderName, IsReadableAndDistinguishesMechanisms) {
  EXPECT_EQ(folder_name("dot|softmax|none|fixed|bias|0.1"), "dot-softmax-none-fixed-bias-0.1");
  EXPECT_EQ(folder_name("model{norm=rms}/4*attn{position=rope}+swiglu"),
            "model-norm-rms-4-attn-position-rope-swiglu");
  EXPECT_EQ(folder_name("2*swa{window=16}"), "2-swa-window-16");
  const std::string layers(300, 'a');
  EXPECT_EQ(folder_name(layers).size(), 100U);
  EXPECT_NE(folder_name(layers + "b"), folder_name(layers + "c"));
}

TEST_F(AnalyseTest, RefusesRunsThatTrainNothing) {
  const auto folder = (folder_ / "run").string();
  ASSERT_EQ(run("nas-run", {config("nsga2_zdt.yaml"), "--output", folder, "--no-report",
                            "algorithm.generations=2"}),
            0)
      << text();
  EXPECT_EQ(run("nas-analyse", {folder, "best"}), 2);
  EXPECT_THAT(text(), HasSubstr("trains no models to look into"));
}

}  // namespace
}  // namespace nas::testing
