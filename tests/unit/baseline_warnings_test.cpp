// What is said of a baseline that is no better than guesses or counts.

#include "digest_file.hpp"
#include "prelude.hpp"
#include "report/verdict.hpp"
#include "unit/report_fixture.hpp"

namespace nas {
namespace {

TEST_F(ReportTest, ABaselineNoBetterThanTheUnigramModelIsSaidLast) {
  const auto table = [this](const nlohmann::json& unigram) {
    return closing_table(run_with("facts", {{"unigram_perplexity", unigram}}));
  };
  for (const auto& unigram : {nlohmann::json(100.5), nlohmann::json(0.0), nlohmann::json()}) {
    EXPECT_THAT(table(unigram), Not(HasSubstr("learned nothing"))) << unigram;
  }
  EXPECT_THAT(table(62.25),
              EndsWith("\n\nThe baseline has learned nothing: its perplexity is 100.00, "
                       "that of the unigram model, which looks\nat no context, 62.25. Train "
                       "longer, or with another learning rate, before mechanisms are "
                       "compared.\n"));
}

TEST_F(ReportTest, CountsOfTheTrainingTokensAreShownAndABaselineBehindThemIsSaid) {
  const auto counted = [this](double nll) {
    return run_with("count_models",
                    {{{"order", 1}, {"tokens", 614400}, {"valid_nll", 9.0}},
                     {{"order", 3}, {"tokens", 614400}, {"valid_nll", nll}, {"test_nll", 0.1}},
                     {{"order", 4}, {"tokens", 614400}}});
  };
  const auto ahead = counted(std::log(99.0));
  EXPECT_EQ(behind_counts_text(ahead),
            "The baseline is behind counts of the tokens that it was trained on: its perplexity is "
            "100.00, that of counts of order 3 99.00. It has not learned yet what the last 2 "
            "tokens say.");
  EXPECT_THAT(closing_table(ahead), HasSubstr("with as much history: perplexity 99.00 (order 3)"));
  expect_values(test::results_json(ahead), {{"/count_models/1/order", 3}});
  EXPECT_EQ(behind_counts_text(counted(std::log(101.0))), "");
  EXPECT_THAT(behind_counts_text(run_with(
                  "count_models", {{{"order", 1}, {"tokens", 9}, {"valid_nll", std::log(99.0)}}})),
              EndsWith("It has not learned yet how often each token comes."));
  EXPECT_FALSE(best_counts(run_with("count_models", nullptr)));
}

TEST_F(ReportTest, WhereAccuracyIsFirstItJudgesTheBaselineToo) {
  store_->set_meta("schema", {{"objectives", {{"accuracy", {{"source", "trained"}}}}}});
  auto baseline = evaluation("w", 100);
  baseline.values["accuracy"] = 0.4;
  store_->add({baseline});
  store_->set_meta("baseline", {{"evaluations", {"w"}}, {"fitness", {-0.4}}});
  (void)run_with("objectives", nlohmann::json::array({objective("accuracy", "1", 1, 0, true)}));
  const auto counted = [this](double accuracy) {
    return run_with(
        "count_models",
        {{{"order", 1}, {"tokens", 614400}, {"valid_nll", 0.1}, {"valid_accuracy", 0.1}},
         {{"order", 2}, {"tokens", 614400}, {"valid_accuracy", accuracy}}});
  };
  constexpr double kOwn = 0.4;  // of every evaluation of the fixture
  const auto ahead = counted(kOwn + 0.01);
  EXPECT_EQ(measure_of(ahead), Measure::accuracy);
  EXPECT_THAT(behind_counts_text(ahead),
              MatchesRegex("The baseline is behind counts of the tokens that it was "
                           "trained on: its accuracy is 0\\.[0-9]+, that of counts of "
                           "order 2 0\\.[0-9]+\\. It has .*"));
  EXPECT_THAT(closing_table(ahead), HasSubstr("with as much history: accuracy 0."));
  EXPECT_EQ(behind_counts_text(counted(kOwn - 0.01)), "") << "its perplexity is worse";
  const auto guessed = [this](double accuracy) {
    return unlearned_text(run_with(
        "facts",
        {{"unigram_perplexity", 2.0},
         {"chance", {{"by", "guessing among labels"}, {"nll", 0.1}, {"accuracy", accuracy}}}}));
  };
  EXPECT_THAT(guessed(kOwn), HasSubstr("that of guessing among labels 0."));
  EXPECT_EQ(guessed(kOwn - 0.01), "");
  EXPECT_EQ(unlearned_text(run_with("facts", {{"unigram_perplexity", 2.0}})), "")
      << "a low accuracy is not known from perplexities";
}

}  // namespace
}  // namespace nas
