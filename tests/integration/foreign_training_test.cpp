#include <gmock/gmock.h>

#include "integration/program.hpp"

namespace nas::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

/// A training that knows nothing of this project: a valley in x with noise by seed, better by kind b, that says its loss at steps.
constexpr const char* kScript = R"(#!/bin/sh
x=$1 kind=$2 seed=$3
echo "$x $kind $seed" >> "$0.log"
[ "$kind" = fails ] && { echo "no such kind" >&2; exit 3; }
[ "$kind" = silent ] && exit 0
[ "$kind" = nan ] && { echo "step 40 loss nan"; exit 0; }
[ "$kind" = sleeps ] && sleep 60
[ "$kind" = closes ] && exec sleep 60 >&- 2>&-
[ "$kind" = early ] && { echo "step 20 loss 1"; exit 0; }
[ "$kind" = leaves ] && sleep 60 &
for step in 10 20 40; do
  awk -v x="$x" -v seed="$seed" -v s="$step" -v k="$kind" \
    'BEGIN { printf "step %d loss %.6f\n", s, (x - 3) ^ 2 + (k == "b" ? 0 : 1) + 10 / s + (seed % 100) / 1000 }'
done
)";

constexpr const char* kRungs =
    "  step: 'step ([0-9]+)'\n  rungs: [20, 40]\nfidelity: {rungs: [20]}\n";

class ForeignTrainingTest : public ProgramTest {
 protected:
  ForeignTrainingTest() {
    std::ofstream(script()) << kScript;
    std::filesystem::permissions(script(), std::filesystem::perms::owner_all);
    write("a, b");
  }
  [[nodiscard]] std::filesystem::path script() const { return folder_ / "train"; }
  void write(const std::string& kinds, const std::string& more = "") const {
    std::ofstream(folder_ / "search.yaml")
        << "problem:\n  type: command\n  command: [" << script().string()
        << ", '{x}', '{kind}', '{seed}']\n  parameters: ['x = 0 .. 8', 'kind = " << kinds
        << "']\n  metrics: ['loss = loss ([-0-9.a-z]+)']\n"
        << more << "algorithm: {name: motpe, population: 6, evaluations: 14}\n";
  }
  int search(const std::string& name, Words more = {}) {
    Words words{(folder_ / "search.yaml").string(), "--output", (folder_ / name).string(),
                "name=search", "--no-report"};
    words.insert(words.end(), more.begin(), more.end());
    return run("nas-run", words);
  }
  [[nodiscard]] std::size_t trainings() const {
    const auto log = read_file(script().string() + ".log");
    return static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n'));
  }
};

TEST_F(ForeignTrainingTest, FindsTheValleyAlikeWithOneWorkerAndWithTwo) {
  ASSERT_EQ(search("one", {"evaluation.replicates=2"}), 0) << text();
  EXPECT_THAT(text(),
              AllOf(HasSubstr("kind=b"), ContainsRegex("candidate +loss"), Not(HasSubstr("nan"))));
  EXPECT_EQ(trainings(), 28U);
  ASSERT_EQ(search("two", {"evaluation.replicates=2", "evaluation.workers=2"}), 0) << text();
  EXPECT_EQ(canonical_export(folder_ / "one"), canonical_export(folder_ / "two"));
  ASSERT_EQ(search("one", {"evaluation.replicates=2"}), 0) << text();
  EXPECT_EQ(trainings(), 56U) << "a finished search trains nothing again";
}

TEST_F(ForeignTrainingTest, KilledItGoesOnWithWhatItHas) {
  for (const auto* rungs : {"", kRungs}) {
    SCOPED_TRACE(rungs);
    write("a, b", rungs);
    const auto name = std::string(rungs == kRungs ? "rungs" : "plain");
    const std::string in_flight = "algorithm.in_flight=4";
    ASSERT_EQ(search(name, {in_flight}), 0) << text();
    const auto whole = trainings();
    for (int kill = 0; kill < 3; ++kill) {
      Program program(
          "nas-run",
          {(folder_ / "search.yaml").string(), "--output", (folder_ / (name + "-killed")).string(),
           "name=search", "--no-report", in_flight},
          folder_ / "log");
      std::this_thread::sleep_for(std::chrono::milliseconds(150 + 100 * kill));
      program.kill(SIGKILL);
      program.wait();
    }
    ASSERT_EQ(search(name + "-killed", {in_flight}), 0) << text();
    EXPECT_EQ(canonical_export(folder_ / (name + "-killed")), canonical_export(folder_ / name));
    EXPECT_LE(trainings(), 2 * whole + 3) << "a kill loses the training in flight";
    std::filesystem::remove(script().string() + ".log");
  }
}

TEST_F(ForeignTrainingTest, WhatATrainingLeavesBehindHoldsNothingUp) {
  write("leaves");
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(search("leaves", {"budget.evaluations=3"}), 0) << text();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  EXPECT_THAT(canonical_export(folder_ / "leaves"), HasSubstr("\"ok\""));
}

TEST_F(ForeignTrainingTest, ARungStopsTheProcess) {
  write("a, b", kRungs);
  ASSERT_EQ(search("rungs", {"algorithm.in_flight=4"}), 0) << text();
  const auto exported = canonical_export(folder_ / "rungs");
  EXPECT_THAT(exported, HasSubstr("\"paused\""));
  EXPECT_THAT(exported, HasSubstr("loss@20"));
  write("early", kRungs);
  EXPECT_THAT(text(), Not(HasSubstr("nan")));
  ASSERT_EQ(search("early", {"budget.evaluations=3", "algorithm.in_flight=4"}), 0) << text();
  EXPECT_THAT(canonical_export(folder_ / "early"), HasSubstr("loss@40"))
      << "its end, whatever step that was";
}

TEST_F(ForeignTrainingTest, WhatItFoundIsTrainedAgainOnFreshSeeds) {
  ASSERT_EQ(search("retest", {"retest={replicates: 3, top: 2}"}), 0) << text();
  EXPECT_EQ(trainings(), 14U + 6U);
  const auto retest = results_of(folder_ / "retest").at("retest");
  ASSERT_EQ(retest.at("candidates").size(), 2U);
  EXPECT_EQ(retest.at("replicates"), 3);
}

TEST_F(ForeignTrainingTest, SaysWhyATrainingFailed) {
  struct Row {
    const char *kind, *status, *reason;
  };
  for (const auto& row :
       {Row{"fails", "failed", "exit code 3; it said last: no such kind"},
        Row{"silent", "failed", "printed nothing that metric loss matches"},
        Row{"nan", "diverged", "loss"}, Row{"sleeps", "timed_out", "took longer than 0.3 s"},
        Row{"closes", "timed_out", "took longer than 0.3 s"}}) {
    SCOPED_TRACE(row.kind);
    write(std::string("b, ") + row.kind);
    ASSERT_EQ(search(row.kind, {"algorithm.name=random_search", "evaluation.time_limit=0.3",
                                "budget.evaluations=6"}),
              0)
        << text();
    const auto exported = canonical_export(folder_ / row.kind);
    EXPECT_THAT(exported, HasSubstr(row.status));
    EXPECT_THAT(exported, HasSubstr(row.reason));
  }
}

TEST_F(ForeignTrainingTest, RefusesWhatCannotBeSearched) {
  struct Row {
    const char *setting, *said;
  };
  for (const auto& row : {
           Row{"problem.parameters=['x = 0 .. 8']", "must name a parameter in {kind}, or seed"},
           Row{"problem.parameters=['x = 8 .. 0', 'kind = a']",
               "problem.parameters = x = 8 .. 0, must be NAME = LOWEST .. HIGHEST"},
           Row{"problem.parameters=['x = 0 .. 8 log', 'kind = a']", "must begin above 0"},
           Row{"problem.parameters=['x = 0 .. 8.5 integer', 'kind = a']", "must have whole bounds"},
           Row{"problem.parameters=['x = 0 .. 8', 'kind = a,']",
               "must have options that are not empty"},
           Row{"problem.parameters=['seed = 0 .. 8']", "{seed} is the training's"},
           Row{"problem.metrics=['loss = loss [0-9]+']", "must have one group"},
           Row{"problem.metrics=['loss = loss ([0-9']", "must be a regular expression"},
           Row{"problem.metrics=['status = ([0-9])']", "must have another name"},
           Row{"problem.metrics=['a = ([0-9])', 'a = ([0-9])']", "must have a name of its own"},
           Row{"problem.rungs=[10]", "problem.rungs = [10], must be given where problem.step is"},
           Row{"problem.command=[/no/such/program, '{x}', '{kind}', '{seed}']",
               "must begin with a program that can be started"},
           Row{"baseline=x=9|kind=a", "baseline"},
       }) {
    SCOPED_TRACE(row.setting);
    EXPECT_EQ(search("refused", {row.setting}), 2) << text();
    EXPECT_THAT(text(), HasSubstr(row.said));
  }
}

}  // namespace
}  // namespace nas::testing
