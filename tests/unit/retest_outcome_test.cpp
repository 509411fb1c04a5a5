#include "report/retest_outcome.hpp"

#include "prelude.hpp"
#include "report/verdict.hpp"

namespace nas {
namespace {

using Numbers = std::vector<double>;

/// Perplexity by training, and with `several` a cost by formula.
ObjectiveSet objectives(bool several = false, bool maximise = false) {
  ObjectiveSet set;
  if (several) {
    set.objectives.push_back(
        {.name = "cost",
         .key = "cost",
         .settings = {},
         .objective = {.unit = "FLOP", .analytic = [](const Subject&) { return 0.0; }}});
  }
  set.objectives.push_back(
      {.name = maximise ? "accuracy" : "perplexity",
       .key = "perplexity",
       .settings = {},
       .objective = {.unit = "1",
                     .maximise = maximise,
                     .trained = [](const Evaluation& e) { return e.values.at("perplexity"); }},
       .maximise = maximise});
  return set;
}

/// A candidate whose perplexity at each seed is the same on both splits; 0 stands for a failure.
Retested retested(Role role, const std::string& name, const Numbers& search,
                  const Numbers& perplexities, double cost = 0.0) {
  Retested made{.role = role,
                .candidate = name,
                .label = "the " + name,
                .search = search,
                .search_n = 1,
                .evaluations = {}};
  for (std::size_t i = 0; i < perplexities.size(); ++i) {
    Evaluation evaluation;
    evaluation.id = name + std::to_string(perplexities[i]);
    evaluation.status = perplexities[i] > 0.0 ? Status::ok : Status::diverged;
    if (perplexities[i] > 0.0) {
      evaluation.values = {{"perplexity", perplexities[i]},
                           {"test_perplexity", perplexities[i]},
                           {"test_nll", std::log(perplexities[i])},
                           {"cost", cost}};
    }
    made.evaluations.push_back(evaluation);
  }
  return made;
}

const Numbers kBaseline{100, 104, 98, 102, 101};
/// As many as a probability of the front takes.
const Numbers kEight{100, 104, 98, 102, 101, 99, 103, 97};

Numbers times(double factor, Numbers values, double noise = 0.0) {
  double sign = 1.0;
  for (auto& value : values) {
    value *= factor * (1.0 + sign * noise);
    sign = -sign;
  }
  return values;
}

TEST(RetestOutcome, DistinguishesBetterWorseAndNoise) {
  const auto outcome = judge({retested(Role::top, "good", {94}, times(0.95, kBaseline, 0.002)),
                              retested(Role::top, "like", {95}, times(1.0, kBaseline, 0.03)),
                              retested(Role::top, "bad", {96}, times(1.1, kBaseline, 0.002)),
                              retested(Role::baseline, "plain", {100}, kBaseline)},
                             objectives(), 0.95);
  EXPECT_EQ(outcome.objective, "perplexity");
  const auto& good = *outcome.candidates[0].against_baseline;
  EXPECT_NEAR(good.paired.difference.mean, std::log(0.95), 0.001);
  EXPECT_LT(good.p_holm, 0.001);
  EXPECT_GT(good.p_holm, good.paired.p) << "corrected for three comparisons";
  EXPECT_FALSE(outcome.candidates[3].against_baseline);
  EXPECT_FALSE(outcome.candidates[0].non_dominated_probability) << "of five seeds";
  const auto text = verdict(outcome);
  EXPECT_THAT(text, ::testing::ContainsRegex("the good is better than the baseline by 5.0 % "
                                             "\\(4\\.[0-9] to 5\\.[0-9]\\) in test perplexity, "
                                             "n = 5, p < 0.001\\."));
  EXPECT_THAT(text, ::testing::ContainsRegex(
                        "the like is not shown to differ from the baseline with 5 seeds: "
                        "0\\.[0-9]+ % [a-z]+, between [0-9.]+ % better and [0-9.]+ % worse; about "
                        "[0-9]+ seeds would show a difference of that size\\."));
  EXPECT_THAT(text, HasSubstr("the bad is worse than the baseline by "));
}

TEST(RetestOutcome, BaselineAndControlHaveOneP) {
  std::vector<Retested> all{retested(Role::baseline, "plain", {100}, kBaseline),
                            retested(Role::control, "first", {}, times(1.02, kBaseline, 0.012))};
  for (const auto* name : {"a", "b", "c", "d"}) {
    all.push_back(retested(Role::top, name, {99}, times(1.0, kBaseline, 0.3)));
  }
  const auto outcome = judge(all, objectives(), 0.95);
  const auto among = [&](Role role) -> const RetestedCandidate& {
    return *std::find_if(outcome.candidates.begin(), outcome.candidates.end(),
                         [&](const auto& candidate) { return candidate.role == role; });
  };
  ASSERT_LT(among(Role::control).against_baseline->p_holm, 0.05);
  ASSERT_GT(among(Role::baseline).against_control->p_holm, 0.05) << "of more comparisons";
  EXPECT_THAT(verdict(outcome),
              StartsWith("The baseline is better than every control, than the first"));
}

TEST(RetestOutcome, ControlsAreSpokenOfFirst) {
  const auto good = retested(Role::top, "good", {94}, times(0.95, kBaseline, 0.002));
  const auto like = retested(Role::top, "like", {95}, times(0.9, kBaseline, 0.03));
  const auto plain = retested(Role::baseline, "plain", {100}, kBaseline);
  const auto judged = [&](double first, double second) {
    return judge({good, like, plain, retested(Role::control, "first", {}, times(first, kBaseline)),
                  retested(Role::control, "second", {}, times(second, kBaseline, 0.001))},
                 objectives(), 0.95);
  };
  // Behind a control, which both were compared with.
  const auto behind = judged(1.2, 0.9);
  EXPECT_EQ(behind.best_control()->candidate, "second");
  EXPECT_EQ(to_record(behind)["best_control"], "the second");
  EXPECT_NEAR(behind.candidates[0].against_control->paired.difference.mean, std::log(0.95 / 0.9),
              0.001);
  EXPECT_FALSE(behind.candidates[4].against_control);
  EXPECT_FALSE(behind.candidates[4].non_dominated_probability) << "no search returns a control";
  EXPECT_THAT(verdict(behind),
              StartsWith("A control, the second, is better than the baseline by "));
  EXPECT_THAT(
      verdict(behind),
      HasSubstr("Neither of the two mechanisms is shown to be better than that control. the "
                "like is better than the baseline by "));
  EXPECT_THAT(verdict(judged(1.0, 1.3)),
              StartsWith("The baseline is not shown to be better than a control, the "
                         "first: "));
  // Ahead of all of them.
  const auto ahead = verdict(judged(1.2, 1.1));
  EXPECT_THAT(ahead, StartsWith("The baseline is better than every control, than the second by "));
  EXPECT_THAT(ahead, HasSubstr("Both mechanisms are shown to be better than that control."));
  const auto mixed = judge({good, retested(Role::top, "bad", {96}, times(1.1, kBaseline, 0.002)),
                            plain, retested(Role::control, "first", {}, times(0.98, kBaseline))},
                           objectives(), 0.95);
  EXPECT_THAT(verdict(mixed),
              HasSubstr("Of the 2 mechanisms 1 is shown to be better than that control."));
}

TEST(RetestOutcome, ControlsTakeNoPowerFromTheMechanisms) {
  const std::vector<Retested> alone{retested(Role::top, "good", {94}, times(0.97, kBaseline, 0.01)),
                                    retested(Role::baseline, "plain", {100}, kBaseline)};
  auto controlled = alone;
  for (const auto* name : {"first", "second", "third"}) {
    controlled.push_back(retested(Role::control, name, {}, times(1.1, kBaseline, 0.02)));
  }
  const auto before = judge(alone, objectives(), 0.95);
  const auto after = judge(controlled, objectives(), 0.95);
  EXPECT_EQ(after.candidates[0].against_baseline->p_holm,
            before.candidates[0].against_baseline->p_holm);
  EXPECT_EQ(after.candidates[0].differences[0]->p_holm,
            before.candidates[0].differences[0]->p_holm);
  EXPECT_GT(after.candidates[2].against_baseline->p_holm,
            after.candidates[2].against_baseline->paired.p)
      << "controls are a family of their own";
}

TEST(RetestOutcome, AControlThatFailedIsNotTheBest) {
  const auto outcome = judge({retested(Role::baseline, "plain", {100}, kBaseline),
                              retested(Role::control, "failed", {}, {50, 0, 50, 50, 50}),
                              retested(Role::control, "whole", {}, times(1.1, kBaseline))},
                             objectives(), 0.95);
  EXPECT_EQ(outcome.best_control()->candidate, "whole");
}

TEST(RetestOutcome, SaysByHowMuchTheSearchWasTooOptimistic) {
  // 101 on fresh seeds; the search saw 91 and 97: by 7 on average. The baseline loses 1.
  const auto outcome = judge(
      {retested(Role::top, "one", {91}, kBaseline), retested(Role::top, "two", {97}, kBaseline),
       retested(Role::baseline, "plain", {100}, kBaseline)},
      objectives(), 0.95);
  EXPECT_DOUBLE_EQ(*outcome.optimism, 7.0);
  EXPECT_DOUBLE_EQ(*outcome.baseline_optimism, 1.0);
  EXPECT_DOUBLE_EQ(*outcome.flattery, 6.0);
  EXPECT_EQ(to_record(outcome)["flattery"], 6.0);
  EXPECT_EQ(
      verdict(outcome),
      "Neither of the two is shown to differ from the baseline with 5 seeds. The search's scores "
      "of what it found were too optimistic by 6.00 in perplexity (5.9 %), on average, beyond "
      "the change of the baseline, which is worse by 1.00 with new seeds.");
  // Where the seeds move the baseline by more, nothing was flattered, and yet what was found is worse.
  const auto hard = judge({retested(Role::top, "one", {97}, kBaseline),
                           retested(Role::baseline, "plain", {93}, kBaseline)},
                          objectives(), 0.95);
  EXPECT_THAT(verdict(hard),
              HasSubstr("The search's scores of what it found were not too optimistic: with new "
                        "seeds it is worse by 4.00 in perplexity on average, the baseline worse by "
                        "8.00."));
  // Maximised: 101 on fresh seeds is better than what the search saw.
  const auto more = judge({retested(Role::top, "one", {-100}, kBaseline)},
                          objectives(false, /*maximise=*/true), 0.95);
  EXPECT_DOUBLE_EQ(*more.optimism, -1.0);
  EXPECT_EQ(verdict(more),
            "The search's scores of what it found were not too optimistic: with new seeds it is "
            "better by 1.00 in accuracy on average.");
}

TEST(RetestOutcome, OneSeedAllowsNoConclusion) {
  const auto outcome = judge(
      {retested(Role::top, "good", {50}, {50}), retested(Role::baseline, "plain", {100}, {100})},
      objectives(), 0.95);
  EXPECT_EQ(verdict(outcome), "One fresh seed each: nothing can be distinguished from noise.");
  const auto record = to_record(outcome);
  const auto& good = record["candidates"][0];
  EXPECT_TRUE(good["non_dominated_probability"].is_null());
  EXPECT_EQ(good["test"].dump(),
            R"({"high":null,"low":null,"mean":50.0,"n":1,"standard_error":null})");
  EXPECT_EQ(good["against_baseline"]["p"], 1.0);
  EXPECT_TRUE(good["against_baseline"]["effect_size"].is_null());
}

TEST(RetestOutcome, TwoSeedsAreTooFew) {
  // However clear the two are: a t-test of them has one degree of freedom.
  const auto outcome = judge({retested(Role::top, "good", {50}, {50, 50.001}),
                              retested(Role::top, "fair", {60}, {60, 60.001}),
                              retested(Role::baseline, "plain", {100}, {100, 100.001})},
                             objectives(), 0.95);
  EXPECT_LT(outcome.candidates[0].against_baseline->p_holm, 0.05);
  EXPECT_THAT(verdict(outcome), HasSubstr("Both have too few seeds in common with the baseline "
                                          "for a verdict: 2 seeds."));
  EXPECT_THAT(verdict(outcome), Not(HasSubstr("better than")));
  EXPECT_TRUE(to_record(outcome)["candidates"][0]["against_baseline"]["effect_size"].is_null());
}

TEST(RetestOutcome, SeedsThatWereComparedAreCounted) {
  auto like = retested(Role::top, "like", {95}, times(1.0, kBaseline, 0.03));
  like.evaluations[2].values.erase("test_nll");
  const auto outcome =
      judge({like, retested(Role::baseline, "plain", {100}, kBaseline)}, objectives(), 0.95);
  EXPECT_THAT(verdict(outcome),
              HasSubstr("the like is not shown to differ from the baseline with 4 "
                        "seeds: "));
}

TEST(RetestOutcome, EachListedMechanismIsSaidWithItsSize) {
  const auto outcome = judge({retested(Role::listed, "one", {}, times(0.97, kBaseline, 0.03)),
                              retested(Role::listed, "two", {}, times(1.01, kBaseline, 0.03)),
                              retested(Role::baseline, "plain", {}, kBaseline)},
                             objectives(), 0.95);
  const auto text = verdict(outcome);
  EXPECT_THAT(
      text, StartsWith("Neither of the two is shown to differ from the baseline with 5 seeds. the "
                       "one is 2.5 % better, between 6.4 % better and 1.6 % worse; about "));
  EXPECT_THAT(text, HasSubstr("the two is 1.6 % worse, between 2.5 % better and 5.8 % worse; "));
  // Corrected for two comparisons, with a power of 0.8.
  const auto& one = outcome.candidates[0].against_baseline->paired.difference;
  EXPECT_EQ(
      seeds_needed(outcome).value(),
      std::max(
          seeds_to_show(one, 0.025).value(),
          seeds_to_show(outcome.candidates[1].against_baseline->paired.difference, 0.025).value()));
  EXPECT_EQ(to_record(outcome)["seeds_needed"], *seeds_needed(outcome));
  EXPECT_FALSE(to_record(outcome).contains("until"));
}

TEST(RetestOutcome, SeedsThatAreAddedUntilADecisionHaveItsIntervals) {
  Numbers many;
  for (int i = 0; i < 4; ++i) many.insert(many.end(), kBaseline.begin(), kBaseline.end());
  auto few = times(0.9, many, 0.002);
  few.resize(6);
  const auto outcome = judge({retested(Role::listed, "good", {}, few),
                              retested(Role::listed, "like", {}, times(1.0, many, 0.01)),
                              retested(Role::listed, "open", {}, times(1.0, many, 0.08)),
                              retested(Role::baseline, "plain", {}, many),
                              retested(Role::control, "bare", {}, times(1.5, kBaseline, 0.01))},
                             objectives(), 0.95, 0.03, std::log(150.0));
  EXPECT_EQ(outcome.replicates, 20);
  EXPECT_EQ(outcome.decision(outcome.candidates[0]), Decision::better);
  EXPECT_EQ(outcome.decision(outcome.candidates[1]), Decision::within);
  EXPECT_EQ(outcome.decision(outcome.candidates[2]), Decision::open);
  EXPECT_EQ(outcome.candidates[0].against_baseline->paired.difference.n, 6);
  const auto& wide = outcome.candidates[2].against_baseline->paired.difference;
  EXPECT_NEAR(wide.high - wide.mean, anytime_quantile(20, 0.05) * wide.standard_error, 1e-12);
  EXPECT_EQ(outcome.best_control()->candidate, "bare") << "whole with its fewer seeds";
  const auto text = verdict(outcome);
  EXPECT_THAT(text, HasSubstr("the good is better than the baseline by 10.0 % ("));
  EXPECT_THAT(text, HasSubstr("the like is within 3.0 % of the baseline: "));
  EXPECT_THAT(text, ::testing::ContainsRegex("the open is not shown to differ from the baseline "
                                             "with 20 seeds: [^;]+; about [0-9]+ more seeds "
                                             "would decide\\."));
  EXPECT_THAT(text, Not(HasSubstr("failed")));
  EXPECT_GT(to_record(outcome)["seeds_needed"], 20);
  EXPECT_EQ(to_record(outcome)["until"], 0.03);
  const auto so_far = [&](std::size_t i) {
    return progress_text(outcome, outcome.candidates[i], true);
  };
  EXPECT_THAT(so_far(0), MatchesRegex("the good: between [0-9.]+ % better and [0-9.]+ % "
                                      "better after 6 seeds, decided: better"));
  EXPECT_THAT(so_far(1), EndsWith(" after 20 seeds, decided: within 3.0 %"));
  EXPECT_THAT(so_far(2), MatchesRegex("the open: between [0-9.]+ % better and [0-9.]+ % "
                                      "worse after 20 seeds, goes on"));
  EXPECT_THAT(progress_text(outcome, outcome.candidates[2], false),
              EndsWith(" after 20 seeds, not decided"));
}

/// Runs near 100 of which some end at 200, where models end that need no attention.
RetestOutcome of_failures(const Numbers& like, const Numbers& plain, std::optional<double> until) {
  auto bare = retested(Role::control, "bare", {}, {200, 201, 199, 200});
  bare.label = "window 4";
  return judge({retested(Role::listed, "like", {}, like),
                retested(Role::baseline, "plain", {}, plain), bare},
               objectives(), 0.95, until);
}

TEST(RetestOutcome, NothingIsWithinABoundThatFailuresUnseenWouldPass) {
  const auto few = of_failures(times(1.001, kEight, 0.001), kEight, 0.03);
  EXPECT_LT(few.candidates[0].against_baseline->p_beyond, 0.05) << "by what has been seen";
  // A failure loses ln(200 / 99): of 4.2 % the mean would move by the bound.
  EXPECT_EQ(few.runs_for_within(), 70);
  EXPECT_EQ(few.decision(few.candidates[0]), Decision::open);
  EXPECT_THAT(verdict(few),
              HasSubstr("No run fails (test perplexity above 140.71); of 8 runs up to "
                        "31.2 % may."));
  EXPECT_THAT(verdict(few), HasSubstr("no failure in 8 runs: up to 31.2 % of them may fail; about "
                                      "62 more seeds would tell."));
  Numbers many;
  for (int i = 0; i < 5; ++i) many.insert(many.end(), kEight.begin(), kEight.end());
  const auto whole = of_failures(times(1.0, many, 0.001), many, 0.03);
  EXPECT_EQ(whole.runs_for_within(), 12)
      << "80 runs without a failure: those of the task do not fail";
  EXPECT_EQ(whole.decision(whole.candidates[0]), Decision::within);
  many.back() = 200;
  const auto one = of_failures(times(1.001, many, 0.001), many, 0.03);
  EXPECT_EQ(one.runs_for_within(), 70) << "some fail";
}

TEST(RetestOutcome, SharesThatSolveTheTaskAreSaid) {
  const Numbers bad{200, 104, 200, 200, 200, 200, 200, 200};
  const auto outcome = of_failures(kEight, bad, std::nullopt);
  EXPECT_EQ(outcome.candidates[0].solved->count, 8);
  EXPECT_EQ(outcome.candidates[1].solved->count, 1);
  EXPECT_NEAR(*outcome.candidates[0].against_baseline->p_shares, 2.0 / 128.0, 1e-12);
  EXPECT_NEAR(*outcome.candidates[0].median_solved, 100.5, 0.01);
  EXPECT_THAT(
      verdict(outcome),
      HasSubstr("Some runs fail (test perplexity above 140.71). The task is solved in 1 of 8 "
                "(0.00 to 0.53) runs of the baseline, 8 of 8 (0.63 to 1.00) runs of the "
                "like, which differs, p = 0.016."));
  const auto record = to_record(outcome);
  EXPECT_EQ(record["candidates"][1]["solved"]["count"], 1);
  EXPECT_NEAR(record["candidates"][1]["solved"]["median"].get<double>(), 104.0, 1e-9);
  EXPECT_NEAR(record["failures"]["line"].get<double>(), std::log(140.71), 1e-4);
}

TEST(RetestOutcome, RatesAndFurtherDifferencesAreSaid) {
  auto good = retested(Role::listed, "good", {}, times(0.9, kEight, 0.01));
  good.rate = {{"learning_rate", 0.016}, {"rate_at_end", true}, {"rates", nlohmann::json::array()}};
  good.differs = "conv, dropout";
  auto outcome = judge({good, retested(Role::baseline, "plain", {}, kEight)}, objectives(), 0.95);
  EXPECT_THAT(
      verdict(outcome),
      HasSubstr("the good differs from the baseline also in conv, dropout. A better learning "
                "rate may lie beyond those tried, for the good (0.016)."));
  EXPECT_EQ(to_record(outcome)["candidates"][0]["learning_rate"], 0.016);
  outcome.at_one_rate = true;
  EXPECT_THAT(verdict(outcome), StartsWith("All are trained at one learning rate."));
  outcome.seen_before = "Seen.";
  EXPECT_THAT(verdict(outcome), EndsWith("Seen."));
}

TEST(RetestOutcome, AllComparisonsOfAVerdictAreCorrectedTogether) {
  const auto outcome = judge({retested(Role::top, "good", {89}, times(0.95, kBaseline, 0.01)),
                              retested(Role::top, "like", {95}, times(1.0, kBaseline, 0.03)),
                              retested(Role::baseline, "plain", {100}, kBaseline)},
                             objectives(), 0.95);
  const auto& good = *outcome.candidates[0].against_baseline;
  EXPECT_DOUBLE_EQ(good.p_holm, 2.0 * good.paired.p);
  const auto& like = *outcome.candidates[1].against_baseline;
  EXPECT_DOUBLE_EQ(like.p_holm, like.paired.p);
}

TEST(RetestOutcome, AFrontIsJudgedByAllObjectives) {
  const auto outcome = judge({retested(Role::front, "cheap", {1, 120}, times(1.2, kEight), 1.0),
                              retested(Role::front, "good", {3, 90}, times(0.9, kEight), 3.0),
                              retested(Role::front, "lucky", {2, 95}, times(1.3, kEight), 2.0),
                              retested(Role::baseline, "plain", {2, 100}, kEight, 2.0)},
                             objectives(/*several=*/true), 0.95);
  EXPECT_EQ(outcome.objective_index, 1U);
  EXPECT_EQ(outcome.candidates[0].non_dominated_probability, 1.0);
  EXPECT_EQ(outcome.candidates[1].non_dominated_probability, 1.0);
  EXPECT_EQ(outcome.candidates[2].non_dominated_probability, 0.0);
  EXPECT_EQ(outcome.candidates[3].non_dominated_probability, 1.0);
  EXPECT_EQ(outcome.candidates[1].retest[0]->mean, 3.0);
  EXPECT_EQ(outcome.candidates[1].retest[0]->standard_error, 0.0);
}

TEST(RetestOutcome, WhatFailedWithOneSeedIsNotComparedByTheOthers) {
  auto values = times(0.9, kEight, 0.001);
  values[1] = 0.0;
  const std::vector<Retested> retests{retested(Role::top, "frail", {90}, values),
                                      retested(Role::baseline, "plain", {100}, kEight)};
  const auto outcome = judge(retests, objectives(), 0.95);
  EXPECT_EQ(outcome.candidates[0].n, 7);
  EXPECT_FALSE(outcome.candidates[0].against_baseline);
  EXPECT_THAT(verdict(outcome), HasSubstr("the frail failed at 1 of 8 seeds."));
  EXPECT_THAT(verdict(outcome), Not(HasSubstr("better than the baseline")));
  // Seven of eight seeds are drawn: the failed one is not among them with probability (7/8)^7.
  EXPECT_NEAR(*outcome.candidates[0].non_dominated_probability, 0.393, 0.02);

  auto judging = objectives();
  judging.objectives.front().objective.judges_failures = true;
  const auto judged = judge(retests, judging, 0.95);
  EXPECT_EQ(judged.candidates[0].against_baseline->paired.difference.n, 7);
  EXPECT_NEAR(judged.candidates[0].against_baseline->paired.difference.mean, std::log(0.9), 1e-3);
  EXPECT_THAT(verdict(judged), HasSubstr("n = 7, p"));
  EXPECT_GT(*judged.candidates[0].non_dominated_probability, 0.99);
}

TEST(RetestOutcome, WhatFailedWithEverySeedHasNoValue) {
  const auto none = judge({retested(Role::top, "gone", {90}, Numbers(5, 0.0)),
                           retested(Role::baseline, "plain", {100}, kBaseline)},
                          objectives(), 0.95);
  EXPECT_FALSE(none.candidates[0].test);
  EXPECT_TRUE(to_record(none)["candidates"][0]["retest"][0]["mean"].is_null());
  EXPECT_THAT(verdict(none), HasSubstr("the gone failed at 5 of 5 seeds."));
}

TEST(RetestOutcome, WithoutATestSplitNothingIsCompared) {
  auto good = retested(Role::top, "good", {94}, times(0.95, kBaseline));
  auto plain = retested(Role::baseline, "plain", {100}, kBaseline);
  for (auto* candidate : {&good, &plain}) {
    for (auto& evaluation : candidate->evaluations) {
      evaluation.values.erase("test_nll");
      evaluation.values.erase("test_perplexity");
    }
  }
  const auto outcome = judge({good, plain}, objectives(), 0.95);
  EXPECT_FALSE(outcome.candidates[0].against_baseline);
  EXPECT_THAT(verdict(outcome),
              HasSubstr("Without a test split nothing is compared with the baseline."));
}

TEST(RetestOutcome, DifferencesAreOfEachObjectiveThatTrainingDetermines) {
  auto both = objectives(/*several=*/true);
  both.objectives.push_back(objectives(false, /*maximise=*/true).objectives.front());
  both.objectives.back().objective.trained = [](const Evaluation& e) {
    return 1.0 / e.values.at("perplexity");
  };
  const auto good = times(0.95, kBaseline, 0.002);
  const auto bad = times(1.1, kBaseline, 0.03);
  const auto outcome =
      judge({retested(Role::listed, "good", {}, good), retested(Role::listed, "bad", {}, bad),
             retested(Role::baseline, "plain", {}, kBaseline)},
            both, 0.9);
  const auto& found = outcome.candidates[0].differences;
  ASSERT_EQ(found.size(), 3U);
  EXPECT_FALSE(found[0]) << "a formula has no noise";
  const auto expected = compare_paired(good, kBaseline, 0.9);
  EXPECT_EQ(found[1]->paired.difference.mean, expected.difference.mean);
  EXPECT_EQ(found[1]->paired.difference.low, expected.difference.low);
  EXPECT_EQ(found[1]->paired.p, expected.p);
  const Numbers p{expected.p, compare_paired(bad, kBaseline, 0.9).p};
  EXPECT_EQ(found[1]->p_holm, holm(p)[0]) << "over the mechanisms, objective by objective";
  EXPECT_EQ(outcome.candidates[1].differences[1]->p_holm, holm(p)[1]);
  EXPECT_GT(found[2]->paired.difference.mean, 0.0) << "in the objective's own sense";
  EXPECT_FALSE(outcome.candidates[2].differences[1]);
  EXPECT_FALSE(outcome.optimism) << "nothing was searched";
  const auto record = to_record(outcome)["candidates"][0];
  EXPECT_EQ(record["role"], "listed");
  EXPECT_TRUE(record["differences"][0].is_null());
  EXPECT_EQ(record["differences"][1]["n"], 5);
}

TEST(RetestOutcome, WhatBreaksAConstraintIsSaid) {
  auto constrained = objectives();
  constrained.constraints.push_back(
      {.quantity = constrained.objectives.front(), .at_most = true, .bound = 100.0});
  auto late = retested(Role::listed, "late", {}, kBaseline);
  for (auto& evaluation : late.evaluations) {
    evaluation.status = Status::rejected;
    evaluation.reason = "latency = 5, must be <= 4";
  }
  const auto outcome = judge({retested(Role::listed, "good", {}, times(0.95, kBaseline)), late,
                              retested(Role::listed, "bad", {}, times(1.1, kBaseline)),
                              retested(Role::listed, "frail", {}, {200, 0, 200, 200, 200})},
                             constrained, 0.95);
  EXPECT_EQ(outcome.candidates[0].rejected, "");
  const auto text = verdict(outcome);
  EXPECT_THAT(text, HasSubstr("the late is rejected: latency = 5, must be <= 4."));
  EXPECT_THAT(text, HasSubstr("the bad is rejected: perplexity = 111.1, must be <= 100 (over 5 "
                              "replicates)."));
  EXPECT_THAT(text, HasSubstr("the frail failed at 1 of 5 seeds."));
  EXPECT_THAT(text, Not(HasSubstr("the late failed")));
  EXPECT_EQ(to_record(outcome)["candidates"][1]["rejected"], "latency = 5, must be <= 4");
}

TEST(RetestOutcome, WhatBreaksAConstraintCompetesWithNothing) {
  auto constrained = objectives();
  constrained.constraints.push_back(
      {.quantity = {.name = "accuracy",
                    .key = "accuracy",
                    .settings = {},
                    .objective = {.unit = "1",
                                  .maximise = true,
                                  .trained =
                                      [](const Evaluation& e) { return e.values.at("cost"); }},
                    .maximise = true},
       .at_most = false,
       .bound = 0.5});
  const auto outcome = judge({retested(Role::top, "good", {105}, times(1.05, kEight), /*cost=*/0.6),
                              retested(Role::top, "bad", {111}, times(1.1, kEight), /*cost=*/0.6),
                              retested(Role::baseline, "plain", {100}, kEight, /*cost=*/0.49)},
                             constrained, 0.95);
  EXPECT_THAT(outcome.candidates[2].rejected, HasSubstr("accuracy"));
  EXPECT_FALSE(outcome.candidates[2].non_dominated_probability);
  EXPECT_EQ(outcome.candidates[0].non_dominated_probability, 1.0);
  EXPECT_EQ(outcome.candidates[1].non_dominated_probability, 0.0);
}

/// Accuracy by training.
ObjectiveSet of_accuracy() {
  auto set = objectives(false, /*maximise=*/true);
  set.objectives.front().key = "accuracy";
  set.objectives.front().objective.trained = [](const Evaluation& e) {
    return e.values.at("accuracy");
  };
  return set;
}

/// A candidate with so many right answers of 1,000 at each seed, and perplexities that say otherwise.
Retested answering(Role role, const std::string& name, const Numbers& correct) {
  auto made = retested(role, name, {-0.5}, Numbers(correct.size(), 5.0));
  for (std::size_t i = 0; i < correct.size(); ++i) {
    auto& evaluation = made.evaluations[i];
    evaluation.id = name + std::to_string(i);
    evaluation.values["accuracy"] = correct[i] / 1000.0;
    evaluation.values["test_tokens"] = 1000.0;
    evaluation.values["test_correct"] = correct[i];
    evaluation.values["test_nll"] = correct[i];  // the more right answers, the worse
    evaluation.values["test_perplexity"] = 1.0 + correct[i];
  }
  return made;
}

TEST(RetestOutcome, AccuracyIsComparedByAccuracy) {
  const auto outcome = judge({answering(Role::listed, "good", {760, 762, 757, 761, 759}),
                              answering(Role::baseline, "plain", {700, 703, 698, 700, 699}),
                              answering(Role::control, "blind", {100, 101, 99, 100, 100})},
                             of_accuracy(), 0.95);
  EXPECT_EQ(outcome.measure, Measure::accuracy);
  const auto& good = outcome.candidates.front();
  EXPECT_NEAR(good.test->mean, 0.7598, 1e-9);
  EXPECT_NEAR(good.against_baseline->paired.difference.mean, -0.0598, 1e-9) << "errors";
  EXPECT_EQ(outcome.best_control()->label, "the blind");
  const auto text = verdict(outcome);
  EXPECT_THAT(text, HasSubstr("the good is better than the baseline by 6.0 points (5."));
  EXPECT_THAT(text, HasSubstr(") in test accuracy, n = 5, p < 0.001."));
  EXPECT_THAT(text, HasSubstr("The baseline is better than every control, than the blind by 60.0 "
                              "points ("));
  EXPECT_THAT(text, Not(HasSubstr("perplexity")));
  EXPECT_EQ(to_record(outcome).at("measure"), "test accuracy");
  EXPECT_FALSE(
      to_record(judge({retested(Role::baseline, "plain", {100}, kBaseline)}, objectives(), 0.95))
          .contains("measure"));
}

TEST(RetestOutcome, AccuracyIsWithinSoManyPoints) {
  const Numbers like{701, 702, 700, 699, 700, 701, 700, 699};
  const Numbers plain{700, 703, 700, 700, 699, 700, 701, 700};
  const auto outcome =
      judge({answering(Role::listed, "like", like), answering(Role::baseline, "plain", plain)},
            of_accuracy(), 0.95, 0.03, /*chance=*/0.33);
  EXPECT_EQ(outcome.decision(outcome.candidates.front()), Decision::within);
  EXPECT_THAT(verdict(outcome), HasSubstr("the like is within 3.0 points of the baseline: 0.0"));
}

}  // namespace
}  // namespace nas
