// What a comparison looks at before it trains mechanisms: controls, and whether its seeds are fresh.

#include "integration/program.hpp"

namespace nas::testing {
namespace {

class ComparisonBegins : public ProgramTest {
 protected:
  int train(const std::string& name, Texts words) {
    words.insert(words.begin(), {"sparsemax", config("smoke.yaml")});
    words.insert(words.end(), {"--output", (folder_ / name).string(), "--no-report"});
    return run("nas-train", words);
  }
};

TEST_F(ComparisonBegins, AControlThatIsBetterEndsItUnlessAllIsWantedAnyway) {
  const Texts unlearned{
      "--seeds", "4", "controls=true", "training.steps=30",
      "rates=[baseline 1e-7, no mixer 0.02, window 2 1e-7, window 4 1e-7, window 8 1e-7]"};
  ASSERT_EQ(train("run", unlearned), 0) << text();
  expect_text("A control, no mixer, is better than the baseline by ");
  const auto found = results_of(folder_ / "run");
  EXPECT_THAT(found["retest"]["verdict"].get<std::string>(),
              HasSubstr("No mechanism was trained, since nothing here could be said of "
                        "attention: "));
  EXPECT_EQ(found["retest"]["voided"], true);
  for (const auto& row : found["retest"]["candidates"]) EXPECT_NE(row["role"], "listed");
  const auto trained = found["evaluations"].size();

  auto anyway = unlearned;
  anyway.emplace_back("--anyway");
  ASSERT_EQ(train("run", anyway), 0) << text();
  const auto whole = results_of(folder_ / "run");
  EXPECT_FALSE(whole["retest"].contains("voided"));
  EXPECT_EQ(whole["retest"]["candidates"][0]["role"], "listed");
  EXPECT_GE(whole["evaluations"].size(), trained + 4) << "what was trained stays";
}

TEST_F(ComparisonBegins, SeedsThatAnotherRunHasSeenAreSaidAndCanBeLeftOut) {
  const Texts few{"--seeds", "3", "retest.tune=false"};
  ASSERT_EQ(train("first", few), 0) << text();
  EXPECT_THAT(text(), Not(HasSubstr("seen before")));
  ASSERT_EQ(train("second", {"--seeds", "5", "retest.tune=false"}), 0) << text();
  expect_text(
      "Of its seeds the first 3 were seen before, by first; retest.first_seed=3 takes others.");
  const auto verdict = results_of(folder_ / "second")["retest"]["verdict"].get<std::string>();
  EXPECT_THAT(verdict, HasSubstr("were seen before, by first"));
  ASSERT_EQ(train("third", {"--seeds", "3", "retest.tune=false", "retest.first_seed=5"}), 0);
  EXPECT_THAT(text(), Not(HasSubstr("seen before")));
  const auto third = results_of(folder_ / "third");
  for (const auto& evaluation : third["evaluations"]) {
    EXPECT_GE(evaluation["replicate"], 1'000'005);
  }
  ASSERT_EQ(train("other", {"--seeds", "3", "retest.tune=false", "seed=77"}), 0);
  EXPECT_THAT(text(), Not(HasSubstr("seen before"))) << "of another seed";
}

}  // namespace
}  // namespace nas::testing
