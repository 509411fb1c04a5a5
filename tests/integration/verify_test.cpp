// Evaluations of a run that are made again and compared with its record.

#include <SQLiteCpp/SQLiteCpp.h>

#include "integration/program.hpp"
#include "store/store.hpp"
#include "unit/fitted_digests.hpp"
#include "unit/small_table.hpp"

namespace nas::testing {
namespace {

using ::testing::IsSupersetOf;
using Words = Texts;

class VerifyTest : public ProgramTest {
 protected:
  /// A search of five tiny training runs.
  void search(const Words& more = {}) {
    Words words{config("smoke.yaml"),
                "--output",
                run_.string(),
                "training.steps=20",
                "training.checkpoints=[10]",
                "budget.evaluations=5",
                "evaluation.workers=2",
                "evaluation.array=2",
                "--no-report"};
    words.insert(words.end(), more.begin(), more.end());
    ASSERT_TRUE(ran("nas-run", words));
  }

  int verify(const Words& more) {
    Words words{"verify", run_.string()};
    words.insert(words.end(), more.begin(), more.end());
    return run("nas-run", words);
  }

  [[nodiscard]] fs::path store() const { return run_ / "store.sqlite"; }

  /// Those that were trained to an end.
  [[nodiscard]] std::vector<Evaluation> trained() const {
    auto evaluations = Store(store(), Store::Mode::read_only).evaluations();
    std::erase_if(evaluations, [](const auto& one) {
      return !is_usable(one) && one.status != Status::diverged;
    });
    return evaluations;
  }

  /// Changes the store past the program.
  void change(const std::string& sql) const { change_fitted(store(), sql); }
  /// The same, with digests that do not fit.
  void damage(const std::string& sql) const {
    SQLite::Database(store().string(), SQLite::OPEN_READWRITE).exec(sql);
  }

  /// Records an evaluation otherwise, with a digest that fits.
  void record(Evaluation evaluation, const std::function<void(Evaluation&)>& alter) const {
    alter(evaluation);
    change("DELETE FROM evaluations WHERE id = '" + evaluation.id + "'");
    Store(store(), Store::Mode::write).add({evaluation});
  }

  /// Size and time of the run's files, but for those that SQLite has beside a store that is read.
  [[nodiscard]] std::map<std::string, std::pair<std::uintmax_t, fs::file_time_type>> files() const {
    std::map<std::string, std::pair<std::uintmax_t, fs::file_time_type>> found;
    for (const auto& entry : fs::recursive_directory_iterator(run_)) {
      const auto name = entry.path().string();
      if (name.ends_with("-wal") || name.ends_with("-shm")) continue;
      found[name] = {entry.is_directory() ? 0 : entry.file_size(),
                     entry.is_directory() ? fs::file_time_type() : entry.last_write_time()};
    }
    return found;
  }

  /// What the lines of the program's output name, "retrained vanilla replicate 0".
  [[nodiscard]] std::multiset<std::string> retrained() const {
    std::multiset<std::string> names;
    std::istringstream lines(text());
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("retrained ") || line.find(" replicate ") == std::string::npos)
        continue;
      names.insert(line.substr(0, line.rfind(": ")));
    }
    return names;
  }

  static std::string of(std::size_t count) { return std::to_string(count) + " evaluations: "; }

  const fs::path run_ = folder_ / "run";
};

TEST_F(VerifyTest, SearchTuningAndRetestComeAgainAndNothingIsWritten) {
  search({"retest={replicates: 2, top: 1}"});
  const auto all = trained();
  const auto before = files();
  ASSERT_EQ(verify({"--retrain", "3"}), 0) << text();
  EXPECT_THAT(text(),
              AllOf(HasSubstr("as written, by their SHA-256"), HasSubstr(": equal ("),
                    HasSubstr(", 1 of 3\n"), HasSubstr(", 3 of 3\n"),
                    HasSubstr("retrained 3 of " + of(all.size()) + "all equal to the record\n")));
  const auto three = retrained();
  EXPECT_EQ(three.size(), 3U) << text();
  ASSERT_EQ(verify({"--retrain", "3", "evaluation.workers=1", "evaluation.array=1"}), 0) << text();
  EXPECT_EQ(retrained(), three) << "the same ones each time";

  ASSERT_EQ(verify({"--retrain", "1000"}), 0) << text();
  const auto count = std::to_string(all.size());
  EXPECT_THAT(text(),
              AllOf(HasSubstr("replicate 1000000: equal ("), HasSubstr(" (learning_rate = "),
                    HasSubstr("retrained " + count + " of " + of(all.size()) +
                              "all equal to the record\n")));
  EXPECT_THAT(retrained(), IsSupersetOf(three));
  EXPECT_EQ(files(), before);

  ASSERT_EQ(verify({"--retrain", "2", "--quiet"}), 0) << text();
  EXPECT_TRUE(retrained().empty()) << text();
  EXPECT_THAT(text(), HasSubstr("retrained 2 of "));
}

TEST_F(VerifyTest, ARecordThatWasAlteredWithItsDigestIsNamed) {
  search();
  const auto one = trained().front();
  const double perplexity = one.values.at("perplexity");
  record(one, [](Evaluation& altered) { altered.values["perplexity"] *= 2.0; });
  ASSERT_EQ(verify({}), 0) << text();
  EXPECT_EQ(verify({"--retrain", "1000"}), 2) << text();
  EXPECT_THAT(text(),
              AllOf(HasSubstr(" replicate 0: differs ("),
                    HasSubstr("\n  values.perplexity: " + nlohmann::json(2.0 * perplexity).dump() +
                              " -> " + nlohmann::json(perplexity).dump() + "\n"),
                    HasSubstr(of(trained().size()) + "1 differs from the record\n"),
                    HasSubstr("the record was altered"), Not(HasSubstr("last digits")),
                    Not(HasSubstr("largest relative difference"))));
}

TEST_F(VerifyTest, AnotherEnvironmentIsSaidWhereResultsDiffer) {
  search();
  change(
      "UPDATE meta SET value = json_set(value, '$[0].environment.torch', '0.1.0') "
      "WHERE key = 'sessions'");
  EXPECT_EQ(verify({"--retrain", "2"}), 0) << text();
  EXPECT_THAT(text(), Not(HasSubstr("LibTorch 0.1.0"))) << "equal all the same";
  record(trained().front(),
         [](Evaluation& altered) { altered.curve.back().valid.nll *= 1.0 + 1e-6; });
  EXPECT_EQ(verify({"--retrain", "1000"}), 2) << text();
  EXPECT_THAT(
      text(),
      AllOf(HasSubstr("\n  curve.1.valid.nll: "),
            HasSubstr("\n  last digits may differ by another environment: LibTorch 0.1.0 -> "),
            HasSubstr("largest relative difference of a final validation loss: 1.0e-06\n"),
            Not(HasSubstr("the record was altered"))));
}

TEST_F(VerifyTest, TheInstructionsOfLibTorchAreSaidWhereResultsDiffer) {
  search();
  setenv("ATEN_CPU_CAPABILITY", "default", 1);
  const int code = run("nas-run", {"verify", run_.string(), "--retrain", "3"}, {}, Start::executed);
  unsetenv("ATEN_CPU_CAPABILITY");
  EXPECT_THAT(text(), Not(HasSubstr("the record was altered")));
  if (code == 0) GTEST_SKIP() << "LibTorch has no other instructions here";
  EXPECT_THAT(text(), AllOf(HasSubstr("LibTorch's instruction set "), HasSubstr(" -> NO AVX"),
                            HasSubstr("ATEN_CPU_CAPABILITY not set -> default")));
}

TEST_F(VerifyTest, WhatFailedOrIsDamagedIsNotTrainedAgain) {
  search();
  const auto all = trained();
  const auto fail = [](Evaluation& altered) {
    altered.status = Status::failed;
    altered.reason = "on request";
  };
  record(all.front(), fail);
  EXPECT_EQ(verify({"--retrain", "1000"}), 0) << text();
  EXPECT_THAT(text(), HasSubstr(of(all.size() - 1) + "all equal to the record\n"));
  for (const auto& one : all) record(one, fail);
  EXPECT_EQ(verify({"--retrain", "1000"}), 2) << text();
  EXPECT_THAT(text(), HasSubstr(run_.string() + ": no evaluation to make again"));

  record(all.front(), [](Evaluation&) {});
  damage("UPDATE evaluations SET reason = 'damaged' WHERE id = '" + all.front().id + "'");
  EXPECT_EQ(verify({"--retrain", "1000"}), 2) << text();
  EXPECT_THAT(text(), AllOf(HasSubstr("its SHA-256 does not fit"), Not(HasSubstr("retrained"))));
}

TEST_F(VerifyTest, ARemovalSaysWhereTheSearchIsNoLongerTheSame) {
  const Words in_order{"algorithm={name: motpe, in_flight: 2}"};
  const Words by_arrival{"algorithm={name: motpe, in_flight: 2, order: arrival}"};
  for (const auto& words : {in_order, by_arrival}) {
    fs::remove_all(run_);
    search(words);
    const auto last = Store(store(), Store::Mode::read_only).asks().back().evaluations.front();
    damage("UPDATE evaluations SET replicate = 7 WHERE id = '" + last + "'");
    ASSERT_EQ(verify({"--remove"}), 0) << text();
    const auto said = HasSubstr("; from there on its search may ask for others than before");
    EXPECT_EQ(::testing::Value(text(), said), words == by_arrival) << text();
    search(words);
    EXPECT_EQ(trained().size(), 5U + 1U);
  }
}

/// A search of rejected candidates was once charged otherwise, which a record must exclude.
TEST_F(VerifyTest, WithoutTheRuleOfItsAnswersARunIsContinued) {
  const Words rejecting{"constraints=[latency <= 1e-9]"};
  search(rejecting);
  const auto asks = Store(store(), Store::Mode::read_only).asks().size();
  damage("UPDATE meta SET value = '1' WHERE key = 'answering'");
  ASSERT_EQ(verify({"--remove"}), 0) << text();
  EXPECT_TRUE(ran("nas-export", {run_.string(), "--canonical"}));
  search(rejecting);
  EXPECT_EQ(Store(store(), Store::Mode::read_only).asks().size(), asks);
}

TEST_F(VerifyTest, WhatWouldBeTrainedOtherwiseIsRefused) {
  search();
  EXPECT_EQ(verify({"--retrain", "1", "training.steps=10"}), 2) << text();
  EXPECT_THAT(text(),
              AllOf(HasSubstr("must be made again with the recorded settings:\n"),
                    HasSubstr("\n  training.steps: 20 -> 10\n"), Not(HasSubstr("retrained"))));
  change("UPDATE meta SET value = json_set(value, '$.seed', 43) WHERE key = 'config'");
  EXPECT_EQ(verify({"--retrain", "1"}), 2) << text();
  EXPECT_THAT(text(), AllOf(HasSubstr(" replicate 0 would be made otherwise here: task "),
                            HasSubstr("identity.run_seed = 42, must be 43 to be measured here"),
                            HasSubstr("; it was made by attnas "), Not(HasSubstr("retrained"))));
}

TEST_F(VerifyTest, OfATableNothingIsTrained) {
  write_table(small_content(), folder_ / "small.table");
  std::ofstream(folder_ / "search.yaml")
      << "problem: {type: tabular, table: " << (folder_ / "small.table").string() << "}\n"
      << "objectives: [perplexity, attention_flops, latency]\n"
      << "algorithm: {name: nsga2, population: 8, generations: 3}\n";
  ASSERT_TRUE(ran("nas-run",
                  {(folder_ / "search.yaml").string(), "--output", run_.string(), "--no-report"}));
  const auto count = std::to_string(trained().size());
  ASSERT_EQ(verify({"--retrain", "5"}), 0) << text();
  EXPECT_THAT(text(), AllOf(HasSubstr("evaluated "), HasSubstr(": equal, 5 of 5\n"),
                            HasSubstr("evaluated 5 of " + count +
                                      " evaluations again, for which the problem tabular trains "
                                      "nothing: all equal to the record\n"),
                            Not(HasSubstr("retrained"))));
  record(trained().front(), [](Evaluation& altered) { altered.values["perplexity"] *= 2.0; });
  ASSERT_EQ(verify({}), 0) << text();
  EXPECT_EQ(verify({"--retrain", "1000"}), 2) << text();
  EXPECT_THAT(text(), AllOf(HasSubstr(": differs, "), HasSubstr("\n  values.perplexity: "),
                            HasSubstr(": 1 differs from the record\n")));
  fs::rename(folder_ / "small.table", folder_ / "moved.table");
  EXPECT_EQ(verify({"--retrain", "1"}), 2) << text();
  EXPECT_EQ(verify({"--retrain", "1000", "problem.table=" + (folder_ / "moved.table").string()}), 2)
      << text();
  EXPECT_THAT(text(), HasSubstr(": 1 differs from the record\n"));
}

TEST_F(VerifyTest, OnlyANumberOfEvaluationsIsTaken) {
  for (const std::string given : {"0", "-1", "x", "1.5", ""}) {
    EXPECT_EQ(verify({"--retrain", given}), 2) << given;
    EXPECT_THAT(text(), HasSubstr("--retrain")) << given;
  }
  EXPECT_EQ(verify({"--retrain", "0"}), 2);
  EXPECT_THAT(text(), HasSubstr("command line: --retrain = 0, must be at least 1"));
  EXPECT_EQ(verify({"--retrain", "x"}), 2);
  EXPECT_THAT(text(), HasSubstr("command line: --retrain = x, must be an integer"));
  EXPECT_EQ(verify({"--retrain", "1"}), 2);
  EXPECT_THAT(text(), HasSubstr("no such store"));
  EXPECT_EQ(verify({"training.steps=10"}), 2);
  EXPECT_THAT(text(), HasSubstr("exactly one run must be given"));
  expect_refusal("nas-run", {config("smoke.yaml"), "--retrain", "3", "--output", run_.string()},
                 "--retrain belongs to nas-run verify");
  EXPECT_FALSE(fs::exists(run_));
}

}  // namespace
}  // namespace nas::testing
