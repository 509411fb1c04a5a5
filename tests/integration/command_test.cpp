#include "integration/program.hpp"

namespace nas::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::Test;

class CommandTest : public ProgramTest {
 protected:
  fs::path write_config(const std::string& text) {
    const auto file = folder_ / "mine.yaml";
    std::ofstream(file) << text;
    return file;
  }
  void expect_text(const std::string& part) const {
    EXPECT_NE(text().find(part), std::string::npos) << "no '" << part << "' in:\n" << text();
  }
};

TEST_F(CommandTest, SmokeSearchLeavesItsResults) {
  const auto out = folder_ / "run";
  ASSERT_EQ(run("nas-run", {config("smoke.yaml"), "--output", out.string()}), 0) << text();
  expect_text("baseline");
  for (const auto* name : {"store.sqlite", "results.json", "evaluations.csv", "progress.svg"}) {
    EXPECT_TRUE(fs::exists(out / name)) << name;
  }
  // A finished run just shows its result again.
  const auto first = canonical_export(out);
  ASSERT_EQ(run("nas-run", {config("smoke.yaml"), "--output", out.string()}), 0) << text();
  EXPECT_EQ(canonical_export(out), first);
}

TEST_F(CommandTest, EveryMistakeIsReportedAtOnceAndNothingIsWritten) {
  const auto file = write_config("extends: " + config("smoke.yaml") +
                                 "\n"
                                 "training:\n"
                                 "  stepz: 5\n"
                                 "  batch_size: many\n"
                                 "space:\n"
                                 "  normalization: [softmax, sparsmax]\n"
                                 "model:\n"
                                 "  dropout: 1.5\n");
  const auto out = folder_ / "run";
  EXPECT_EQ(run("nas-run", {file.string(), "--output", out.string()}), 2);
  expect_text("mine.yaml:3:");
  expect_text("did you mean steps?");
  expect_text("mine.yaml:4:");
  expect_text("mine.yaml:6:");
  expect_text("sparsemax");
  expect_text("mine.yaml:8:");
  EXPECT_FALSE(fs::exists(out));
}

TEST_F(CommandTest, DryRunWritesNothing) {
  const auto out = folder_ / "run";
  ASSERT_EQ(run("nas-run", {config("smoke.yaml"), "--dry-run", "--output", out.string()}), 0)
      << text();
  expect_text("evaluations");
  expect_text("parameters");
  EXPECT_FALSE(fs::exists(out));
}

TEST_F(CommandTest, ShippedConfigurationsAreValid) {
  for (const auto& entry : fs::directory_iterator(std::string(NAS_SOURCE_DIR) + "/configs")) {
    const int code = run("nas-run", {entry.path().string(), "--dry-run"});
    const bool needs_data = text().find("nas-data get") != std::string::npos;
    EXPECT_TRUE(code == 0 || (code == 2 && needs_data)) << entry.path() << ":\n" << text();
  }
}

TEST_F(CommandTest, ListDescribeHelpVersion) {
  ASSERT_EQ(run("nas-run", {"list"}), 0);
  for (const auto* key : {"evo_ga", "attention_search", "perplexity", "sparsemax", "entmax15",
                          "softmax1", "top_k", "bilinear", "mqar", "brown", "wikitext-2"}) {
    expect_text(key);
  }
  ASSERT_EQ(run("nas-run", {"describe", "evo_ga"}), 0);
  expect_text("crossover");
  EXPECT_EQ(run("nas-run", {"describe", "evo_gaa"}), 2);
  expect_text("evo_ga");
  EXPECT_EQ(run("nas-run", {"--help"}), 0);
  expect_text("--dry-run");
  EXPECT_EQ(run("nas-run", {"--version"}), 0);
  expect_text("LibTorch");
  EXPECT_EQ(run("nas-run", {}), 2);
  EXPECT_EQ(run("nas-run", {"--frobnicate"}), 2);
  EXPECT_EQ(run("nas-run", {(folder_ / "absent.yaml").string()}), 2);
  expect_text("absent.yaml");
}

TEST_F(CommandTest, BadCandidatesAreRecordedAndTheSearchGoesOn) {
  const auto out = folder_ / "run";
  // A learning rate at which every training diverges.
  ASSERT_EQ(run("nas-run", {config("smoke.yaml"), "--output", out.string(),
                            "training.learning_rate=1e30", "training.steps=20"}),
            0)
      << text();
  expect_text("diverged");
  const auto small = folder_ / "small";
  ASSERT_EQ(run("nas-run", {config("smoke.yaml"), "--output", small.string(),
                            "evaluation.memory_limit=0.0001"}),
            0)
      << text();
  expect_text("out_of_memory");
}

TEST_F(CommandTest, BestModelsAreKept) {
  const auto out = folder_ / "run";
  ASSERT_EQ(
      run("nas-run", {config("smoke.yaml"), "--output", out.string(), "evaluation.keep_models=2"}),
      0)
      << text();
  int weights = 0;
  for (const auto& entry : fs::directory_iterator(out / "models")) {
    weights += entry.path().extension() == ".pt" ? 1 : 0;
  }
  EXPECT_EQ(weights, 2);
}

}  // namespace
}  // namespace nas::testing
