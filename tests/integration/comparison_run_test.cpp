#include <SQLiteCpp/SQLiteCpp.h>

#include "core/seed.hpp"
#include "core/stop.hpp"
#include "integration/program.hpp"
#include "store/store.hpp"
#include "table/comparison_store.hpp"
#include "table/table.hpp"
#include "unit/small_table.hpp"

namespace nas::testing {
namespace {

/// Comparisons on a small table, as a user runs them.
class ComparisonRunTest : public ProgramTest {
 protected:
  ComparisonRunTest() { write_table(small_content(), table_); }

  /// Writes a configuration: what all searches share, then the rest.
  [[nodiscard]] std::string write(const std::string& name, const std::string& rest,
                                  const std::string& objectives = "[perplexity]",
                                  const std::string& budget = "{evaluations: 10}") const {
    std::ofstream(folder_ / name) << "name: small\nseed: 5\nproblem: {type: tabular, table: "
                                  << table_.string() << "}\nobjectives: " << objectives
                                  << "\nbudget: " << budget << "\n"
                                  << rest;
    return (folder_ / name).string();
  }
  static std::string algorithms(const std::string& list) { return "algorithms: " + list + "\n"; }

  /// @return the exit code.
  int compare(const std::string& config, const std::string& output, const Texts& more = {}) {
    Texts words{config, "-q", "--no-report", "-o", (folder_ / output).string()};
    words.insert(words.end(), more.begin(), more.end());
    return run("nas-compare", words);
  }
  [[nodiscard]] ComparisonStore store(const std::string& output) const {
    return ComparisonStore(folder_ / output / "comparison.sqlite",
                           ComparisonStore::Mode::read_only);
  }

  /// All that a comparison found, in words, but for the seconds that searches took.
  [[nodiscard]] std::string found(const std::string& output) const {
    const auto comparison = store(output);
    nlohmann::json json;
    const auto algorithms = comparison.algorithms();
    for (std::size_t i = 0; i < algorithms.size(); ++i) {
      auto& searches = json[algorithms[i].name];
      comparison.for_each_search(static_cast<std::int64_t>(i), [&](const ComparedSearch& search) {
        searches.push_back({search.seed, search.ended_by, search.trajectory.candidates,
                            search.trajectory.trained, search.trajectory.seconds,
                            search.trajectory.fitness});
      });
    }
    return json.dump();
  }

  /// Holds the search of the first seed to the run that nas-run makes of it.
  void expect_as_nas_run(const std::string& algorithm, const std::string& objectives,
                         const std::string& evaluation = "{}",
                         const std::string& budget = "evaluations: 10",
                         const std::string& rest = "") {
    const auto one =
        write("one.yaml", "algorithm: " + algorithm + "\nevaluation: " + evaluation + "\n" + rest,
              objectives, "{" + budget + ", asks: 500}");
    const auto run_folder = folder_ / ("run of " + algorithm + evaluation + budget);
    ASSERT_EQ(run("nas-run", {one, "-o", run_folder.string(), "--no-report"}), 0) << this->text();

    const auto output = "comparison of " + algorithm + evaluation + budget;
    const auto many = write(
        "many.yaml",
        algorithms("[" + algorithm + "]") + "evaluation: " + evaluation + "\nseeds: 2\n" + rest,
        objectives, "{" + budget + ", asks: 500}");
    ASSERT_EQ(compare(many, output), 0) << this->text();

    const Store recorded(run_folder / "store.sqlite", Store::Mode::read_only);
    const Table table(table_);
    Trajectory expected;
    std::set<std::string> charged;
    double seconds = 0.0;
    std::int64_t steps = 0;
    for (const auto& ask : recorded.asks()) {
      for (const auto& id : ask.evaluations) {
        const auto answer = *recorded.find(id);
        if (is_screened_out(answer) || !charged.insert(id).second) continue;
        seconds += answer.measured.value("train_seconds", 0.0);
        steps += answer.curve.back().step;
      }
      const auto candidate = recorded.find(ask.evaluations.front())->candidate;
      expected.candidates.push_back(static_cast<std::int32_t>(table.find(candidate).value()));
      expected.trained.push_back(static_cast<std::int32_t>(charged.size()));
      expected.seconds.push_back(seconds);
      expected.steps.push_back(steps);
      expected.fitness.insert(expected.fitness.end(), ask.fitness.begin(), ask.fitness.end());
    }
    const auto comparison = store(output);
    EXPECT_EQ(comparison.seeds(0), (std::set<std::int64_t>{5, 6}));
    comparison.for_each_search(0, [&](const ComparedSearch& search) {
      if (search.seed != 5) {
        EXPECT_NE(search.trajectory, expected);
        return;
      }
      EXPECT_EQ(search.trajectory, expected) << algorithm;
      EXPECT_EQ(search.ended_by, recorded.meta("ended_by")) << algorithm;
    });
    EXPECT_EQ(comparison.meta("objectives"), recorded.meta("objectives"));
  }

  const fs::path table_ = folder_ / "small.table";
};

TEST_F(ComparisonRunTest, ASearchIsTheOneThatNasRunMakes) {
  expect_as_nas_run("{name: evo_ga, population: 8}", "[perplexity]");
  expect_as_nas_run("{name: evo_ga, population: 8}", "[perplexity]",
                    "{repeated: replicate, replicates: 2}");
  expect_as_nas_run("{name: cmaes, generations: 30}", "[perplexity]", "{repeated: retrain}");
  expect_as_nas_run("{name: nsga2, population: 8}", "[perplexity, attention_flops, latency]");
}

/// Of the last batch nas-run answers what is there: its baseline, which it knew before, and what
/// is rejected untrained, wherever the time of training ends.
TEST_F(ComparisonRunTest, ASearchEndedByItsTrainingTimeIsTheOneThatNasRunMakes) {
  const std::string algorithm = "{name: evo_ga, population: 8}";
  const std::string baseline = "baseline: dot|softmax|none|learned|bias|0\n";
  expect_as_nas_run(algorithm, "[perplexity]", "{}", "evaluations: 100, train_seconds: 100",
                    baseline);
  expect_as_nas_run(algorithm, "[perplexity]", "{repeated: retrain, replicates: 2}",
                    "evaluations: 100, train_seconds: 140",
                    baseline + "constraints: [parameters <= 3200]\n");
}

TEST_F(ComparisonRunTest, TheStoreSaysWhatWasComparedAndTheTruth) {
  ASSERT_EQ(compare(write("a.yaml", algorithms("[random_search]") + "seeds: 1\n"), "a"), 0)
      << text();
  EXPECT_THAT(text(), HasSubstr("random_search"));
  EXPECT_THAT(text(),
              HasSubstr("by how much the perplexity of what they return is worse than the best"));
  EXPECT_THAT(text(), HasSubstr("true regret"));
  EXPECT_THAT(text(),
              HasSubstr("written to " + (folder_ / "a" / "comparison.sqlite").string() + "\n"));
  const auto comparison = store("a");
  EXPECT_EQ(comparison.meta("kind"), "comparison");
  EXPECT_EQ(comparison.meta("budget")->at("trainings"), 10);
  EXPECT_EQ(comparison.meta("budget")->at("asks"), 500);
  EXPECT_EQ(comparison.meta("reference_point"), 1.1);
  const auto table = *comparison.meta("table");
  EXPECT_EQ(table.at("name"), "small");
  EXPECT_EQ(table.at("file"), table_.string());
  EXPECT_EQ(table.at("sha256"), Table(table_).sha256());
  EXPECT_EQ(table.at("mechanisms"), 12);
  EXPECT_EQ(table.at("replicates"), 3);
  EXPECT_EQ(table.at("mode"), "noisy");
  EXPECT_EQ(comparison.algorithms().front().key, "random_search");
  const auto candidates = comparison.candidates();
  ASSERT_EQ(candidates.size(), 12U);
  double truth = 0.0;
  double believed = 0.0;
  for (std::int64_t replicate = 0; replicate < 3; ++replicate) {
    const auto values = small_evaluation(candidates[4].name, replicate).values;
    truth += values.at("test_perplexity") / 3.0;
    believed += values.at("perplexity") / 3.0;
  }
  EXPECT_NEAR(candidates[4].truth.at(0), truth, 1e-9);
  EXPECT_NEAR(candidates[4].believed.at(0), believed, 1e-9);
}

TEST_F(ComparisonRunTest, DoesNotDependOnTheNumberOfThreads) {
  const auto config = write("a.yaml", algorithms("[random_search, evo_ga, motpe]") + "seeds: 20\n");
  ASSERT_EQ(compare(config, "one", {"--threads", "1"}), 0) << text();
  ASSERT_EQ(compare(config, "four", {"--threads", "4"}), 0) << text();
  EXPECT_EQ(found("one"), found("four"));
}

TEST_F(ComparisonRunTest, FurtherSeedsAndAlgorithmsContinueIt) {
  const auto first = write("a.yaml", algorithms("[random_search]"));
  ASSERT_EQ(compare(first, "grown", {"--seeds", "3"}), 0) << text();
  double seconds = 0.0;
  store("grown").for_each_search(
      0, [&](const ComparedSearch& search) { seconds += search.search_seconds; });
  const auto both = write("a.yaml", algorithms("[evo_ga, random_search]"));
  ASSERT_EQ(compare(both, "grown", {"--seeds", "5", "--algorithms", "evo_ga"}), 0) << text();
  double again = 0.0;
  store("grown").for_each_search(
      0, [&](const ComparedSearch& search) { again += search.search_seconds; });
  EXPECT_EQ(again, seconds) << "what is there must not be searched again";
  const auto recorded = store("grown").meta("config")->at("algorithms");
  ASSERT_EQ(recorded.size(), 2U) << "what is not searched now stays on record";
  EXPECT_EQ(recorded[0].at("label"), "random_search");
  EXPECT_EQ(recorded[0].at("seeds"), 3);
  EXPECT_EQ(recorded[1].at("label"), "evo_ga");
  ASSERT_EQ(compare(both, "grown", {"--seeds", "5"}), 0) << text();
  EXPECT_EQ(store("grown").meta("config")->at("algorithms").size(), 2U) << "none of them twice";
  ASSERT_EQ(compare(both, "whole", {"--seeds", "5"}), 0) << text();
  EXPECT_EQ(found("grown"), found("whole"));
}

TEST_F(ComparisonRunTest, EveryRevisionThatHasSearchedIsKeptAndSeveralAreWarnedOf) {
  const auto config = write("a.yaml", algorithms("[random_search]"));
  const auto warned = HasSubstr("holds searches by several revisions of attnas: ");
  ASSERT_EQ(compare(config, "a", {"--seeds", "2"}), 0) << text();
  ASSERT_EQ(compare(config, "a", {"--seeds", "3"}), 0) << text();
  EXPECT_THAT(text(), Not(warned));
  const auto own = *store("a").meta("environments");
  ASSERT_EQ(own.size(), 1U);
  auto other = own[0];
  other["revision"] = "0123456";
  ComparisonStore(folder_ / "a" / "comparison.sqlite")
      .set_meta("environments", nlohmann::json::array({other}));
  ASSERT_EQ(compare(config, "a", {"--seeds", "3"}), 0) << text();
  EXPECT_THAT(text(), Not(warned)) << "nothing was missing";
  ASSERT_EQ(compare(config, "a", {"--seeds", "4"}), 0) << text();
  EXPECT_THAT(text(), warned);
  EXPECT_THAT(text(), HasSubstr("0123456"));
  EXPECT_EQ(*store("a").meta("environments"), nlohmann::json::array({other, own[0]}));
  ASSERT_EQ(compare(config, "a", {"--seeds", "4"}), 0) << text();
  EXPECT_THAT(text(), warned) << "they are still there";
}

TEST_F(ComparisonRunTest, AStoppedOneContinues) {
  const auto config = write("a.yaml", algorithms("[random_search, evo_ga]"));
  Program program("nas-compare",
                  {config, "--seeds", "300000", "-o", (folder_ / "stopped").string()},
                  folder_ / "stopped.txt");
  int code = -1;
  const auto file = folder_ / "stopped" / "comparison.sqlite";
  for (int i = 0; i < 1000 && !fs::exists(file); ++i) {
    ASSERT_FALSE(program.wait_for(std::chrono::milliseconds(10), code));
  }
  ASSERT_FALSE(program.wait_for(std::chrono::milliseconds(1500), code)) << "it is too short";
  program.kill(SIGINT);
  EXPECT_EQ(program.wait(), 130) << read_file(folder_ / "stopped.txt");
  EXPECT_THAT(read_file(folder_ / "stopped.txt"), HasSubstr("the same command continues"));
  const auto kept = store("stopped").seeds(0).size();
  ASSERT_GT(kept, 0U);
  ASSERT_LT(kept, 300000U);
  ASSERT_EQ(compare(config, "stopped", {"--seeds", std::to_string(kept + 2)}), 0) << text();
  EXPECT_EQ(store("stopped").seeds(0).size(), kept + 2);
}

TEST_F(ComparisonRunTest, KilledSeveralTimesEndsLikeAnUninterruptedOne) {
  const auto config = write("a.yaml", algorithms("[random_search, evo_ga]"));
  const Texts seeds{"--seeds", "3000"};
  ASSERT_EQ(compare(config, "whole", seeds), 0) << text();
  const auto killed = folder_ / "killed";
  kill_at_random_moments("nas-compare",
                         {config, "--seeds", "3000", "-q", "--no-report", "-o", killed.string()},
                         killed);
  ASSERT_EQ(compare(config, "killed", seeds), 0) << text();
  EXPECT_EQ(found("killed"), found("whole"));
}

TEST_F(ComparisonRunTest, AReaderAtTheMomentOfACommitDoesNotStopIt) {
  const auto config = write("a.yaml", algorithms("[random_search]"));
  ASSERT_EQ(compare(config, "read", {"--seeds", "2"}), 0) << text();
  SQLite::Database reader((folder_ / "read" / "comparison.sqlite").string(), SQLite::OPEN_READONLY);
  SQLite::Statement select(reader, "SELECT seed FROM searches ORDER BY seed");
  ASSERT_TRUE(select.executeStep());  // a lock for reading from here on
  EXPECT_EQ(compare(config, "read", {"--seeds", "2000"}), 0) << text();
  int rows = 1;
  while (select.executeStep()) ++rows;
  EXPECT_EQ(rows, 2) << "a reader sees what there was when it began";
}

TEST_F(ComparisonRunTest, AnotherComparisonInTheFolderIsRefused) {
  const std::string rest = algorithms("[{name: evo_ga, label: it, population: 8}]") + "seeds: 2\n";
  const auto config = write("a.yaml", rest);
  ASSERT_EQ(compare(config, "a"), 0) << text();
  const auto before = read_file(folder_ / "a" / "comparison.sqlite");
  const auto refused = [&](const std::string& why, const Texts& more) {
    EXPECT_EQ(compare(config, "a", more), 2) << why;
    EXPECT_THAT(text(), HasSubstr(why));
    EXPECT_EQ(read_file(folder_ / "a" / "comparison.sqlite"), before) << why;
  };
  refused("of another budget:\n  trainings: 10 -> 11",
          {"budget.evaluations=11", "budget.asks=500"});
  refused("problem.mode: \"noisy\" -> \"paired\"", {"problem.mode=paired"});
  refused("objectives: ", {"objectives=[accuracy]"});
  auto cells = small_cells();
  cells.pop_back();
  write_table(small_content(cells), folder_ / "other.table");
  refused("on another table: small (", {"problem.table=" + (folder_ / "other.table").string()});
  (void)write("a.yaml", algorithms("[{name: evo_ga, label: it, population: 9}]") + "seeds: 2\n");
  refused("algorithms.it.population: 8 -> 9", {});
  (void)write("a.yaml", algorithms("[{name: regularized_evolution, label: it, population: 8}]") +
                            "seeds: 2\n");
  refused("algorithms.it.name: \"evo_ga\" -> \"regularized_evolution\"", {});
  (void)write("a.yaml",
              algorithms("[{name: evo_ga, population: 9, label: larger}]") + "seeds: 2\n");
  EXPECT_EQ(compare(config, "a"), 0) << text();
  fs::copy(table_, folder_ / "copy.table");
  EXPECT_EQ(compare(config, "a", {"problem.table=" + (folder_ / "copy.table").string()}), 0)
      << "the same table elsewhere: " << text();
  {
    ComparisonStore older(folder_ / "a" / "comparison.sqlite");
    older.set_meta("answering", 1);
  }
  EXPECT_EQ(compare(config, "a"), 2);
  EXPECT_THAT(text(), HasSubstr("whose candidates were judged by older rules"));
}

TEST_F(ComparisonRunTest, WhatIsDamagedIsNamedAndNothingIsChanged) {
  const auto config = write("a.yaml", algorithms("[random_search]"));
  ASSERT_EQ(compare(config, "a", {"--seeds", "2"}), 0) << text();
  const auto file = folder_ / "a" / "comparison.sqlite";
  fs::copy_file(file, folder_ / "whole");
  const auto refused = [&](const std::string& change, const std::string& why) {
    SQLite::Database(file.string(), SQLite::OPEN_READWRITE).exec(change);
    const auto before = read_file(file);
    EXPECT_EQ(compare(config, "a", {"--seeds", "3"}), 2) << change;
    EXPECT_THAT(text(), HasSubstr("nas-compare: " + file.string() + ": " + why)) << change;
    EXPECT_EQ(read_file(file), before) << change;
    fs::copy_file(folder_ / "whole", file, fs::copy_options::overwrite_existing);
  };
  const auto set = [](const std::string& fact, const std::string& value) {
    return "UPDATE meta SET value = " + value + " WHERE key = '" + fact + "'";
  };
  refused(set("table", "'7'"), "the fact table is damaged: ");
  refused(set("table", "'{\"sha256\": 7}'"), "the fact table is damaged: ");
  refused(set("budget", "'[]'"), "the fact budget is damaged: ");
  refused(set("config", "'[]'"), "the fact config is damaged: ");
  refused(set("config", "json_set(value, '$.algorithms', json('[7]'))"),
          "the fact config is damaged: ");
  refused(set("environments", "'{}'"), "the fact environments is damaged: ");
  refused(set("environments", "'[{\"revision\": 7}]'"), "the fact environments is damaged: ");
  for (const std::string fact : {"table", "budget", "config", "objectives"}) {
    refused("DELETE FROM meta WHERE key = '" + fact + "'",
            "the fact " + fact + " is damaged: it is missing; put a copy of the file in");
  }
  refused("UPDATE algorithms SET settings = '7'", "the algorithm random_search is damaged: ");
  refused("UPDATE candidates SET truth = '7'", "the candidate ");
  refused("UPDATE searches SET fitness = zeroblob(length(fitness)) WHERE seed = 6",
          "the search with seed 6 of algorithm 0 is damaged: its SHA-256 does not fit; ");
  EXPECT_EQ(compare(config, "a", {"--seeds", "3"}), 0) << text();
}

TEST_F(ComparisonRunTest, EveryAlgorithmIsHeldToTheReplicatesThatThereAre) {
  const auto config = write(
      "many.yaml", algorithms("[random_search, {name: random_search, label: four, evaluation: "
                              "{replicates: 4}}]"));
  EXPECT_EQ(compare(config, "a"), 2);
  EXPECT_THAT(text(), HasSubstr("four: evaluation.replicates = 4, must be at most 3: the table has "
                                "no more"));
  EXPECT_FALSE(fs::exists(folder_ / "a"));
}

/// On the small table no search can spend its trainings: the limit on asks ends those that do not end by themselves.
TEST_F(ComparisonRunTest, EveryConfigurationRuns) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(source_folder() + "/configs")) {
    const auto name = entry.path().stem().string();
    if (!name.starts_with("compare_") || name == "compare_placements") continue;  // see below
    ++count;
    // The small table has no such rungs, nor so many replicates, and lies in no such ranges.
    const auto says = [&name](const char* word) { return name.find(word) != std::string::npos; };
    const auto* const table = says("recall") ? "recall" : "text";
    const auto path = says("_rungs") || says("_seeds") || says("_ppl_flops") || says("_async")
                          ? source_folder() + "/problems/tables/" + table + ".table"
                          : table_.string();
    ASSERT_EQ(compare(entry.path().string(), name,
                      {"problem.table=" + path, "budget.asks=300", "--seeds", "1"}),
              0)
        << text();
    const auto comparison = store(name);
    const auto algorithms = comparison.algorithms();
    for (std::size_t i = 0; i < algorithms.size(); ++i) {
      comparison.for_each_search(static_cast<std::int64_t>(i), [&](const ComparedSearch& search) {
        EXPECT_TRUE(search.ended_by == "300 asks" || search.ended_by == "the algorithm's end" ||
                    search.ended_by.ends_with(" training steps") ||
                    search.ended_by == "93 evaluations")
            << algorithms[i].name << ": " << search.ended_by;
      });
      EXPECT_EQ(comparison.seeds(static_cast<std::int64_t>(i)).size(), 1U) << algorithms[i].name;
    }
  }
  EXPECT_GE(count, 4);
}

TEST_F(ComparisonRunTest, BadInputWritesNothing) {
  const auto config = write("a.yaml", algorithms("[nsga2, evo_ga]"));
  EXPECT_EQ(compare(config, "a"), 2);
  EXPECT_THAT(text(), HasSubstr("algorithm.name = nsga2, minimises two objectives or more"));
  EXPECT_EQ(compare(config, "a", {"--algorithms", "evo"}), 2);
  EXPECT_EQ(compare(config, "a", {"--threads", "0"}), 2);
  EXPECT_THAT(text(), HasSubstr("--threads = 0, must be at least 1"));
  expect_refusal("nas-compare", {}, "no configuration given");
  const auto narrow = write("narrow.yaml", algorithms("[nsga2]"),
                            "[{name: perplexity, range: [1, 1.5]}, attention_flops]");
  EXPECT_EQ(compare(narrow, "a"), 2);
  EXPECT_THAT(text(),
              HasSubstr("lies within all ranges (perplexity: [1, 1.5], attention_flops: ["));
  EXPECT_FALSE(fs::exists(folder_ / "a"));
}

TEST_F(ComparisonRunTest, ATableOfChoicesAnswersSelectorsOfLayers) {
  const auto shipped = source_folder() + "/problems/tables/placements.table";
  const Texts given{"--seeds", "2", "problem.table=" + shipped};
  ASSERT_EQ(compare(config("compare_placements.yaml"), "placements", given), 0) << text();
  const auto comparison = store("placements");
  ASSERT_EQ(comparison.candidates().size(), 256U);
  ASSERT_EQ(comparison.algorithms().front().name, "one_block");
  comparison.for_each_search(0, [&](const ComparedSearch& search) {
    EXPECT_GE(search.trajectory.candidates.size(), 9U);  // the model, and each layer
  });
  const auto run_folder = (folder_ / "run").string();
  std::ofstream(folder_ / "halo.yaml")
      << "problem: {type: tabular_choices, mode: mean, table: " << shipped
      << "}\nobjectives: [recall, kl, full]\nalgorithm: halo\n";
  ASSERT_EQ(run("nas-run", {(folder_ / "halo.yaml").string(), "-o", run_folder, "--no-report"}), 0)
      << text();
  for (const auto& [problem, table] : std::vector<std::pair<std::string, std::string>>{
           {"tabular", shipped}, {"tabular_choices", table_.string()}}) {
    std::ofstream(folder_ / "other.yaml")
        << "problem: {type: " << problem << ", table: " << table << "}\nalgorithm: random_search\n";
    expect_refusal("nas-run", {(folder_ / "other.yaml").string(), "-o", run_folder},
                   "problem.type must be");
  }
}

}  // namespace
}  // namespace nas::testing
