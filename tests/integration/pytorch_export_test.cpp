// nas-export --format pytorch: which model it takes, what the folder holds, and that PyTorch scores
// a split as the run has recorded it.

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>

#include <sys/stat.h>

#include "integration/changed_record.hpp"
#include "integration/program.hpp"

namespace nas::testing {
namespace {

class PytorchExportTest : public ProgramTest {
 protected:
  int export_model(const std::string& run_folder, const fs::path& to, Texts more = {}) {
    more.insert(more.begin(), {run_folder, "--format", "pytorch", "--output", to.string()});
    return run("nas-export", more);
  }
  static nlohmann::json config_of(const fs::path& model) {
    return nlohmann::json::parse(read_file(model / "config.json"));
  }

  /// Settings of a corpus of words: three files, of lines long enough for either layout.
  Texts words() {
    return {"data={corpus: text_file, vocabulary: 12, train: " + file("train", 60) +
            ", valid: " + file("valid", 9) + ", test: " + file("test", 5) + "}"};
  }
  std::string file(const std::string& name, int lines) {
    const auto path = folder_ / (name + ".txt");
    std::ofstream stream(path);
    for (int line = 0; line < lines; ++line) {
      for (int i = 0; i < 15 + 3 * (line % 4); ++i)
        stream << "w" << (line * line + i * i) % 17 << ' ';
      stream << '\n';
    }
    return path.string();
  }

  /// What model.py says of the validation text, nats per token; nothing where no Python has torch.
  std::optional<double> nll_in_pytorch(const fs::path& model) {
    const char* wanted = std::getenv("NAS_PYTHON");
    const std::string python = wanted != nullptr && *wanted != '\0' ? wanted : "/usr/bin/python3";
    static const bool has_torch =
        std::system((python + " -c 'import torch' > /dev/null 2>&1").c_str()) == 0;
    if (!has_torch) return {};
    const auto output = folder_ / "scores.txt";
    const auto command = python + " -B " + (model / "model.py").string() + " " + model.string() +
                         " --text " + (folder_ / "valid.txt").string() + " > " + output.string() +
                         " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << read_file(output);
    double nll = 0.0;
    EXPECT_EQ(std::sscanf(read_file(output).c_str(), "perplexity %*f, nll %lf", &nll), 1)
        << read_file(output);
    return nll;
  }
  /// What the run has recorded of the same.
  static double recorded_nll(const std::string& run_folder, const std::string& candidate) {
    const auto digest = results_of(run_folder);
    for (const auto& evaluation : digest.at("evaluations")) {
      if (evaluation.at("candidate") != candidate) continue;
      const auto& valid = evaluation.at("curve").back().at("valid");
      return valid.at("nll").get<double>() / valid.at("tokens").get<double>();
    }
    ADD_FAILURE() << "no evaluation of " << candidate;
    return 0.0;
  }
};

TEST_F(PytorchExportTest, TakesTheWinnerWithTheWeightsThatTheRunHasKept) {
  const auto run_folder = small_run({"evaluation.keep_models=1"});
  const auto model = folder_ / "out";
  ASSERT_EQ(export_model(run_folder, model), 0) << text();
  EXPECT_FALSE(fs::exists(folder_ / "out.unfinished"));
  for (const auto* name : {"model.py", "model_attention.py", "model_heads.py", "model_positions.py",
                           "model_recurrent.py", "model.safetensors", "config.json", "README.md"}) {
    EXPECT_TRUE(fs::exists(model / name)) << name;
  }
  EXPECT_FALSE(fs::exists(model / "vocabulary.txt")) << "the corpus has no words";
  const auto winner = results_of(run_folder).at("ranking")[0];
  EXPECT_THAT(text(), HasSubstr(winner.at("mechanism").get<std::string>() +
                                ", weights kept by the run, written to "));
  EXPECT_EQ(config_of(model).at("candidate"), winner.at("candidate"));
  EXPECT_TRUE(config_of(model).at("text").is_null());
  const auto card = read_file(model / "README.md");
  EXPECT_THAT(card, HasSubstr("its mechanism is what it returns, believed the best by perplexity"));
  EXPECT_THAT(card, HasSubstr("attention = Attention(width=16, context=16, heads=2, similarity="));
  EXPECT_THAT(card, HasSubstr("| this one | 1 |"));
  EXPECT_THAT(card, HasSubstr("| the baseline | 1 |"));
  EXPECT_THAT(card, HasSubstr("was not trained again on fresh seeds"));
  EXPECT_THAT(card, HasSubstr("learning_rate: 0.003"));
  EXPECT_THAT(card, HasSubstr("weights: kept by the run"));
  EXPECT_THAT(card, HasSubstr("These weights, kept by the run, are of one training run (seed 1), "
                              "which is recorded with perplexity "));
  EXPECT_THAT(card, Not(HasSubstr("--text")));
}

TEST_F(PytorchExportTest, TrainsAgainWhatWasNotKept) {
  const auto run_folder = small_run({"evaluation.keep_models=1000"});
  ASSERT_EQ(export_model(run_folder, folder_ / "kept", {"--mechanism", "baseline"}), 0) << text();
  fs::remove_all(fs::path(run_folder) / "models");
  ASSERT_EQ(export_model(run_folder, folder_ / "again", {"--mechanism", "baseline"}), 0) << text();
  EXPECT_THAT(text(), Not(HasSubstr("warning")));
  EXPECT_EQ(read_file(folder_ / "kept" / "model.safetensors"),
            read_file(folder_ / "again" / "model.safetensors"));
  EXPECT_THAT(read_file(folder_ / "again" / "README.md"), HasSubstr("weights: trained again"));
  EXPECT_FALSE(fs::exists(folder_ / "again.unfinished"));
}

/// Kept weights of which one bit is another, or which stand in another's place.
TEST_F(PytorchExportTest, DamagedWeightsAreTold) {
  const auto run_folder = small_run({"evaluation.keep_models=1000"});
  const auto models = fs::path(run_folder) / "models";
  std::vector<fs::path> all;
  for (const auto& each : fs::directory_iterator(models)) {
    if (each.path().extension() == ".pt") all.push_back(each.path());
  }
  ASSERT_GE(all.size(), 2U);
  ASSERT_TRUE(ran("nas-run", {"verify", run_folder}));
  EXPECT_THAT(text(), HasSubstr(std::to_string(all.size()) + " kept models as written"));
  const auto weights = all.front();
  const auto description = fs::path(weights).replace_extension(".json");
  const auto mechanism =
      nlohmann::json::parse(read_file(description)).at("mechanism").get<std::string>();
  const auto bytes = read_file(weights);
  const auto words = read_file(description);
  const auto put = [](const fs::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
  };
  const auto refused = [&](const std::string& why) {
    for (const auto& command : std::vector<Texts>{
             {"nas-export", run_folder, "--format", "pytorch", "--mechanism", mechanism, "-o",
              (folder_ / "out").string()},
             {"nas-model", "take", run_folder, mechanism, "--output", (folder_ / "out").string()},
             {"nas-run", "verify", run_folder}}) {
      EXPECT_EQ(run(command.front(), {command.begin() + 1, command.end()}), 2) << text();
      EXPECT_THAT(text(), HasSubstr(why)) << command.front();
    }
    EXPECT_FALSE(fs::exists(folder_ / "out"));
  };
  const std::vector<std::size_t> places{0, bytes.size() / 2, bytes.size() - 1};
  for (const auto place : places) {
    auto other = bytes;
    other[place] ^= 4;
    put(weights, other);
    refused(weights.string() + ": its SHA-256 is ");
  }
  put(weights, read_file(all.back()));
  refused("its SHA-256 is ");
  put(description, read_file(fs::path(all.back()).replace_extension(".json")));
  refused(description.string() + ": ");
  put(weights, bytes);
  put(description, "{");
  refused(description.string() + ": it is no JSON");

  auto old = nlohmann::json::parse(words);
  old.erase("sha256");
  put(description, old.dump());
  ASSERT_TRUE(ran("nas-run", {"verify", run_folder}));
  EXPECT_THAT(text(), HasSubstr("; 1 kept model without one, not checked"));
  ASSERT_EQ(export_model(run_folder, folder_ / "old", {"--mechanism", mechanism}), 0) << text();
  EXPECT_THAT(text(), HasSubstr("kept by the run, by an earlier version, which wrote no digest"));
  EXPECT_THAT(read_file(folder_ / "old" / "README.md"), HasSubstr("which wrote no digest"));

  put(description, words);
  put(weights, bytes + "x");
  EXPECT_TRUE(ran("nas-run", {"verify", run_folder, "--remove"}));
  EXPECT_FALSE(fs::exists(weights) || fs::exists(description));
  ASSERT_EQ(export_model(run_folder, folder_ / "again", {"--mechanism", mechanism}), 0) << text();
  EXPECT_EQ(read_file(folder_ / "again" / "model.safetensors"),
            read_file(folder_ / "old" / "model.safetensors"));
}

TEST_F(PytorchExportTest, WhatWasTrainedAgainStaysUntilTheFolderIsThere) {
  const auto run_folder = small_run({"evaluation.keep_models=1000", "model.width=64"});
  // As a command leaves it that has trained again: with other scores, which training would mend.
  const auto trained = folder_ / "out.unfinished" / "models";
  fs::create_directory(trained.parent_path());
  fs::rename(fs::path(run_folder) / "models", trained);
  const auto results = results_of(run_folder);
  for (const auto& evaluation : results.at("evaluations")) {
    std::ofstream(trained / (evaluation.at("id").get<std::string>() + ".again.json"))
        << R"({"validation_nll": 1})";
  }
  const auto out = folder_ / "out";
  EXPECT_EQ(run("nas-export", {run_folder, "--format", "pytorch", "--output", out.string()},
                [] {
                  const rlimit limit{100'000, RLIM_INFINITY};  // less than the weights take
                  setrlimit(RLIMIT_FSIZE, &limit);
                }),
            75)
      << text();
  EXPECT_THAT(text(), HasSubstr("no space left in " + trained.parent_path().string()));
  EXPECT_FALSE(fs::exists(out));
  EXPECT_TRUE(fs::exists(trained));
  ASSERT_EQ(export_model(run_folder, out), 0) << text();
  EXPECT_THAT(text(), HasSubstr("weights trained again with validation nll 1, not "));
  EXPECT_TRUE(fs::exists(out / "model.safetensors"));
  EXPECT_FALSE(fs::exists(out / "models"));
  EXPECT_FALSE(fs::exists(folder_ / "out.unfinished"));
}

TEST_F(PytorchExportTest, AFolderThatIsThereStays) {
  const auto run_folder = small_run({"evaluation.keep_models=1"});
  const auto inode = [](const fs::path& path) {
    struct stat found {};
    EXPECT_EQ(stat(path.c_str(), &found), 0);
    return found.st_ino;
  };
  const auto empty = folder_ / "empty";
  const auto link = folder_ / "link";
  fs::create_directory(empty);
  fs::create_directory_symlink(empty, link);
  const auto before = inode(empty);
  ASSERT_EQ(export_model(run_folder, link), 0) << text();
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(inode(empty), before);
  for (const auto* name : {"model.py", "model_attention.py", "model_heads.py", "model_positions.py",
                           "model_recurrent.py", "model.safetensors", "config.json", "README.md"}) {
    EXPECT_TRUE(fs::exists(empty / name)) << name;
  }
  EXPECT_FALSE(fs::exists(folder_ / "link.unfinished"));

  const auto here = folder_ / "here";
  fs::create_directory(here);
  ASSERT_TRUE(ran("nas-export", {run_folder, "--format", "pytorch", "--output", "."},
                  [&here] { fs::current_path(here); }));
  EXPECT_EQ(read_file(here / "config.json"), read_file(empty / "config.json"));

  fs::create_directory_symlink("nowhere", folder_ / "dangling");
  EXPECT_EQ(export_model(run_folder, folder_ / "dangling"), 2);
  EXPECT_THAT(text(), HasSubstr("dangling exists already and is no empty folder"));
}

TEST_F(PytorchExportTest, PytorchScoresASplitAsRecorded) {
  for (const bool published : {false, true}) {
    SCOPED_TRACE(published);
    auto settings = words();
    if (published) {
      settings.insert(settings.end(), {"semantics=published", "data.layout=published"});
    }
    const auto run_folder = small_run(settings);
    const auto model = folder_ / (published ? "published" : "standard");
    ASSERT_EQ(export_model(run_folder, model), 0) << text();
    EXPECT_THAT(read_file(model / "vocabulary.txt"),
                StartsWith(published ? "<pad>\n<unk>\n<eos>\nw" : "<unk>\n<eos>\nw"));
    EXPECT_THAT(read_file(model / "README.md"), HasSubstr("The baseline has learned nothing: "));
    const auto nll = nll_in_pytorch(model);
    if (!nll) GTEST_SKIP() << "no Python has torch; NAS_PYTHON may name one";
    const auto recorded = recorded_nll(run_folder, config_of(model).at("candidate"));
    EXPECT_NEAR(*nll, recorded, 1e-5 * recorded);
    fs::remove_all(run_folder);
  }
}

TEST_F(PytorchExportTest, OfPairsItComputesBothHalvesAndNamesThem) {
  auto settings = words();
  settings.emplace_back("baseline=pair(swa{window=4}|linear)");
  const auto run_folder = small_run(settings);
  const auto model = folder_ / "out";
  ASSERT_EQ(export_model(run_folder, model, {"--mechanism", "baseline"}), 0) << text();
  const auto card = read_file(model / "README.md");
  EXPECT_THAT(card, HasSubstr("\n- some of the heads:\n  - mixer `recurrent`: heads with a state"));
  const auto nll = nll_in_pytorch(model);
  if (!nll) GTEST_SKIP() << "no Python has torch; NAS_PYTHON may name one";
  const auto recorded = recorded_nll(run_folder, config_of(model).at("candidate"));
  EXPECT_NEAR(*nll, recorded, 1e-5 * recorded);
}

TEST_F(PytorchExportTest, TellsAFrontAndAVerdict) {
  const auto run_folder =
      small_run({"objectives=[perplexity, flops]", "algorithm={name: random_search, population: 8}",
                 "budget.asks=8", "retest={replicates: 3}"});
  const auto model = folder_ / "out";
  ASSERT_EQ(export_model(run_folder, model), 0) << text();
  const auto card = read_file(model / "README.md");
  EXPECT_THAT(card, HasSubstr("its mechanism is the best by perplexity of the "));
  EXPECT_THAT(card, HasSubstr("Trained again on 3 fresh seeds: test perplexity"));
  const auto verdict = results_of(run_folder).at("retest").at("verdict").get<std::string>();
  EXPECT_THAT(card, HasSubstr("Verdict of the re-test: " + verdict));
}

TEST_F(PytorchExportTest, OfListedMechanismsTheCardSpeaksOfNoSearch) {
  const auto run_folder = (folder_ / "run").string();
  const auto* mechanism = "attn{window=8,pattern=window}";  // its canonical name begins otherwise
  ASSERT_TRUE(ran("nas-train", {mechanism, config("smoke.yaml"), "--output", run_folder, "--seeds",
                                "2", "--no-report"}));
  const auto card = [&](const std::string& name, const fs::path& model) {
    EXPECT_EQ(export_model(run_folder, model, {"--mechanism", name}), 0) << text();
    return read_file(model / "README.md");
  };
  const auto ours = card(mechanism, folder_ / "ours");
  EXPECT_EQ(config_of(folder_ / "ours").at("layers")[0].at("window"), 8);
  EXPECT_THAT(ours, HasSubstr("In the run `"));
  EXPECT_THAT(ours, HasSubstr("` its mechanism is compared with the baseline.\n"));
  EXPECT_THAT(ours, HasSubstr("Of the validation split: means over n training runs"));
  EXPECT_THAT(ours, HasSubstr("\nTrained on 2 seeds: test perplexity "));
  EXPECT_THAT(ours, HasSubstr("\nVerdict: "));
  EXPECT_THAT(ours, Not(HasSubstr("Trained again")));
  EXPECT_THAT(card("baseline", folder_ / "theirs"),
              HasSubstr("` its mechanism is the baseline, which others are compared with.\n"));
}

TEST_F(PytorchExportTest, ABaselineThatDivergedIsNamedSo) {
  const auto run_folder = small_run();
  const auto baseline = results_of(run_folder).at("baseline").at("candidate").get<std::string>();
  change_evaluations(run_folder, [&baseline](Evaluation& evaluation) {
    if (evaluation.candidate != baseline) return;
    evaluation.status = Status::diverged;
    evaluation.reason = "the loss is nan";
  });
  EXPECT_EQ(export_model(run_folder, folder_ / "out", {"--mechanism", "baseline"}), 2);
  EXPECT_THAT(text(), HasSubstr("mechanism = baseline, but that of the run, "));
  EXPECT_THAT(text(), HasSubstr(", is diverged: the loss is nan\n"));
}

TEST_F(PytorchExportTest, SaysWhatIsWrongAndWritesNothing) {
  const auto run_folder = small_run();
  const auto out = folder_ / "out";
  EXPECT_EQ(export_model(run_folder, out, {"--mechanism", "dot|softmax|none|fixed|bias|0.7"}), 2);
  EXPECT_THAT(text(), HasSubstr("must be best, baseline or one that the run has trained"));
  EXPECT_THAT(text(), HasSubstr("dot|softmax|none|fixed|bias|0.1, "));
  EXPECT_THAT(text(), HasSubstr("did you mean"));
  EXPECT_EQ(export_model(run_folder, folder_ / "same",
                         {"--mechanism", "dot|softmax|none|fixed|bias|0.10"}),
            0)
      << text();
  EXPECT_EQ(export_model("nowhere", out), 2);
  EXPECT_THAT(text(), HasSubstr("nowhere: no such store"));
  EXPECT_EQ(export_model(run_folder, out, {"data.vocabulary=64"}), 2);
  EXPECT_EQ(export_model(run_folder, out, {"--force"}), 2);
  EXPECT_THAT(text(), HasSubstr("--force is not for --format pytorch"));
  expect_refusal("nas-export", {run_folder, "--format", "pytorch"},
                 "--format pytorch needs --output FOLDER");
  expect_refusal("nas-export", {run_folder, "--canonical", "--mechanism", "best"},
                 "--mechanism belongs to --format pytorch, not to canonical");
  EXPECT_EQ(export_model(run_folder, run_folder), 2);
  EXPECT_THAT(text(), HasSubstr(run_folder + " exists already and is no empty folder"));
  EXPECT_FALSE(fs::exists(out));
  EXPECT_FALSE(fs::exists(folder_ / "out.unfinished"));
  EXPECT_EQ(run("nas-export", {"--help"}), 0);
  EXPECT_THAT(text(), HasSubstr("--mechanism NAME"));
}

}  // namespace
}  // namespace nas::testing
