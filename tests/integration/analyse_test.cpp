// nas-analyse on runs, and nas-model take, which it stands on: whose weights are taken, what is written and what is refused.

#include "integration/changed_record.hpp"
#include "integration/program.hpp"
#include "models/trained_model.hpp"

namespace nas::testing {
namespace {

class AnalyseTest : public ProgramTest {
 protected:
  /// What an analysis wrote.
  static nlohmann::json analysis(const fs::path& folder) {
    return nlohmann::json::parse(read_file(folder / "attention.json"));
  }
  /// What nas-model takes of a run.
  nlohmann::json taken(const std::string& run_folder, const std::string& mechanism,
                       Texts more = {}) {
    const auto to = folder_ / "taken";
    more.insert(more.begin(), {"take", run_folder, mechanism, "-o", to.string()});
    EXPECT_TRUE(ran("nas-model", more));
    return nlohmann::json::parse(read_file(to / "held_out.json"));
  }
};

TEST_F(AnalyseTest, LooksIntoAttention) {
  SKIP_WITHOUT_TORCH();
  const auto folder = small_run({"evaluation.keep_models=1"});
  const auto out = folder_ / "out";
  ASSERT_TRUE(ran("nas-analyse", {folder, "best", "--output", out.string(), "--no-report"}));
  EXPECT_THAT(text(), HasSubstr("weights kept by the run, 40 sequences of the test split"));
  EXPECT_THAT(text(), Not(HasSubstr("state used")));
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
  SKIP_WITHOUT_TORCH();
  const auto folder = small_run({"space.mixer=recurrent", "space.update=delta",
                                 "space.decay=scalar", "evaluation.keep_models=1000"});
  const auto winner = results_of(folder).at("ranking")[0].at("candidate").get<std::string>();
  const auto out = folder_ / "out";
  ASSERT_TRUE(ran("nas-analyse", {folder, winner, "-o", out.string(), "--no-report"}));
  EXPECT_THAT(text(), HasSubstr("state used"));
  const auto json = analysis(out);
  EXPECT_FALSE(json.at("model").contains("sink_rate")) << "which is of attention";
  const auto& layer = json.at("layers")[0];
  EXPECT_EQ(layer.at("mixer"), "recurrent");
  for (const auto* name : {"mean_distance", "half_life", "beta_sd", "state_used"}) {
    const auto& found = layer.at("statistics").at(name);
    ASSERT_EQ(found.at("heads").size(), 2U) << name;
    ASSERT_EQ(found.at("layer").at("values").size(), 40U) << name;
  }
  EXPECT_FALSE(layer.at("statistics").contains("score_sd"));
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
  EXPECT_EQ(taken(folder, "best").at("windows"), (nlohmann::json{0, 1, 2}));
}

TEST_F(AnalyseTest, TrainsAgainWhatWasNotKept) {
  // All models of one run are kept, of the other none: the same trainings.
  const auto folder = small_run({"evaluation.keep_models=1000"});
  auto a = taken(folder, "baseline");
  const auto weights = read_file(folder_ / "taken" / "model.safetensors");
  fs::remove_all(fs::path(folder) / "models");
  const auto keep = folder_ / "keep";
  auto b = taken(folder, "baseline", {"--keep", keep.string()});
  EXPECT_THAT(text(), Not(HasSubstr("warning")));
  EXPECT_EQ(b.at("weights"), "trained again");
  for (auto* json : {&a, &b}) {
    json->erase("weights");
    json->erase("folder");
  }
  EXPECT_EQ(a, b);
  EXPECT_EQ(read_file(folder_ / "taken" / "model.safetensors"), weights)
      << "the training run is deterministic";
  EXPECT_TRUE(fs::is_empty(keep / "checkpoints")) << "nothing is left of the training run";
  // Its weights are there now.
  const auto file = keep / "models" / (b.at("evaluation").get<std::string>() + ".pt");
  const auto written = fs::last_write_time(file);
  (void)taken(folder, "baseline", {"--keep", keep.string()});
  EXPECT_EQ(fs::last_write_time(file), written);
}

TEST_F(AnalyseTest, SaysEveryTimeThatWhatWasTrainedAgainIsNotAsRecorded) {
  const auto folder = small_run();
  fs::remove_all(fs::path(folder) / "models");
  record_other_nll(folder);
  const auto keep = folder_ / "keep";
  const auto take = [&] {
    const auto found = taken(folder, "baseline", {"--keep", keep.string()});
    EXPECT_THAT(text(), HasSubstr("warning: the weights of "));
    EXPECT_THAT(found.at("weights").get<std::string>(),
                MatchesRegex("trained again with validation nll [0-9.]+, not [0-9.]+ as recorded"));
    return found.at("evaluation").get<std::string>();
  };
  const auto id = take();
  const auto weights = keep / "models" / (id + ".pt");
  const auto written = fs::last_write_time(weights);
  take();
  EXPECT_EQ(fs::last_write_time(weights), written);
  // An earlier version has kept weights, but not what they score.
  fs::remove(keep / "models" / (id + ".again.json"));
  take();
  std::ofstream(keep / "models" / (id + ".again.json")) << "torn";
  take();
}

TEST_F(AnalyseTest, FindsAMechanismByItsNameOrAsTheTableNamesIt) {
  const auto folder = small_run({"space.kv_heads=1", "evaluation.keep_models=1000"});
  const auto results = results_of(folder);
  const auto winner = results.at("ranking")[0].at("candidate").get<std::string>();
  const auto name = results.at("candidates").at(winner).at("difference").get<std::string>();
  EXPECT_THAT(name, Not(HasSubstr("kv_heads"))) << "which the space fixes";
  EXPECT_EQ(taken(folder, name).at("candidate"), winner);
  const auto found = taken(folder, winner);
  EXPECT_EQ(found.at("candidate"), winner);
  EXPECT_EQ(found.at("folder"),
            folder + "/attention/" + folder_name(found.at("mechanism").get<std::string>()));
}

TEST_F(AnalyseTest, SaysWhatIsWrong) {
  SKIP_WITHOUT_TORCH();
  expect_refusal("nas-analyse", {}, "nas-analyse: command line: give a run and a mechanism");
  expect_refusal("nas-analyse", {"nowhere", "best", "--sequence", "3"},
                 "did you mean --sequences?");
  expect_refusal("nas-analyse", {"nowhere", "best"},
                 "nas-analyse: nowhere: no such store; give a run's folder");
  const auto folder = small_run();
  expect_refusal("nas-analyse", {folder, "dot|softmax|none|fixed|bias|0.7"},
                 "must be best, baseline or one that the run has trained: ");
  EXPECT_THAT(text(), HasSubstr("dot|softmax|none|fixed|bias|0.1, "));
  EXPECT_THAT(text(), HasSubstr("did you mean"));
  expect_refusal("nas-analyse", {folder, "best", "--replicate", "7"},
                 "--replicate = 7, must be one of the trained replicates 0");
  expect_refusal("nas-analyse", {folder, "best", "--sequences", "1"},
                 "--sequences = 1, must be at least 2");
  EXPECT_EQ(run("nas-analyse", {folder, "best", "data.vocabulary=64"}), 2) << text();
  expect_refusal("nas-analyse", {folder, "best", "training.learning_rate=1"},
                 "must be made again with the recorded settings:\n  training.");
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
  ASSERT_TRUE(ran("nas-run", {config("nsga2_zdt.yaml"), "--output", folder, "--no-report",
                              "algorithm.generations=2"}));
  expect_refusal("nas-model", {"take", folder, "best", "-o", folder + "/taken"},
                 "trains no models to look into");
}

}  // namespace
}  // namespace nas::testing
