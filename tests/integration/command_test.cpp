#include <cstdlib>

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "integration/program.hpp"
#include "search/objective.hpp"
#include "store/store.hpp"

namespace nas::testing {
namespace {

using ::testing::Test;

using CommandTest = ProgramTest;

TEST_F(CommandTest, SmokeSearchLeavesItsResults) {
  const auto out = folder_ / "run";
  ASSERT_TRUE(ran("nas-run", {config("smoke.yaml"), "--output", out.string()}));
  expect_text("baseline");
  for (const auto* name : {"store.sqlite", "results.json", "evaluations.csv"}) {
    EXPECT_TRUE(fs::exists(out / name)) << name;
  }
  // The page, or how to get it where no Python has what it needs.
  const auto page = out / "report.html";
  expect_text(fs::exists(page) ? "and " + page.string() : "for a page about the run: ");
  // A finished run just shows its result again.
  const auto first = canonical_export(out);
  fs::remove(page);
  ASSERT_TRUE(ran("nas-run", {config("smoke.yaml"), "--output", out.string(), "--no-report"}));
  EXPECT_FALSE(fs::exists(page));
  EXPECT_EQ(canonical_export(out), first);
}

TEST_F(CommandTest, MemoryOfAnAskThatCostsLittleIsSmall) {
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
  GTEST_SKIP() << "sanitizers have memory of their own";
#endif
  const auto peak_kib = [this](const std::string& generations) {
    Program search("nas-run",
                   {config("nsga2_zdt.yaml"), "algorithm.generations=" + generations, "--no-report",
                    "--output", (folder_ / generations).string()},
                   folder_ / "output.txt");
    EXPECT_EQ(search.wait(), 0) << text();
    return search.peak_kib();
  };
  const auto few = peak_kib("10");
  EXPECT_LT(peak_kib("60") - few, 5000 * 8) << "KiB for 5,000 asks";
}

TEST_F(CommandTest, BadInputExitsWith2NamesTheKeyAndWritesNothing) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"seed=-1", "seed = -1, must be >= 0"},
      {"sed=1", "did you mean seed?"},
      {"semantics=correct", "did you mean corrected?"},
      {"problem=zdtt", "did you mean zdt?"},
      {"objectives=[perplexity, perplexty]", "did you mean perplexity?"},
      {"objectives=[{name: perplexity, range: [9, 1]}]", "must be [best, worst]"},
      {"objectives=[{name: perplexity, as: flops}]", "as = flops, must be another name"},
      {"objectives=[{name: latency, as: decode_latency}]", "it is that of another objective"},
      {"objectives=[{name: flops, as: train_seconds}]", "it is that of another objective"},
      {"constraints=[flops < 4]", "must be of the form NAME <= NUMBER"},
      {"constraints=[flop <= 4]", "did you mean flops?"},
      {"space.gating=[none, nne]", "did you mean none?"},
      {"space.attention_dropout=2", "must be in [0, 1)"},
      {"baseline=dot|softmax", "baseline"},
      {"model.heads=3", "must be a multiple of model.heads = 3"},
      {"data.corpus=moar", "did you mean mqar?"},
      {"training.learning_rate=0", "must be > 0"},
      {"training.schedule=cosin", "did you mean cosine?"},
      {"evaluation.workers=none", "must be auto or an integer"},
      {"budget.target=low", "must be a number or empty"},
      {"budget.gpu_seconds=10", "must be 0 on the device cpu"},
      {"algorithm.name=nsga2", "minimises two objectives or more"},
      {"algorithm.elite=9", "must be at most algorithm.population = 4"},
      {"algorithm.mutation=1.5", "must be in [0, 1]"},
      {"budget.train_steps=4", "must be at least 5, which one training run takes"},
  };
  const auto out = folder_ / "run";
  for (const auto& [mistake, message] : mistakes) {
    EXPECT_EQ(run("nas-run", {config("smoke.yaml"), "--output", out.string(), mistake,
                              "evaluation.device=cpu"}),
              2)
        << mistake;
    expect_text(message);
    EXPECT_FALSE(fs::exists(out)) << mistake;
  }
}

TEST_F(CommandTest, SearchesOfSeveralObjectivesLeaveAFront) {
  const auto out = folder_ / "run";
  ASSERT_TRUE(
      ran("nas-run",
          {config("smoke.yaml"), "--output", out.string(),
           "objectives=[perplexity, attention_flops, {name: accuracy, as: hits}]",
           "constraints=[parameters <= 1e9]", "algorithm.name=nsga2", "algorithm.population=8",
           "algorithm.generations=3", "budget.evaluations=12", "--no-report"}));
  expect_text("12 evaluations");
  expect_text("non-dominated front");
  const auto results = results_of(out);
  EXPECT_FALSE(results["front"].empty());
  EXPECT_TRUE(results["front"][0]["values"].contains("hits"));
  EXPECT_GT(results["hypervolume"]["value"].get<double>(), 0.0);
}

TEST_F(CommandTest, TheHomeFolderIsMeantInPaths) {
  const std::string before = getenv("HOME") != nullptr ? getenv("HOME") : "";
  setenv("HOME", folder_.c_str(), 1);
  EXPECT_TRUE(ran("nas-run", {config("cmaes_sphere.yaml"), "--output", "~/run", "--no-report"}));
  EXPECT_TRUE(fs::exists(folder_ / "run" / "store.sqlite"));
  setenv("HOME", before.c_str(), 1);
}

TEST_F(CommandTest, NoObjectiveCanHaveTheNameOfAnythingThatARunRecords) {
  const auto out = folder_ / "run";
  ASSERT_TRUE(ran("nas-run", {config("smoke.yaml"), "--output", out.string(), "--no-report",
                              "algorithm.generations=1", "evaluation.array=2"}));
  std::set<std::string> recorded;
  std::string header;
  std::getline(std::ifstream(out / "evaluations.csv"), header);
  for (std::istringstream columns(header); std::getline(columns, header, ',');)
    recorded.insert(header.substr(0, header.find_last_not_of('\r') + 1));
  const auto results = results_of(out);
  for (const auto& evaluation : results.at("evaluations")) {
    for (const auto& [name, value] : evaluation.items()) recorded.insert(name);
    for (const auto* part : {"values", "measured"})
      for (const auto& [name, value] : evaluation.at(part).items()) recorded.insert(name);
  }
  EXPECT_TRUE(recorded.contains("status") && recorded.contains("worker")) << header;
  for (const auto& name : recorded) {
    if (name.starts_with("perplexity_")) continue;  // refused beside perplexity
    EXPECT_TRUE(is_recorded_name(name) || objectives().contains(name)) << name;
  }
}

TEST_F(CommandTest, WhatBreaksAConstraintIsRejectedWithoutTraining) {
  const auto out = folder_ / "run";
  const Texts search{config("smoke.yaml"), "--output", out.string(), "--no-report",
                     "constraints=[latency <= 1e-9]"};
  ASSERT_TRUE(ran("nas-run", search));
  expect_text("rejected by constraints");
  expect_text("before training, e.g.: latency = ");
  expect_text("0 failures");
  const auto results = results_of(out);
  EXPECT_EQ(results["counts"]["evaluated"], 0);
  EXPECT_GT(results["counts"]["rejected"], 0);
  EXPECT_TRUE(results["failures"].empty());
}

TEST_F(CommandTest, AWallClockBudgetEndsAndContinues) {
  const auto out = folder_ / "run";
  const Texts search{config("smoke.yaml"),         "--output",           out.string(),
                     "algorithm.generations=1000", "training.steps=100", "algorithm.mutation=1",
                     "budget.seconds=2",           "--no-report"};
  ASSERT_TRUE(ran("nas-run", search));
  expect_text("2 s of wall-clock time");
  EXPECT_TRUE(fs::exists(out / "results.json"));
  ASSERT_EQ(run("nas-run", search), 0) << "it is spent: only the result is shown again";
  expect_text("2 s of wall-clock time");
}

TEST_F(CommandTest, DryRunWritesNothing) {
  const auto out = folder_ / "run";
  ASSERT_TRUE(ran("nas-run", {config("smoke.yaml"), "--dry-run", "--output", out.string()}));
  expect_text("planning smoke; where it trains, a few steps are timed");
  expect_text("evaluations");
  expect_text("parameters");
  EXPECT_EQ(text().find("training.steps = "), std::string::npos);
  ASSERT_EQ(
      run("nas-run", {config("smoke.yaml"), "--dry-run", "--settings", "--output", out.string()}),
      0);
  expect_text("\n  training.steps = 5\n");
  EXPECT_FALSE(fs::exists(out));
  expect_text("vocabulary 32, 200 training windows\n");
  for (const auto& [population, batches] :
       {std::pair{"8", "1 batch"}, std::pair{"4", "2 batches"}}) {
    ASSERT_EQ(run("nas-run",
                  {config("smoke.yaml"), "--dry-run", "--output", out.string(), "budget.asks=8",
                   std::string("algorithm={name: random_search, population: ") + population + "}"}),
              0);
    expect_text(std::string("8 asked in ") + batches + ", about 8 trained");
  }
  expect_refusal("nas-run", {config("smoke.yaml"), "--settings"},
                 "--settings belongs to --dry-run");
}

TEST_F(CommandTest, DryRunRefusesWhatTheRunWould) {
  const auto out = folder_ / "run";
  const auto file = folder_ / "a_file";
  std::ofstream(file) << "text";
  const auto dry = [this](const fs::path& folder, Texts more = {}) {
    Texts arguments{config("smoke.yaml"), "--dry-run", "--output", folder.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run("nas-run", arguments);
  };
  for (const auto& folder : {file, file / "run"}) {
    EXPECT_EQ(dry(folder), 2) << folder;
    expect_text("a_file: Not a directory");
  }
  EXPECT_EQ(dry(out, {"--reuse", (folder_ / "none").string()}), 2);
  expect_text((folder_ / "none").string());
  ASSERT_TRUE(ran("nas-run", {config("smoke.yaml"), "--output", out.string(),
                              "budget.evaluations=2", "training.steps=2", "--no-report"}));
  expect_refusal(
      "nas-run", {out.string()},
      "is a run's folder, must be a YAML file: the run's own configuration, and --output");
  EXPECT_EQ(dry(out, {"training.steps=3"}), 2);
  expect_text("holds a run of another configuration");
  ASSERT_EQ(dry(out, {"training.steps=2"}), 0) << text();
  expect_text(
      "(continues; what of the above is among its 3 recorded evaluations is not made again)");
}

TEST_F(CommandTest, ResultsWhoseStoreIsEmptyAreNotOverwritten) {
  const auto out = folder_ / "run";
  const Texts start{config("smoke.yaml"),   "--output",         out.string(),
                    "budget.evaluations=2", "training.steps=2", "--no-report"};
  fs::create_directories(out);
  std::ofstream(out / "store.sqlite").flush();  // as of a process that was killed when it began
  ASSERT_TRUE(ran("nas-run", start));
  const auto results = read_file(out / "results.json");
  for (const auto* rest : {"-wal", "-shm"}) fs::remove(out / (std::string("store.sqlite") + rest));
  fs::resize_file(out / "store.sqlite", 0);
  expect_refusal("nas-run", start,
                 "store.sqlite is empty, though results.json beside it tells of a run");
  EXPECT_EQ(read_file(out / "results.json"), results);
}

/// Lets this process alone see a folder mounted read-only: permissions do not bind root.
/// @return whether the system allows it.
bool see_read_only(const fs::path& folder) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  struct statvfs system {};
  if (statvfs(folder.c_str(), &system) != 0) return false;
  // What the mount of the folder has is kept: only its owner may take it away.
  constexpr unsigned long kKept = ST_NOSUID | ST_NODEV | ST_NOEXEC;
  constexpr unsigned long kReadOnly = MS_REMOUNT | MS_BIND | MS_RDONLY;
  const char* name = folder.c_str();
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount(name, name, nullptr, MS_BIND, nullptr) == 0 &&
         mount("none", name, nullptr, kReadOnly | (system.f_flag & kKept), nullptr) == 0 &&
         access(name, W_OK) != 0;
}

TEST_F(CommandTest, AReadOnlyFolderIsReadAndNotWritten) {
  constexpr int kNotAllowed = 77;
  const Texts overrides{"space.attention_dropout=0",
                        "algorithm={name: random_search, evaluations: 4}"};
  const auto folder = small_run(overrides);
  fs::copy(folder, folder_ / "copy", fs::copy_options::recursive);
  const auto expected = canonical_export(folder_ / "copy");  // readers leave files where they can
  const auto files = [&folder] {
    std::map<std::string, std::string> bytes;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      bytes[entry.path().string()] = entry.is_regular_file() ? read_file(entry.path()) : "";
    return bytes;
  };
  const auto before = files();
  const auto read_only = [&folder] {
    if (!see_read_only(folder)) _exit(kNotAllowed);
  };
  if (run("nas-run", {"--version"}, read_only) == kNotAllowed)
    GTEST_SKIP() << "mounting a folder read-only takes root or a user namespace";
  EXPECT_TRUE(ran("nas-export", {folder, "--canonical"}, read_only));
  EXPECT_EQ(text(), expected);
  EXPECT_TRUE(ran("nas-run", {folder, "--status"}, read_only));
  expect_text(", ended by ");
  EXPECT_TRUE(ran("nas-run", {"verify", folder}, read_only));
  const auto csv = folder_ / "evaluations.csv";
  EXPECT_TRUE(
      ran("nas-export", {folder, "--format", "evaluations", "--output", csv.string()}, read_only));
  EXPECT_EQ(read_file(csv), read_file(fs::path(folder) / "evaluations.csv"));
  const auto table = (folder_ / "packed.table").string();
  EXPECT_TRUE(ran("nas-data", {"table", "pack", folder, "--output", table}, read_only));
  EXPECT_TRUE(ran("nas-data", {"table", "verify", table, folder}, read_only));

  Texts search{config("smoke.yaml"), "--output", folder, "--no-report"};
  search.insert(search.end(), overrides.begin(), overrides.end());
  EXPECT_EQ(run("nas-run", search, read_only), 2) << text();
  expect_text("Read-only file system");
  EXPECT_EQ(text().find("Everything finished is kept"), std::string::npos) << "nothing was done";
  EXPECT_EQ(run("nas-run", {"verify", folder, "--remove"}, read_only), 2) << text();
  expect_text("Read-only file system");
  EXPECT_EQ(files(), before);
}

TEST_F(CommandTest, AMistypedCommandNamesTheNearest) {
  expect_refusal("nas-run", {"lst"},
                 "lst is neither a command nor a configuration; did you mean list?");
  expect_refusal("nas-run", {"verfy", folder_.string()},
                 "verfy is neither a command nor a configuration; did you mean verify?");
  expect_refusal("nas-run", {"status", folder_.string()}, "did you mean --status?");
  expect_refusal("nas-run", {"list", "--retrain", "3"}, "--retrain belongs to nas-run verify");
  EXPECT_EQ(run("nas-run", {"schema"}), 0);
  expect_text("json-schema.org");
  expect_text("cope_positions");
}

TEST_F(CommandTest, OptionsThatWouldDoNothingAreRefused) {
  const auto file = (folder_ / "schema.json").string();
  for (const std::string word : {"schema", "list"}) {
    expect_refusal("nas-run", {word, "--output", file},
                   "--output has no effect on nas-run " + word);
  }
  for (const auto* program : {"nas-run", "nas-export"}) {
    expect_refusal(program, {config("smoke.yaml"), "--output", ""},
                   "--output is empty, must have a value or be left out");
  }
  for (const std::string other : {"retest.replicates=2", "retest={replicates: 2}"}) {
    expect_refusal("nas-train",
                   {"2*mqa", config("smoke.yaml"), "--seeds", "3", other, "--output",
                    (folder_ / "run").string()},
                   "--seeds 3, must be left out beside " + other);
  }
  EXPECT_FALSE(fs::exists(file));
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(CommandTest, ATableIsNoRunAndNoConfiguration) {
  const auto table = source_folder() + "/problems/tables/recall.table";
  const std::pair<const char*, Texts> readers[] = {
      {"nas-run", {"verify", table}},
      {"nas-run", {table, "--status"}},
      {"nas-export", {table, "--canonical"}},
      {"nas-model", {"take", table, "best", "-o", "out"}},
      {"nas-watch", {table}}};
  for (const auto& [program, words] : readers) {
    EXPECT_EQ(run(program, words), 2) << program;
    expect_text(table + ": is a table, must be a run's folder");
  }
  for (const std::string program : {"nas-run", "nas-compare"}) {
    EXPECT_EQ(run(program, {table}), 2) << program;
    expect_text(table + ": is a table or the record of a run, must be a YAML file");
  }
}

TEST_F(CommandTest, AnOutputThatCannotBeIsBadInput) {
  const auto file = folder_ / "a_file";
  std::ofstream(file) << "text";
  const auto within = (file / "x").string();
  expect_refusal("nas-run", {config("smoke.yaml"), "--output", within}, "x: Not a directory");
  expect_refusal("nas-compare", {config("compare_recall.yaml"), "--seeds", "1", "-o", within},
                 "x: Not a directory");
  const auto folder = small_run({"budget.evaluations=2"});
  expect_refusal("nas-export", {folder, "--format", "pytorch", "--output", within},
                 "x.unfinished: Not a directory");
  expect_refusal("nas-model", {"take", folder, "best", "-o", within}, "x: Not a directory");
}

TEST_F(CommandTest, AnExportReplacesNeitherAStoreNorAPipe) {
  const auto folder = small_run({"budget.evaluations=2"});
  const auto expected = canonical_export(folder);
  const auto store = folder + "/store.sqlite";
  const auto link = folder_ / "link";
  const auto pipe = folder_ / "pipe";
  const auto device = folder_ / "device";
  fs::create_symlink(store, link);
  fs::create_symlink("/dev/null", device);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto refused = [&](const std::string& output, const std::string& why) {
    expect_refusal("nas-export", {folder, "--format", "json", "-o", output, "--force"},
                   "--output " + output + ": " + why);
  };
  const std::string record = "is a table or the record of a run, must be another file";
  refused(store, record);
  refused(link.string(), record);
  const auto other = folder_ / "of-another-run.sqlite";
  fs::copy(store, other);
  refused(other.string(), record);
  refused(pipe.string(), "is a pipe, must be a regular file");
  refused(device.string(), "is a device, must be a regular file");
  refused(folder, "is a folder, must be a regular file");
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(canonical_export(folder), expected);
}

TEST_F(CommandTest, ThreadsOfATrainingRunWaitPassivelyUnlessTheUserSaysOtherwise) {
  const auto out = folder_ / "run";
  const auto threads = [&](const std::string& number) {
    return run("nas-run",
               {config("smoke.yaml"), "--output", out.string(), "evaluation.threads=" + number,
                "training.steps=2", "budget.evaluations=2", "--no-report"},
               {}, Start::executed);
  };
  const auto spins = [this] {  // what the last start of the program read
    const auto printed = text();
    const auto line = printed.rfind("GOMP_SPINCOUNT");
    return line != std::string::npos && printed.compare(line, 20, "GOMP_SPINCOUNT = '0'") != 0;
  };
  setenv("OMP_DISPLAY_ENV", "VERBOSE", /*overwrite=*/1);
  unsetenv("OMP_WAIT_POLICY");
  unsetenv("GOMP_SPINCOUNT");
  EXPECT_EQ(run("nas-run", {"--version"}, {}, Start::executed), 0);
  const bool gnu = text().find("GOMP_SPINCOUNT") != std::string::npos;
  EXPECT_EQ(threads("1"), 0) << text();
  EXPECT_EQ(spins(), gnu);
  fs::remove_all(out);
  EXPECT_EQ(threads("2"), 0) << text();
  EXPECT_FALSE(spins());
  EXPECT_TRUE(fs::exists(out / "results.json"));
  setenv("OMP_WAIT_POLICY", "ACTIVE", 1);  // of a run that is done: nobody spins
  EXPECT_EQ(threads("2"), 0) << text();
  EXPECT_EQ(spins(), gnu);
  unsetenv("OMP_WAIT_POLICY");
  unsetenv("OMP_DISPLAY_ENV");
}

TEST_F(CommandTest, ListDescribeHelpVersion) {
  ASSERT_EQ(run("nas-run", {"list"}), 0);
  for (const auto* key : {"evo_ga", "attention_search", "perplexity", "sparsemax", "entmax15",
                          "softmax1", "top_k", "bilinear", "mqar", "brown", "wikitext-2"}) {
    expect_text(key);
  }
  ASSERT_EQ(run("nas-run", {"describe", "evo_ga"}), 0);
  expect_text("crossover");
  expect_refusal("nas-run", {"describe", "evo_gaa"}, "evo_ga");
  EXPECT_EQ(run("nas-run", {"--help"}), 0);
  expect_text("--dry-run");
  EXPECT_EQ(run("nas-run", {"--version"}), 0);
  expect_text("LibTorch");
  EXPECT_EQ(run("nas-run", {}), 2);
  EXPECT_EQ(run("nas-run", {"--frobnicate"}), 2);
  expect_refusal("nas-run", {(folder_ / "absent.yaml").string()}, "absent.yaml");
}

/// Descriptions of the models in a folder that have their weights beside them.
std::vector<nlohmann::json> kept_models(const fs::path& folder) {
  std::vector<nlohmann::json> kept;
  for (const auto& entry : fs::directory_iterator(folder / "models")) {
    if (entry.path().extension() != ".json") continue;
    EXPECT_TRUE(fs::exists(fs::path(entry.path()).replace_extension(".pt"))) << entry.path();
    kept.push_back(nlohmann::json::parse(read_file(entry.path())));
  }
  return kept;
}

TEST_F(CommandTest, TheBestModelsByTheObjectiveAreKept) {
  const auto out = folder_ / "run";
  // The worst by perplexity are the best by this objective.
  ASSERT_TRUE(ran("nas-run", {config("smoke.yaml"), "--output", out.string(),
                              "evaluation.keep_models=2", "evaluation.replicates=2",
                              "objectives=[{name: perplexity, goal: maximise}]", "--no-report"}));
  std::vector<double> all;
  const auto results = results_of(out);
  const Store store(out / "store.sqlite", Store::Mode::read_only);
  for (const auto& evaluation : store.evaluations())
    all.push_back(evaluation.values.at("perplexity"));
  std::sort(all.rbegin(), all.rend());
  std::vector<double> values;
  for (const auto& model : kept_models(out)) {
    values.push_back(model.at("values").at("perplexity"));
    EXPECT_EQ(model.at("seed"), 42);
    EXPECT_TRUE(model.at("replicate").is_number());
    EXPECT_FALSE(model.at("mechanism").get<std::string>().empty());
    EXPECT_EQ(model.at("feasible"), true);
  }
  std::sort(values.rbegin(), values.rend());
  ASSERT_GE(values.size(), 2U);
  EXPECT_TRUE(std::equal(all.begin(), all.begin() + 2, values.begin()));
  EXPECT_LE(values.size(), 3U) << "the baseline's best beside them";
}

TEST_F(CommandTest, NoModelOfTheFrontIsLost) {
  const auto out = folder_ / "run";
  ASSERT_TRUE(
      ran("nas-run", {config("smoke.yaml"), "--output", out.string(), "evaluation.keep_models=1",
                      "objectives=[perplexity, attention_flops]", "algorithm.name=nsga2",
                      "algorithm.population=8", "algorithm.generations=2", "--no-report"}));
  std::set<std::string> kept;
  for (const auto& model : kept_models(out)) kept.insert(model.at("candidate"));
  const auto results = results_of(out);
  const auto& baseline = results["baseline"]["values"];
  int members = 0;
  for (const auto& member : results["front"]) {
    const auto no_better = [&](const char* objective) {
      return member["values"][objective].get<double>() >= baseline[objective].get<double>();
    };
    if (no_better("perplexity") && no_better("attention_flops")) continue;  // behind the baseline
    EXPECT_TRUE(kept.contains(member["candidate"])) << member["candidate"];
    ++members;
  }
  EXPECT_GT(members, 1) << "or nothing was tested";
}

TEST_F(CommandTest, WarnsOfModelsThatCanNoLongerBeSaved) {
  const auto out = folder_ / "run";
  ASSERT_TRUE(ran("nas-run", {config("smoke.yaml"), "--output", out.string(),
                              "evaluation.keep_models=0", "--no-report"}));
  EXPECT_EQ(text().find("keep_models"), std::string::npos);
  EXPECT_FALSE(fs::exists(out / "models"));
  ASSERT_TRUE(ran("nas-run", {config("smoke.yaml"), "--output", out.string(),
                              "evaluation.keep_models=2", "--no-report"}));
  expect_text(
      "evaluation.keep_models = 2, but models/ holds 0: weights are saved when a training "
      "ends");
}

}  // namespace
}  // namespace nas::testing
