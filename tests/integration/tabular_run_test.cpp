#include "integration/program.hpp"
#include "store/store.hpp"
#include "unit/small_table.hpp"

namespace nas::testing {
namespace {

/// Searches on a small table, as a user runs them.
class TabularRunTest : public ProgramTest {
 protected:
  TabularRunTest() {
    write_table(small_content(), folder_ / "small.table");
    std::ofstream(folder_ / "search.yaml")
        << "problem: {type: tabular, table: " << (folder_ / "small.table").string() << "}\n"
        << "objectives: [perplexity, attention_flops, latency]\n"
        << "algorithm: {name: nsga2, population: 8, generations: 5}\n";
  }
  [[nodiscard]] Texts search(const std::string& name, Texts more = {}) const {
    Texts words{(folder_ / "search.yaml").string(), "--output", (folder_ / name).string(),
                "name=search", "--no-report"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(TabularRunTest, TheSameTableFromAnotherFolderIsTheSameRunAndAnotherTableIsNot) {
  const auto table = [](const std::string& place) { return Texts{"problem.table=" + place}; };
  const auto from_here = [this] { ASSERT_EQ(chdir(folder_.c_str()), 0); };
  ASSERT_TRUE(ran("nas-run", search("a", table("small.table")), from_here));
  const auto before = canonical_export(folder_ / "a");
  const auto whole = (folder_ / "small.table").string();
  EXPECT_TRUE(ran("nas-run", search("a", table(whole))));
  EXPECT_EQ(canonical_export(folder_ / "a"), before);
  ASSERT_TRUE(ran("nas-run", search("b", table(whole))));
  EXPECT_EQ(canonical_export(folder_ / "b"), before) << "of a run that began there, too";
  auto cells = small_cells();
  cells.pop_back();
  write_table(small_content(cells), folder_ / "small.table");
  EXPECT_EQ(run("nas-run", search("a", table("small.table")), from_here), 2) << text();
  EXPECT_THAT(text(), HasSubstr("evaluations that would now be made otherwise:\n  table: "));
}

TEST_F(TabularRunTest, AFinishedRunIsNotSearchedAgain) {
  const auto fact = [this](const char* key) {
    return Store(folder_ / "a" / "store.sqlite", Store::Mode::read_only).meta(key);
  };
  ASSERT_TRUE(ran("nas-run", search("a")));
  const auto exported = canonical_export(folder_ / "a");
  const auto elapsed = fact("elapsed_seconds");
  EXPECT_EQ(fact("finished"), true);
  fs::remove(folder_ / "a" / "results.json");
  ASSERT_TRUE(ran("nas-run", search("a")));
  EXPECT_EQ(fact("elapsed_seconds"), elapsed);
  EXPECT_EQ(fact("sessions")->size(), 2U);
  EXPECT_TRUE(fs::exists(folder_ / "a" / "results.json"));
  EXPECT_EQ(canonical_export(folder_ / "a"), exported);
  ASSERT_TRUE(ran("nas-run", search("a", {"budget.evaluations=2000"})));
  EXPECT_EQ(fact("elapsed_seconds"), elapsed) << "everything was known";
  EXPECT_EQ(fact("config")->at("budget").at("evaluations"), 2000);
}

TEST_F(TabularRunTest, ABudgetThatEndsAFinishedSearchSoonerIsRefused) {
  ASSERT_TRUE(ran("nas-run", search("a")));
  const auto exported = canonical_export(folder_ / "a");
  const auto facts = [this] {
    const Store store(folder_ / "a" / "store.sqlite", Store::Mode::read_only);
    std::vector<nlohmann::json> all;
    for (const auto* key : {"config", "ended_by", "finished", "last_population"})
      all.push_back(store.meta(key).value_or(nullptr));
    all.push_back(store.indicators().size());
    return all;
  };
  const auto before = facts();
  for (const auto& [budget, why] : std::map<std::string, std::string>{
           {"budget.evaluations=5",
            "budget.evaluations = 5, must be at least the 11 that its search has taken"},
           {"budget.asks=39", "budget.asks = 39, must be at least the 40 that"},
           {"budget.train_steps=100", "budget.train_steps = 100, must be at least the 440 that"},
           {"budget.train_seconds=1", "budget.train_seconds = 1, must be at least the 346"},
           {"budget.seconds=0.000001", "budget.seconds = 1e-06, must be at least the "},
           {"budget.stagnation=8",
            "the run holds 40 asks, and would now end after 16 (no progress in 8 asks): undo"}}) {
    expect_refusal("nas-run", search("a", {budget}), why);
    EXPECT_EQ(canonical_export(folder_ / "a"), exported) << budget;
    EXPECT_EQ(facts(), before) << budget;
  }
  EXPECT_EQ(run("nas-run", search("a", {"budget.evaluations=11"})), 0) << "as many: " << text();
  ASSERT_EQ(
      run("nas-run", search("b", {"budget.evaluations=5", "--reuse", (folder_ / "a").string()})), 0)
      << "as the message says: " << text();
}

TEST_F(TabularRunTest, ABudgetThatIsRaisedLeavesNoMoreIndicatorsThanOneThatWasSoAtOnce) {
  const auto indicated = [this](const char* name) {
    std::vector<std::int64_t> asked;
    const Store store(folder_ / name / "store.sqlite", Store::Mode::read_only);
    for (const auto& indicator : store.indicators()) asked.push_back(indicator.asked);
    return asked;
  };
  ASSERT_TRUE(ran("nas-run", search("a")));
  ASSERT_TRUE(ran("nas-run", search("b", {"budget.asks=30"})));
  EXPECT_EQ(indicated("b").back(), 30);
  ASSERT_TRUE(ran("nas-run", search("b")));
  EXPECT_EQ(indicated("b"), indicated("a"));
}

TEST_F(TabularRunTest, MoreReplicatesThanItHoldsAreRefused) {
  const auto refused = [this](const Texts& more, const std::string& why) {
    expect_refusal("nas-run", search("refused", more), why);
    EXPECT_FALSE(fs::exists(folder_ / "refused")) << why;
  };
  refused({"evaluation.replicates=4"},
          "evaluation.replicates = 4, must be at most 3: the table has no more");
  refused({"evaluation.replicates=2", "problem.mode=mean"},
          "evaluation.replicates = 2, must be at most 1: the table has no more under "
          "problem.mode = mean");
  refused({"evaluation.racing_replicates=3"},
          "evaluation.racing_replicates = 3, must be 0 unless problem.mode = paired");
  EXPECT_TRUE(
      ran("nas-run", search("raced", {"evaluation.racing_replicates=3", "problem.mode=paired"})));
}

TEST_F(TabularRunTest, WhatTheTableLacksIsRefusedBeforeAnythingIsWritten) {
  EXPECT_EQ(run("nas-run", search("a", {"objectives=[perplexity, decode_latency]"})), 2);
  expect_text("decode_latency was not measured for this table, measured: latency");
  EXPECT_EQ(run("nas-run", search("a", {"problem.table=no.table"})), 2);
  expect_text("problem.table = no.table, must be a table, there is none in ");
  EXPECT_EQ(run("nas-run", search("a", {"objectives=[perplexity, {name: latency, batch: 4}]"})), 0)
      << "a measurement that does not say its batch is taken as it is: " << text();
}

}  // namespace
}  // namespace nas::testing
