#include <array>
#include <cstring>

#include <SQLiteCpp/SQLiteCpp.h>

#include "core/stop.hpp"
#include "integration/program.hpp"
#include "unit/fitted_digests.hpp"

namespace nas::testing {
namespace {

using namespace std::chrono_literals;

/// What a fault of the machine may do to a run: end it, but never change what it finds.
class FaultsTest : public ProgramTest {
 protected:
  Texts small_search(const fs::path& folder, const Texts& more = {}) {
    Texts arguments{config("smoke.yaml"),      "--output",
                    folder.string(),           "algorithm.population=6",
                    "algorithm.generations=1", "training.steps=60",
                    "evaluation.workers=2",    "--no-report"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  /// What a full disk is like: no file may grow beyond so many bytes.
  static void limit_files(rlim_t bytes) {
    const rlimit limit{bytes, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  /// What an undisturbed run finds.
  std::string undisturbed(const Texts& more) {
    const auto folder = folder_ / "undisturbed";
    EXPECT_TRUE(ran("nas-run", small_search(folder, more)));
    return canonical_export(folder);
  }
};

TEST_F(FaultsTest, FilesOfOthersAmongTheModelsChangeNothing) {
  const Texts more{"evaluation.keep_models=3"};
  const auto expected = undisturbed(more);
  const auto folder = folder_ / "run";
  fs::create_directories(folder / "models");
  std::ofstream(folder / "models" / "notes.json") << R"({"note": 1})";
  std::ofstream(folder / "models" / "list.json") << "[1]";
  std::ofstream(folder / "models" / "number.json") << R"({"feasible": 1, "perplexity": 2})";
  EXPECT_TRUE(ran("nas-run", small_search(folder, more)));
  EXPECT_EQ(canonical_export(folder), expected);
  int weights = 0;
  for (const auto& entry : fs::directory_iterator(folder / "models"))
    weights += entry.path().extension() == ".pt" ? 1 : 0;
  EXPECT_EQ(weights, 3);
  EXPECT_TRUE(fs::exists(folder / "models" / "notes.json"));
  EXPECT_TRUE(fs::exists(folder / "models" / "number.json"));
}

TEST_F(FaultsTest, WhatStandsInTheWayOfModelsEndsTheRunAndTheSameCommandContinues) {
  const Texts more{"evaluation.keep_models=3"};
  const auto expected = undisturbed(more);
  const auto folder = folder_ / "run";
  fs::create_directories(folder);
  std::ofstream(folder / "models") << "a file";
  EXPECT_EQ(run("nas-run", small_search(folder, more)), 75) << text();
  EXPECT_THAT(text(), HasSubstr((folder / "models").string() + ": "));
  EXPECT_THAT(text(), HasSubstr("Everything finished is kept in " + folder.string() +
                                "; the same command continues."));
  EXPECT_THAT(canonical_export(folder), Not(HasSubstr("\"failed\"")));
  fs::remove(folder / "models");
  EXPECT_TRUE(ran("nas-run", small_search(folder, more)));
  EXPECT_EQ(canonical_export(folder), expected);
  EXPECT_FALSE(fs::is_empty(folder / "models")) << "also of what was trained before";
  EXPECT_TRUE(fs::is_empty(folder / "checkpoints"));
}

TEST_F(FaultsTest, AResultThatCannotBeWrittenIsNoBadInputOfARunThatIsDone) {
  const auto folder = folder_ / "run";
  fs::create_directories(folder / "results.json" / "in the way");
  EXPECT_EQ(run("nas-run", small_search(folder)), 75) << text();
  EXPECT_THAT(text(), HasSubstr((folder / "results.json").string() + ": Is a directory"));
  EXPECT_THAT(text(), HasSubstr("Everything finished is kept in " + folder.string() +
                                "; the same command continues."));
  fs::remove_all(folder / "results.json");
  EXPECT_TRUE(ran("nas-run", small_search(folder)));
  EXPECT_TRUE(fs::is_regular_file(folder / "results.json"));
  EXPECT_EQ(run("nas-export", {folder.string(), "--canonical", "--output",
                               (folder_ / "absent" / "a.jsonl").string()}),
            2)
      << "nothing was done before: " << text();
}

TEST_F(FaultsTest, AFullDiskIsReportedAndTheSameCommandContinues) {
  const Texts more{"evaluation.keep_models=3", "model.width=128"};
  const auto expected = undisturbed(more);
  const auto folder = folder_ / "run";
  EXPECT_EQ(run("nas-run", small_search(folder, more), [] { limit_files(200'000); }), 75) << text();
  EXPECT_THAT(text(), HasSubstr("no space left in " + folder.string()));
  EXPECT_THAT(text(), HasSubstr("the same command continues"));
  EXPECT_TRUE(ran("nas-run", small_search(folder, more)));
  EXPECT_EQ(canonical_export(folder), expected);
}

TEST_F(FaultsTest, ARunInWhichTooManyFailEndsAndGoesOn) {
  const auto folder = folder_ / "run";
  const Texts more{"evaluation.memory_limit=0.0001", "evaluation.failure_window=5",
                   "algorithm.generations=2"};
  EXPECT_EQ(run("nas-run", small_search(folder, more)), 75) << text();
  EXPECT_THAT(text(), HasSubstr("nas-run: too many failures, 5 of the latest 5 candidates: "));
  EXPECT_THAT(text(), HasSubstr("Everything finished is kept in "));
  EXPECT_EQ(run("nas-run", {folder.string(), "--status"}), 0);
  EXPECT_THAT(text(), HasSubstr("5 evaluations, ended by too many failures, 5 of the latest"));
  const auto results = results_of(folder);
  EXPECT_THAT(results.at("ended_by"), HasSubstr("too many failures"));
  auto undaunted = small_search(folder, more);
  undaunted.emplace_back("evaluation.failure_window=0");
  EXPECT_TRUE(ran("nas-run", undaunted));
  EXPECT_THAT(text(), Not(HasSubstr("too many failures")));
}

TEST_F(FaultsTest, TooLittleAddressSpaceIsSaidBeforeAnythingIsTrained) {
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
  GTEST_SKIP() << "a sanitizer takes address space of its own";
#endif
  const auto folder = folder_ / "run";
  const auto arguments = small_search(folder, {"evaluation.workers=16"});
  EXPECT_EQ(run("nas-run", arguments,
                [] {
                  const rlimit limit{rlim_t{2'000'000} * 1024, RLIM_INFINITY};
                  setrlimit(RLIMIT_AS, &limit);
                }),
            75)
      << text();
  EXPECT_THAT(text(), HasSubstr("the limit of this process's address space, 2000000 KiB (ulimit "
                                "-v), leaves too little for matrix products"));
  EXPECT_FALSE(fs::exists(folder));
}

class FaultsOfATextTest : public FaultsTest {
 protected:
  /// What is said of a text of so many pieces. @param data  of the configuration, but for the corpus.
  std::string said(const std::string& data, const std::string& piece, int number, int code = 0) {
    std::ofstream stream(file_, std::ios::binary);
    for (int i = 0; i < number; ++i) stream << piece;
    stream.close();
    EXPECT_EQ(run("nas-run",
                  {config("smoke.yaml"), "--dry-run", "data={corpus: text_file, " + data + "}"}),
              code)
        << text();
    return text();
  }

  const std::string file_ = (folder_ / "a.txt").string();
};

TEST_F(FaultsOfATextTest, FromWhichNothingCanBeLearnedIsSaid) {
  const auto path = "path: " + file_;
  const auto is_refused = [&](const std::string& what) {
    return HasSubstr("data.path = " + file_ + what);
  };
  EXPECT_THAT(said(path, "a few words and another\n", 300), Not(HasSubstr("warning")));
  EXPECT_THAT(said(path, "a caf\xe9 and another\n", 300, 2),
              is_refused(" is no UTF-8 (byte 0xE9 in line 1); must be UTF-8: iconv"));
  EXPECT_THAT(said(path, std::string("a\0b and another\n", 16), 300, 2),
              is_refused(" has 300 NUL bytes"));
  EXPECT_THAT(said(path, "two words\n", 60),
              HasSubstr("the valid split has 2 windows of 16 tokens, fewer than a batch of "
                        "training (training.batch_size = 8): results say little"));
}

TEST_F(FaultsOfATextTest, WithoutEndsOfLinesIsLookedAtToo) {
  const auto splits = "train: " + file_ + ", valid: " + file_ + ", test: " + file_;
  EXPECT_THAT(said(splits, "caf\xc3\xa9 an ", 125'000), Not(HasSubstr("a.txt has")));
  EXPECT_THAT(said(splits, "caf\xe9 an ", 140'000, 2),
              HasSubstr("a.txt is no UTF-8 (byte 0xE9 in line 1)"));
  EXPECT_THAT(said(splits, "a few words\r", 420, 2),
              HasSubstr("a.txt ends its lines with \\r alone, must end them with \\n"));
  EXPECT_THAT(
      said(splits, "a few words\r\n", 400),
      AllOf(Not(HasSubstr("a.txt has")), HasSubstr("data.train and data.valid are one text"),
            HasSubstr("data.train and data.test are one text")));
}

TEST_F(FaultsTest, DivergenceBeyondTheRangeOfNumbersLeavesAReadableRun) {
  for (const auto* rate : {"10", "30"}) {
    const auto folder = folder_ / rate;
    const auto arguments =
        small_search(folder, {"algorithm.population=3", "algorithm.elite=1", "algorithm.parents=2",
                              std::string("training.learning_rate=") + rate});
    EXPECT_TRUE(ran("nas-run", arguments));
    EXPECT_TRUE(ran("nas-run", arguments));
    std::istringstream lines(canonical_export(folder));
    for (std::string line; std::getline(lines, line);) {
      const auto record = nlohmann::json::parse(line);
      if (record.value("status", "") != "ok") continue;
      EXPECT_TRUE(record.at("values").at("perplexity").is_number()) << line;
    }
  }
}

TEST_F(FaultsTest, SignalsThatAnnounceTheEndStopAsControlCDoes) {
  for (const int number : {SIGHUP, SIGUSR1, SIGXCPU}) {
    const auto folder = folder_ / std::to_string(number);
    const auto output = folder_ / (std::to_string(number) + ".txt");
    const auto arguments =
        small_search(folder, {"training.steps=100000", "training.checkpoint_minutes=0.002"});
    Program program("nas-run", arguments, output);
    while (!fs::exists(folder / "checkpoints") || fs::is_empty(folder / "checkpoints")) {
      std::this_thread::sleep_for(5ms);
    }
    program.kill(number);
    int code = -1;
    ASSERT_TRUE(program.wait_for(10s, code)) << strsignal(number);
    EXPECT_EQ(code, 130) << strsignal(number);
    EXPECT_THAT(read_file(output), HasSubstr("same command continues")) << strsignal(number);
    EXPECT_TRUE(fs::exists(folder / "results.json")) << strsignal(number);
  }
}

TEST_F(FaultsTest, NobodyNeedsToReadStandardOutput) {
  const auto folder = folder_ / "run";
  const auto nobody_reads = [] {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) _exit(1);
    close(ends[0]);
    dup2(ends[1], STDOUT_FILENO);
  };
  EXPECT_TRUE(ran("nas-run", small_search(folder), nobody_reads));
  EXPECT_TRUE(fs::exists(folder / "results.json"));
}

TEST_F(FaultsTest, WhatStandardOutputDoesNotTakeIsNoSuccess) {
  const auto folder = folder_ / "run";
  const auto full = [] { dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO); };
  EXPECT_EQ(run("nas-run", small_search(folder), full), 75) << text();
  EXPECT_THAT(text(), HasSubstr("nas-run: standard output: cannot be written"));
  EXPECT_THAT(text(), HasSubstr("Everything finished is kept in " + folder.string() +
                                "; the same command continues."));
  EXPECT_TRUE(ran("nas-run", small_search(folder)));
  const std::pair<const char*, Texts> readers[] = {
      {"nas-run", {folder.string(), "--status"}},
      {"nas-run", {"verify", folder.string()}},
      {"nas-export", {folder.string(), "--canonical"}}};
  const auto limited = [] {
    signal(SIGXFSZ, SIG_DFL);
    limit_files(8192);
  };
  for (const auto& [program, words] : readers) {
    EXPECT_EQ(run(program, words, full), 75) << program << ' ' << words.back() << text();
    EXPECT_EQ(run(program, words, limited), 75) << program << ' ' << words.back() << text();
    EXPECT_EQ(run(program, words), 0) << program << ' ' << words.back() << text();
  }
  EXPECT_EQ(run("nas-run", {"schema"}, full), 75);
  EXPECT_EQ(run("nas-data", {"--version"}, full), 75);
}

TEST_F(FaultsTest, WhatIsStoppedBeforeItHasBegunIsNotSaidToKeepAnything) {
  const auto folder = folder_ / "run";
  EXPECT_EQ(run("nas-run", small_search(folder), [] { request_stop(); }), 130) << text();
  EXPECT_THAT(text(), HasSubstr("\nStopped.\n"));
  EXPECT_THAT(text(), Not(HasSubstr("kept in")));
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(FaultsTest, ASearchInWhichEverythingFailsEndsEarlyAndFailuresAreTriedAgainOnRequest) {
  const auto folder = folder_ / "run";
  const Texts little{"evaluation.memory_limit=0.0001", "algorithm.population=12"};
  EXPECT_EQ(run("nas-run", small_search(folder, little)), 75) << text();
  EXPECT_THAT(text(), HasSubstr("none of the first 10 evaluations succeeded: "));
  EXPECT_THAT(text(), HasSubstr("out_of_memory"));
  auto again = small_search(folder, little);
  again.insert(again.end(), {"--retry", "failed"});
  EXPECT_EQ(run("nas-run", again), 75) << text();
  EXPECT_THAT(text(), HasSubstr("failed evaluations are tried again"));
  again.back() = "all";
  expect_refusal("nas-run", again, "--retry all, must be failed");
}

TEST_F(FaultsTest, WhatASearchHasMadeInItsTimeIsMadeAgainHoweverMuchIsLeft) {
  const auto folder = folder_ / "run";
  auto search = small_search(folder, {"evaluation.memory_limit=0.00052", "budget.seconds=1000"});
  EXPECT_TRUE(ran("nas-run", search));
  const auto first = canonical_export(folder);
  EXPECT_THAT(first, HasSubstr("out_of_memory"));
  change_fitted(folder / "store.sqlite",
                "UPDATE meta SET value = '2000' WHERE key = 'elapsed_seconds'");
  EXPECT_TRUE(ran("nas-run", search));
  EXPECT_EQ(canonical_export(folder), first) << "recalling takes nothing of it";
  search.insert(search.end(), {"--retry", "failed"});
  EXPECT_TRUE(ran("nas-run", search));
  EXPECT_THAT(text(), HasSubstr("failed evaluations are tried again"));
  EXPECT_THAT(text(), HasSubstr("ended by: the algorithm's end"));
  EXPECT_EQ(canonical_export(folder), first);
}

}  // namespace
}  // namespace nas::testing
