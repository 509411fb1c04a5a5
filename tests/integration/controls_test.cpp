// The controls of a run, with real trainings.

#include "core/error.hpp"
#include "core/format.hpp"
#include "integration/program.hpp"
#include "study/reader/experiment.hpp"
#include "study/stages/gates.hpp"

namespace nas::testing {
namespace {

using Names = Texts;

class ControlsTest : public ProgramTest {
 protected:
  [[nodiscard]] Names search(const fs::path& folder, const Names& further = {}) const {
    Names arguments{config("smoke.yaml"),   "--output",    folder.string(), "controls=true",
                    "budget.evaluations=4", "--no-report", "model.layers=2"};
    arguments.insert(arguments.end(), further.begin(), further.end());
    return arguments;
  }
};

TEST_F(ControlsTest, HaveTheSeedsOfTheBaseline) {
  const auto folder = folder_ / "run";
  ASSERT_TRUE(ran("nas-run", search(folder, {"evaluation.replicates=2"})));
  expect_text("controls 8/8");
  expect_text("window 8");
  const auto found = results_of(folder);
  std::map<std::string, std::pair<std::int64_t, nlohmann::json>> by_id;
  for (const auto& one : found["evaluations"]) {
    by_id[one["id"]] = {one["replicate"], one["identity"]};
  }
  const auto seeds = [&](const nlohmann::json& row) {
    std::set<std::pair<std::int64_t, nlohmann::json>> of;
    for (const auto& id : row["evaluations"]) of.insert(by_id.at(id));
    return of;
  };
  std::map<std::string, std::string> names;
  for (const auto& row : found["controls"]) {
    names[row["name"]] = row["candidate"];
    EXPECT_EQ(row["n"], 2);
    EXPECT_EQ(seeds(row), seeds(found["baseline"])) << "trained alike, on the same seeds";
  }
  EXPECT_EQ(names,
            (std::map<std::string, std::string>{{"no mixer", "2*none"},
                                                {"window 2", "2*attn{pattern=window,window=2}"},
                                                {"window 4", "2*attn{pattern=window,window=4}"},
                                                {"window 8", "2*attn{pattern=window,window=8}"}}));
  // Finished: nothing is trained again.
  ASSERT_TRUE(ran("nas-run", search(folder, {"evaluation.replicates=2"})));
  EXPECT_EQ(results_of(folder)["evaluations"].size(), found["evaluations"].size());
  ASSERT_TRUE(ran("nas-run", {"verify", folder.string(), "--retrain", "20"}));
}

TEST_F(ControlsTest, ARetestHasThemOnItsOwnSeeds) {
  const auto folder = folder_ / "run";
  ASSERT_TRUE(ran("nas-run", search(folder, {"retest.replicates=3"})));
  const auto found = results_of(folder);
  EXPECT_TRUE(found["controls"].empty());
  std::map<std::string, int> roles;
  for (const auto& one : found["retest"]["candidates"]) ++roles[one["role"]];
  EXPECT_EQ(roles["control"], 4);
  EXPECT_TRUE(found["retest"]["best_control"].is_string());
  const auto verdict = found["retest"]["verdict"].get<std::string>();
  EXPECT_LT(verdict.find("control"), verdict.find("The search's scores")) << verdict;
}

TEST_F(ControlsTest, ListedMechanismsHaveThemAndKeepTheirModels) {
  const auto folder = folder_ / "run";
  ASSERT_TRUE(ran("nas-train", {"dot|sparsemax|none|fixed|bias|0.1", config("smoke.yaml"),
                                "--output", folder.string(), "--seeds", "2", "controls=true",
                                "model.context=4", "data.pairs=1", "--no-report"}));
  const auto found = results_of(folder);
  std::map<std::string, std::string> roles;
  for (const auto& one : found["retest"]["candidates"]) roles[one["label"]] = one["role"];
  EXPECT_EQ(roles,
            (std::map<std::string, std::string>{{"sparsemax", "listed"},
                                                {"dot|softmax|none|fixed|bias|0.1", "baseline"},
                                                {"no mixer", "control"},
                                                {"window 2", "control"}}))
      << "a window of 4 tokens is the whole context";
  std::set<std::string> kept;
  for (const auto& file : fs::directory_iterator(folder / "models")) {
    kept.insert(file.path().stem().string());
  }
  EXPECT_FALSE(kept.empty());
  for (const auto& one : found["retest"]["candidates"]) {
    EXPECT_GE(one["rates"].size(), 3U) << one["label"];
    for (const auto& id : one["evaluations"]) {
      EXPECT_FALSE(one["role"] == "control" && kept.contains(id)) << one["label"];
      kept.erase(id);
    }
  }
  EXPECT_TRUE(kept.empty()) << "at its rate, none of those that find one";
}

TEST_F(ControlsTest, AndRetestsOfASearchKeepNoModels) {
  ASSERT_TRUE(
      ran("nas-run", search(folder_ / "run", {"evaluation.keep_models=1000",
                                              "training.score_test=true", "retest.replicates=2"})));
  EXPECT_EQ(text().find("keep_models"), std::string::npos) << text();
}

TEST_F(ControlsTest, ThePublishedCodeHasNone) {
  ASSERT_TRUE(ran("nas-run", search(folder_ / "run", {"semantics=published"})));
  EXPECT_TRUE(results_of(folder_ / "run")["controls"].empty());
}

TEST_F(ControlsTest, AreRefusedWhereNothingIsTrained) {
  expect_refusal(
      "nas-run",
      {config("cmaes_sphere.yaml"), "controls=true", "--output", (folder_ / "run").string()},
      "controls: the problem sphere has none, must be left out");
}

TEST_F(ControlsTest, GatesAreJudgedByAccuracyWhereThatIsFirst) {
  const auto folder = folder_ / "gates";
  const Names command{"--gates",         config("smoke.yaml"), "objectives=[accuracy]",
                      "model.context=4", "training.steps=2",   "data.pairs=1",
                      "--output",        folder.string()};
  auto planned = command;
  planned.emplace_back("--dry-run");
  ASSERT_TRUE(ran("nas-train", planned));
  expect_text("pilot         69 training runs: baseline, no mixer, window 2 with 5 learning rates");
  expect_text("more rates where the best is the first or the last");
  expect_text("judged by accuracy on the validation split");
  EXPECT_FALSE(fs::exists(folder)) << "a dry run writes nothing";
  EXPECT_EQ(run("nas-train", command), 3) << text();
  const auto record = nlohmann::json::parse(read_file(folder / "gates.json"));
  EXPECT_EQ(record["measure"], "accuracy");
  const auto& baseline = record["models"][0];
  for (const auto* key : {"valid_accuracy", "test_accuracy"}) {
    ASSERT_EQ(baseline[key].size(), 8U);
    for (const double value : baseline[key]) {
      EXPECT_GE(value, 0.0);
      EXPECT_LE(value, 1.0);
    }
  }
  EXPECT_EQ(baseline["tuning"][0]["valid_accuracy"].size(), 3U);
  EXPECT_FALSE(baseline.contains("valid_nll"));
  EXPECT_EQ(record["gates"].dump().find("perplexity"), std::string::npos) << record["gates"];
}

/// The configurations that have a record of gates give the rates that it found.
TEST_F(ControlsTest, ShippedConfigurationsGiveTheRatesOfTheirGates) {
  const fs::path root = source_folder();
  int compared = 0;
  for (const auto& file : fs::directory_iterator(root / "analysis/results/task_gates")) {
    const auto config = root / "configs" / file.path().stem().replace_extension(".yaml");
    if (!fs::exists(config)) continue;
    ++compared;
    const auto record = nlohmann::json::parse(read_file(file.path()));
    Texts given;
    for (const auto* name :
         {"baseline", "no mixer", "window 2", "window 4", "window 8", "window 16", "window 32"}) {
      const auto rates = load_experiment(config, {}).rates;
      const auto rate = rates.find(name);
      if (rate != rates.end()) given.push_back(name + (' ' + shortest(rate->second)));
    }
    EXPECT_EQ("rates: [" + join(given) + "]", rates_text(record)) << config;
  }
  EXPECT_GE(compared, 5);
}

TEST_F(ControlsTest, GatesOfATaskAreTriedOnceAndRecorded) {
  const auto folder = folder_ / "gates";
  const Names command{"--gates", config("smoke.yaml"), "--output", folder.string()};
  const auto code = run("nas-train", command);
  EXPECT_TRUE(code == 0 || code == 3) << text();
  const auto record = nlohmann::json::parse(read_file(folder / "gates.json"));
  EXPECT_EQ(record["passed"], code == 0);
  EXPECT_EQ(record["models"][0]["name"], "baseline");
  std::map<std::string, std::size_t> rates;
  for (const auto& model : record["models"]) {
    rates[model["name"]] = model["tuning"].size();
    EXPECT_EQ(model["valid_nll"].size(), 8U);
  }
  EXPECT_EQ(rates.size(), 5U);
  for (const auto& [name, number] : rates) {
    EXPECT_GE(number, 5U) << name << ": longer windows, too";
    EXPECT_LE(number, 7U) << name;
  }
  EXPECT_EQ(record["count_models"].size(), 6U);
  expect_text(record["verdict"].get<std::string>().substr(0, 20));
  // The same command trains nothing again.
  ASSERT_EQ(run("nas-train", command), code) << text();
  EXPECT_EQ(nlohmann::json::parse(read_file(folder / "gates.json")), record);
  expect_text("for the configuration: rates: [");
  expect_refusal("nas-train",
                 {"--gates", config("cmaes_sphere.yaml"), "--output", (folder_ / "none").string()},
                 "gates: the problem sphere trains no baseline, must be one that does");
  EXPECT_FALSE(fs::exists(folder_ / "none"));
  expect_refusal("nas-train", {"--gates"}, "no configuration given");
}

}  // namespace
}  // namespace nas::testing
