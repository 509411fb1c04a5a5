#include <cstring>
#include <system_error>

#include <SQLiteCpp/SQLiteCpp.h>

#include "core/durable_file.hpp"
#include "core/host.hpp"
#include "core/seed.hpp"
#include "integration/program.hpp"
#include "ops/cpu_products.hpp"
#include "store/store.hpp"
#include "study/reader/experiment.hpp"
#include "study/worker.hpp"
#include "unit/fitted_digests.hpp"

namespace nas::testing {
namespace {

using namespace std::chrono_literals;
using ResumeTest = ProgramTest;

/// A search of real trainings by two workers, long enough to be killed often; checkpoints several times a training.
Texts small_search(const std::string& folder, int steps = 60) {
  return {source_folder() + "/configs/smoke.yaml",
          "--output",
          folder,
          "algorithm.population=6",
          "algorithm.generations=3",
          "training.steps=" + std::to_string(steps),
          "training.checkpoints=[20, 40]",
          "training.checkpoint_minutes=0.002",
          "evaluation.workers=2",
          "--no-report"};
}

TEST_F(ResumeTest, KilledSeveralTimesEndsLikeAnUninterruptedRun) {
  constexpr int kSteps = 300;
  ASSERT_TRUE(ran("nas-run", small_search((folder_ / "whole").string(), kSteps)));
  const auto expected = canonical_export(folder_ / "whole");
  const auto killed = folder_ / "killed";
  kill_at_random_moments("nas-run", small_search(killed.string(), kSteps), killed, 6);
  ASSERT_TRUE(ran("nas-run", small_search(killed.string(), kSteps)));
  EXPECT_EQ(canonical_export(killed), expected);
  EXPECT_TRUE(!fs::exists(killed / "checkpoints") || fs::is_empty(killed / "checkpoints"))
      << "finished trainings leave none";
  {
    SQLite::Database writer((killed / "store.sqlite").string(), SQLite::OPEN_READWRITE);
    writer.exec("PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN IMMEDIATE");
    writer.exec("UPDATE evaluations SET curve = curve || hex(zeroblob(9000))");
    fs::copy(killed, folder_ / "half");  // killed within a commit
  }
  ASSERT_TRUE(ran("nas-run", small_search((folder_ / "half").string(), kSteps)));
  EXPECT_EQ(canonical_export(folder_ / "half"), expected);
}

TEST_F(ResumeTest, RacesOfAKilledRunGoOnExactly) {
  const auto racing = [](const fs::path& folder) {
    auto arguments = small_search(folder.string(), 60);
    arguments.emplace_back("evaluation.racing_replicates=4");
    arguments.emplace_back("evaluation.racing_elites=1");
    arguments.emplace_back("evaluation.racing_confidence=0.5");
    return arguments;
  };
  ASSERT_TRUE(ran("nas-run", racing(folder_ / "whole")));
  expect_text("s.e.");
  const auto killed = folder_ / "killed";
  kill_at_random_moments("nas-run", racing(killed), killed);
  ASSERT_TRUE(ran("nas-run", racing(killed)));
  EXPECT_EQ(canonical_export(killed), canonical_export(folder_ / "whole"));
}

TEST_F(ResumeTest, ControlCReturnsWithinFiveSecondsAndTheSameCommandContinues) {
  ASSERT_TRUE(ran("nas-run", small_search((folder_ / "whole").string())));
  const auto stopped = folder_ / "stopped";
  Program program("nas-run", small_search(stopped.string()), folder_ / "stopped.txt");
  while (read_file(folder_ / "stopped.txt").find("trained ") == std::string::npos) {
    std::this_thread::sleep_for(5ms);
  }
  program.kill(SIGINT);
  int code = -1;
  ASSERT_TRUE(program.wait_for(5s, code));
  EXPECT_EQ(code, 130);
  EXPECT_NE(read_file(folder_ / "stopped.txt").find("same command continues"), std::string::npos);
  {
    const Store store(stopped / "store.sqlite", Store::Mode::read_only);
    EXPECT_TRUE(store.meta("ended_by").value().is_null());
    EXPECT_GE(store.meta("planned_asks").value().get<int>(), 6);
    EXPECT_TRUE(store.meta("schema").has_value());
  }
  ASSERT_TRUE(ran("nas-run", small_search(stopped.string())));
  EXPECT_EQ(canonical_export(stopped), canonical_export(folder_ / "whole"));
  EXPECT_TRUE(
      Store(stopped / "store.sqlite", Store::Mode::read_only).meta("ended_by").value().is_string());
}

TEST_F(ResumeTest, WorkersArraysAndDevicesOfAKindDoNotChangeResults) {
  auto one = small_search((folder_ / "one").string());
  one.insert(one.end(), {"evaluation.workers=1", "evaluation.array=1"});
  ASSERT_TRUE(ran("nas-run", one));
  auto two = small_search((folder_ / "two").string());
  two.insert(two.end(), {"evaluation.array=3", "evaluation.device=cpu,cpu"});
  ASSERT_TRUE(ran("nas-run", two));
  EXPECT_EQ(canonical_export(folder_ / "one"), canonical_export(folder_ / "two"));
}

TEST_F(ResumeTest, ASecondProcessInTheFolderIsRefusedAndTheFirstGoesOn) {
  const auto search = [](const fs::path& folder) {
    constexpr int kSteps = 300;  // long enough for the second to be refused meanwhile
    auto arguments = small_search(folder.string(), kSteps);
    arguments.emplace_back("algorithm.generations=2");
    return arguments;
  };
  const auto whole = folder_ / "whole";
  ASSERT_TRUE(ran("nas-run", search(whole)));
  const auto folder = folder_ / "run";
  Program first("nas-run", search(folder), folder_ / "first.txt");
  int code = -1;
  while (read_file(folder_ / "first.txt").find("trained ") == std::string::npos) {
    ASSERT_FALSE(first.wait_for(5ms, code)) << read_file(folder_ / "first.txt");
  }
  EXPECT_EQ(run("nas-run", search(folder)), 2) << text();
  std::string holder;
  std::getline(std::ifstream(folder / "store.sqlite.lock"), holder);
  EXPECT_EQ(holder.find("process "), 0U) << holder;
  expect_text(folder.string() + " is in use by another process (" + holder + ")");
  ASSERT_FALSE(first.wait_for(0ms, code)) << "the run is too short";
  EXPECT_EQ(first.wait(), 0) << read_file(folder_ / "first.txt");
  EXPECT_EQ(canonical_export(folder), canonical_export(whole));
}

TEST_F(ResumeTest, ADamagedCheckpointOrOneOfAnotherTrainingRunIsReportedAndNotContinued) {
  const auto search = [](const fs::path& folder) {
    constexpr int kSteps = 1000;  // long enough to be stopped between a checkpoint and the end
    auto arguments = small_search(folder.string(), kSteps);
    // Two training runs at a time, in one array: both have checkpoints.
    arguments.insert(arguments.end(), {"algorithm.generations=1", "evaluation.workers=1",
                                       "evaluation.array=2", "training.checkpoint_minutes=0.0005"});
    return arguments;
  };
  const auto whole = folder_ / "whole";
  ASSERT_TRUE(ran("nas-run", search(whole)));
  const auto folder = folder_ / "run";
  const auto checkpoints = [&folder] {
    std::vector<fs::path> files;
    std::error_code none;  // of them, yet
    for (const auto& entry : fs::directory_iterator(folder / "checkpoints", none))
      if (entry.path().extension() == ".pt") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  };
  int code = -1;
  {
    Program program("nas-run", search(folder), folder_ / "stopped.txt");
    while (checkpoints().size() < 2) {
      ASSERT_FALSE(program.wait_for(5ms, code)) << "the run is too short";
    }
    program.kill(SIGINT);
    ASSERT_TRUE(program.wait_for(10s, code));
  }
  EXPECT_EQ(code, 130);
  const auto files = checkpoints();
  ASSERT_EQ(files.size(), 2U) << "the run is too short";
  const auto good = read_bytes(files[0]);
  auto damaged = good;
  auto& byte = damaged[damaged.size() / 2];
  byte = static_cast<char>(byte ^ 4);
  std::ofstream(files[0], std::ios::binary) << damaged;
  std::ofstream(files[1], std::ios::binary) << good;
  ASSERT_TRUE(ran("nas-run", search(folder)));
  expect_text("warning: " + files[0].string() +
              ": its checksum does not fit: it is damaged, so that this training begins again");
  expect_text("warning: " + files[1].string() +
              ": it is of another training, so that this training begins again");
  EXPECT_TRUE(checkpoints().empty());
  EXPECT_EQ(canonical_export(folder), canonical_export(whole));
}

TEST_F(ResumeTest, ARemovedFolderEndsTheRunAndIsNamed) {
  const auto folder = folder_ / "gone";
  Program program("nas-run", small_search(folder.string(), 500), folder_ / "gone.txt");
  while (read_file(folder_ / "gone.txt").find("trained ") == std::string::npos) {
    std::this_thread::sleep_for(5ms);
  }
  fs::remove_all(folder);
  EXPECT_EQ(program.wait(), 75);
  const auto text = read_file(folder_ / "gone.txt");
  EXPECT_NE(text.find("was removed"), std::string::npos) << text;  // by a commit or a checkpoint
  EXPECT_EQ(text.find("is kept in"), std::string::npos) << text;
}

TEST_F(ResumeTest, AFolderRemovedOrMovedDuringATrainingRunDoesNotComeBack) {
  for (const bool moved : {false, true}) {
    const auto folder = folder_ / (moved ? "moved" : "removed");
    const auto output = folder_ / (folder.filename().string() + ".txt");
    // No training ends: the next thing that is written is a checkpoint.
    Program program("nas-run", small_search(folder.string(), 1'000'000), output);
    while (!fs::exists(folder / "checkpoints") || fs::is_empty(folder / "checkpoints")) {
      std::this_thread::sleep_for(5ms);
    }
    const auto elsewhere = folder_ / "elsewhere";
    fs::rename(folder, elsewhere);  // at once: who removes file by file meets new ones
    if (!moved) fs::remove_all(elsewhere);
    int code = -1;
    ASSERT_TRUE(program.wait_for(30s, code)) << read_file(output);
    EXPECT_EQ(code, 75);
    const auto text = read_file(output);
    EXPECT_NE(text.find("was removed or moved"), std::string::npos) << text;
    EXPECT_EQ(text.find("is kept in"), std::string::npos) << text;
    EXPECT_FALSE(fs::exists(folder)) << "the same command would begin anew, and say otherwise";
  }
}

TEST_F(ResumeTest, AnotherEnvironmentIsAWarningAndBothAreKept) {
  const auto folder = folder_ / "run";
  ASSERT_TRUE(ran("nas-run", small_search(folder.string())));
  const auto before = canonical_export(folder);
  change_fitted(folder / "store.sqlite",
                "UPDATE meta SET value = json_set(value, "
                "'$[0].environment.torch', '0.1.0') WHERE key = 'sessions'");
  ASSERT_TRUE(ran("nas-run", small_search(folder.string())));
  expect_text("LibTorch 0.1.0 -> ");
  EXPECT_EQ(canonical_export(folder), before);
  const auto results = results_of(folder);
  ASSERT_EQ(results.at("sessions").size(), 2U);
  EXPECT_EQ(results.at("sessions")[0].at("environment").at("torch"), "0.1.0");
}

TEST_F(ResumeTest, ADamagedRecordIsNamedAndMadeAgainOnceItIsRemoved) {
  const auto folder = folder_ / "run";
  ASSERT_TRUE(ran("nas-run", small_search(folder.string())));
  const auto before = canonical_export(folder);
  EXPECT_TRUE(ran("nas-run", {"verify", folder.string()}));
  SQLite::Database((folder / "store.sqlite").string(), SQLite::OPEN_READWRITE)
      .exec(
          "UPDATE evaluations SET \"values\" = json_set(\"values\", '$.perplexity', 2) "
          "WHERE id = (SELECT min(id) FROM evaluations)");
  EXPECT_EQ(run("nas-run", small_search(folder.string())), 2) << text();
  expect_text("its SHA-256 does not fit");
  EXPECT_EQ(run("nas-export", {folder.string(), "--canonical"}), 2) << text();
  EXPECT_EQ(run("nas-run", {"verify", folder.string()}), 2) << text();
  expect_text("the record of evaluation ");
  EXPECT_TRUE(ran("nas-run", {"verify", folder.string(), "--remove"}));
  ASSERT_TRUE(ran("nas-run", small_search(folder.string())));
  EXPECT_EQ(canonical_export(folder), before);
}

TEST_F(ResumeTest, WhatNoMachineCanHoldIsRefusedBeforeItIsBegun) {
  for (const auto* setting : {"model.width=1048576", "training.batch_size=1000000000",
                              "data.train_examples=1000000000"}) {
    EXPECT_EQ(run("nas-run", {config("smoke.yaml"), "--dry-run", setting}), 2) << text();
    const std::string name(setting, std::strchr(setting, '='));
    expect_text(name + " = ");
    expect_text("iB of memory, must be at most ");
  }
}

/// At least half of the memory by formula, several times that in fact.
TEST_F(ResumeTest, WhatDoesNotFitIsRefusedWithWhatWould) {
  const auto batch = std::llround(largest_memory() / 2.0 / (4 * 16 * 16 * 8));
  for (const Texts& program : {Texts{"nas-run", "--dry-run"}, Texts{"nas-run", "--no-report"}}) {
    EXPECT_EQ(
        run(program[0], {config("smoke.yaml"), program[1], "--output", (folder_ / "large").string(),
                         "training.batch_size=" + std::to_string(batch)}),
        2)
        << text();
    expect_text("training.batch_size = " + std::to_string(batch) + ": a training run of ");
    expect_text("; training.micro_batch = ");
  }
}

/// One layer of ratio r takes about 16 (4 + 2 r) D^2 bytes: with 4 an eighth of the memory, with 64 eleven times that.
TEST_F(ResumeTest, ASpaceOfWhichNoMachineCanHoldACandidateIsRefused) {
  const auto width = 2 * std::llround(std::sqrt(largest_memory() / (8 * 16 * 12)) / 2);
  EXPECT_EQ(run("nas-run", {config("smoke.yaml"), "--dry-run",
                            "model.width=" + std::to_string(width), "space.ratio=[4, 64]"}),
            2)
      << text();
  expect_text(", space: attn{dropout=0}+gelu{ratio=64}, training.batch_size = 8: ");
  // What works on single candidates is not refused for others.
  EXPECT_NO_THROW((void)Worker(load_experiment(
      config("smoke.yaml"), {"model.width=" + std::to_string(width), "space.ratio=[4, 64]"})));
  EXPECT_EQ(run("nas-train", {"attn+gelu{ratio=64}", config("smoke.yaml"), "--dry-run",
                              "model.width=" + std::to_string(width)}),
            2)
      << text();
  expect_text(", mechanism: attn+gelu{ratio=64}, training.batch_size = 8: ");
}

/// What a run multiplies by binds whoever measures for it: those that go on with it, and workers.
TEST_F(ResumeTest, ProductsOfARunAreThoseOfAllItsProcesses) {
  unsetenv("NAS_EXACT_PRODUCTS");
  const bool tiles = nn::cpu_products(NumericalMode::exact).by == nn::CpuProducts::By::float32;
  const auto other = [tiles] { setenv("NAS_EXACT_PRODUCTS", tiles ? "tiles" : "float32", 1); };
  const auto trained = [this](const std::string& name, const std::function<void()>& prepare,
                              Texts words) {
    words.insert(words.begin(),
                 {"sparsemax", config("smoke.yaml"), "training.steps=10", "controls=false",
                  "retest.tune=false", "--no-report", "--output", (folder_ / name).string()});
    EXPECT_TRUE(ran("nas-train", words, prepare, Start::executed)) << name;
    return canonical_export(folder_ / name);
  };
  const auto expected = trained("whole", other, {"--seeds", "2"});
  EXPECT_NE(trained("own", {}, {"--seeds", "2"}), expected);
  trained("begun", other, {"--seeds", "1"});
  ASSERT_TRUE(ran("nas-train", {(folder_ / "begun").string(), "--seeds", "2", "--no-report"}, {},
                  Start::executed));
  EXPECT_EQ(canonical_export(folder_ / "begun"), expected);
  const auto command =
      "cluster.command=[env, -u, NAS_EXACT_PRODUCTS, " + program_folder() + "/nas-work]";
  EXPECT_EQ(trained("workers", other, {"--seeds", "2", command}), expected);
}

TEST_F(ResumeTest, WhatAnotherRunHasTrainedIsReused) {
  const auto search = [this](const std::string& name, const Texts& words) {
    auto arguments = small_search((folder_ / name).string(), /*steps=*/20);
    arguments.push_back("training.checkpoints=[20]");
    arguments.push_back("retest={replicates: 2, top: 1}");
    arguments.insert(arguments.end(), words.begin(), words.end());
    return run("nas-run", arguments);
  };
  ASSERT_EQ(search("short", {"algorithm.generations=2"}), 0) << text();
  ASSERT_EQ(search("long", {}), 0) << text();
  const auto reuse = Texts{"--reuse", (folder_ / "short").string()};
  ASSERT_EQ(search("reusing", reuse), 0) << text();
  EXPECT_EQ(canonical_export(folder_ / "reusing"), canonical_export(folder_ / "long"));

  const auto made_by = [this](const std::string& name) {
    std::set<std::string> ids;
    for (const auto& evaluation :
         Store(folder_ / name / "store.sqlite", Store::Mode::read_only).evaluations()) {
      if (!evaluation.measured.contains("reused_from")) ids.insert(evaluation.id);
    }
    return ids;
  };
  auto left = made_by("long");
  for (const auto& id : made_by("short")) left.erase(id);
  EXPECT_FALSE(left.empty());
  EXPECT_EQ(made_by("reusing"), left);

  // What a smaller budget leaves no ask for is not taken.
  ASSERT_EQ(search("cut", {"budget.evaluations=2"}), 0) << text();
  ASSERT_EQ(search("cut_reusing", {"budget.evaluations=2", "--reuse", (folder_ / "long").string()}),
            0)
      << text();
  EXPECT_EQ(canonical_export(folder_ / "cut_reusing"), canonical_export(folder_ / "cut"));

  ASSERT_EQ(search("steps", {"training.steps=21", "--reuse", (folder_ / "short").string()}), 0);
  expect_text(
      "short has no evaluation that can be reused, since all differ, in "
      "training.steps: 20 -> 21");

  auto scored = reuse;  // what any training run tells may be asked of another run's
  scored.emplace_back("objectives=[accuracy]");
  ASSERT_EQ(search("scored", scored), 0) << text();
  const auto known = made_by("short");
  for (const auto& id : made_by("scored")) EXPECT_FALSE(known.contains(id));

  auto other = reuse;
  other.emplace_back("objectives=[latency]");
  EXPECT_EQ(search("other", other), 2);
  expect_text("short has evaluations of other objectives");
  EXPECT_FALSE(fs::exists(folder_ / "other"));
  EXPECT_EQ(search("nowhere", {"--reuse", (folder_ / "none").string()}), 2);
}

TEST_F(ResumeTest, WhatATableHoldsIsReused) {
  const auto search = [this](const std::string& name, const Texts& words) {
    auto arguments = small_search((folder_ / name).string(), /*steps=*/20);
    std::erase(arguments, "algorithm.generations=3");
    arguments.insert(arguments.end(), {"training.checkpoints=[20]", "space.attention_dropout=0",
                                       "objectives=[perplexity]", "algorithm.name=random_search",
                                       "algorithm.evaluations=6"});
    arguments.insert(arguments.end(), words.begin(), words.end());
    return run("nas-run", arguments);
  };
  ASSERT_EQ(search("once", {}), 0) << text();
  ASSERT_EQ(search("twice", {"evaluation.replicates=2"}), 0) << text();
  const auto table = (folder_ / "once.table").string();
  ASSERT_TRUE(ran("nas-data", {"table", "pack", (folder_ / "once").string(), "--output", table}));
  const Texts reuse{"evaluation.replicates=2", "--reuse", table};
  ASSERT_EQ(search("grown", reuse), 0) << text();
  EXPECT_EQ(canonical_export(folder_ / "grown"), canonical_export(folder_ / "twice"));
  std::map<bool, int> taken;
  for (const auto& evaluation :
       Store(folder_ / "grown" / "store.sqlite", Store::Mode::read_only).evaluations()) {
    if (!evaluation.candidate.ends_with("|0")) continue;  // the baseline's dropout is no table's
    ++taken[evaluation.measured.value("reused_from", "") == table];
  }
  EXPECT_GT(taken[true], 0);
  EXPECT_EQ(taken[true], taken[false]);

  auto more = reuse;
  more.emplace_back("objectives=[perplexity, latency]");
  EXPECT_EQ(search("more", more), 2);
  expect_text("once.table has no latency of its training runs");
  EXPECT_EQ(search("none", {"--reuse", (folder_ / "once" / "store.sqlite").string()}), 2);
  EXPECT_FALSE(fs::exists(folder_ / "none"));
}

}  // namespace
}  // namespace nas::testing
