#include "digest_file.hpp"
#include "prelude.hpp"
#include "report/text.hpp"
#include "unit/report_fixture.hpp"

namespace nas {
namespace {

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

/// A run of two or three objectives: perplexity against FLOPs, and a maximised accuracy.
class FrontReportTest : public ReportTest {
 protected:
  struct Made {
    std::string id;
    double perplexity, flops, accuracy;
  };
  /// A front of five (b c d e f), of which two replicates answer for d; four dominated ones, one of
  /// them far off, and a failure.
  static std::vector<Made> candidates() {
    return {{"a", 130, 3.0e6, 0.20}, {"b", 60, 9.0e6, 0.42},  {"c", 68, 4.0e6, 0.40},
            {"d", 75, 1.6e6, 0.36},  {"e", 110, 1.2e6, 0.28}, {"f", 160, 1.0e6, 0.22},
            {"g", 95, 5.0e6, 0.30},  {"h", 80, 9.5e6, 0.33},  {"i", 5e5, 8.0e6, 0.01}};
  }
  std::unique_ptr<Store> make(std::size_t objectives, bool failed = false) {
    auto store = std::make_unique<Store>(folder_ / "front.sqlite");
    std::vector<Evaluation> evaluations;
    std::vector<Ask> asks;
    const auto cut = [objectives](std::vector<double> fitness) {
      fitness.resize(objectives);
      return fitness;
    };
    const auto add_ask = [&](const std::string& id, const std::vector<double>& fitness) {
      asks.push_back(ask(std::ssize(asks), std::ssize(asks) / 4, {id}, 0));
      asks.back().fitness = cut(fitness);
    };
    for (const auto& made : candidates()) {
      auto entry = evaluation(made.id, failed ? 0 : made.perplexity,
                              "similarity_" + made.id + "|softmax|none|learned|bias|0.1");
      if (!failed) entry.values["flops"] = made.flops;
      entry.measured["latency"] = {{"value", 2.0}, {"canary_p50", 1.0 + 0.01 * made.flops / 1e6}};
      evaluations.push_back(entry);
      add_ask(made.id, {made.perplexity, made.flops, -made.accuracy});
      if (made.id != "d") continue;
      entry.id = "d2";
      entry.replicate = 1;
      entry.values["perplexity"] = 77;
      evaluations.push_back(entry);
      asks.back().evaluations.emplace_back("d2");
      asks.back().fitness[0] = failed ? made.perplexity : 76;
    }
    evaluations.push_back(evaluation("z", 0));
    add_ask("z", {4000, 9e7, 9});
    evaluations.push_back(evaluation("v", 85, "scaled_dot|softmax|none|fixed|bias|0.1"));
    fill(*store, evaluations, asks);
    if (!failed) {
      store->add_indicator({.asked = 4, .batch = 0, .evaluated = 5, .front = 3, .value = 0.75});
      store->add_indicator({.asked = 8, .batch = 1, .evaluated = 9, .front = 5, .value = 0.8125});
    }
    nlohmann::json records{objective("perplexity", "1", 1, 400),
                           objective("flops", "FLOP", 5e5, 1e7),
                           objective("accuracy", "1", 1, 0, true)};
    if (objectives == 2) records.erase(2);
    store->set_meta("objectives", records);
    store->set_meta("config", {{"name", "two <goals>"},
                               {"space", nlohmann::json::object()},
                               {"evaluation", {{"repeated", "reuse"}}}});
    store->set_meta("facts", {{"corpus", "brown"}});
    store->set_meta("baseline", {{"evaluations", {"v"}}, {"fitness", cut({85, 6e6, -0.34})}});
    store->set_meta("ended_by", "10 evaluations");
    store->set_meta("last_population", {cut({0.2, 0.2, 0.5}), cut({9, 9, 9})});
    return store;
  }
  /// A run of two objectives, x in [0, 60] and y in [0, 100].
  RunSummary run_of_points(const std::vector<Evaluation>& evaluations,
                           const std::vector<Point>& points) {
    std::vector<Ask> asks;
    for (std::size_t i = 0; i < points.size(); ++i) {
      asks.push_back(ask(std::ssize(asks), 0, {evaluations[i].id}, 0));
      asks.back().fitness = points[i];
    }
    return run_of(evaluations, asks,
                  {{"objectives", {objective("x", "1", 0, 60), objective("y", "1", 0, 100)}}});
  }
};

TEST_F(FrontReportTest, FrontComesFirstAndHasAKnee) {
  const RunSummary run(*make(2));
  ASSERT_EQ(run.front.size(), 5U);
  std::string members;
  for (const auto i : run.front) {
    EXPECT_TRUE(run.ranking[i].on_front);
    members += run.ranking[i].evaluations.front()->id;
  }
  EXPECT_EQ(members, "bcdef");
  EXPECT_FALSE(run.ranking[5].on_front);
  ASSERT_TRUE(run.knee);
  EXPECT_EQ(*run.knee, 2U);  // d
  EXPECT_EQ(run.ranking[2].n, 2);
  EXPECT_EQ(run.ranking[2].values, (std::vector<double>{76, 1.6e6}));
  EXPECT_EQ(run.search.evaluations, 11);
}

TEST_F(FrontReportTest, TableShowsTheFrontTheKneeAndTheHypervolume) {
  const auto text = closing_table(RunSummary(*make(2)));
  expect_words(text, {"ended by: 10 evaluations\n", "non-dominated front, 5 of 9 candidates\n",
                      "flops (FLOP)", "9 M", "hypervolume 0.812; reference point 1.1 everywhere",
                      "perplexity 1.00 to 400.00, flops 500 k to 10 M",
                      "1 diverged, e.g.: not finite", "n = 1"});
  // FLOPs do not vary between replicates: no column for their errors.
  expect_rows(text, {"perplexity +s.e. +flops .FLOP. +n +ask\n",
                     "similarity_d.* 76.00 +1.00 +1.6 M +2 +4 +knee\n",
                     "baseline  scaled_dot.* 85.00 +- +6 M +1 +-\n"});
}

TEST_F(FrontReportTest, RangesThatHoldNoValueAreNamed) {
  const std::string words = "every value of perplexity is worse than its range, ";
  const auto store = make(2);
  EXPECT_THAT(closing_table(RunSummary(*store)), Not(HasSubstr(words)));
  store->set_meta("objectives", {objective("perplexity", "1", 1, 49 + 1.0 / 3.0),
                                 objective("flops", "FLOP", 5e5, 1e7)});
  const auto text = closing_table(RunSummary(*store));
  expect_words(text, {"perplexity 1.00 to 49.33, flops", words,
                      "give the objective a wider range than [1.00, 49.33]\n"});
  EXPECT_THAT(text, Not(HasSubstr("every value of flops")));
}

TEST_F(FrontReportTest, MeansHaveTheirStandardErrorsAndN) {
  const RunSummary run(*make(3));
  const auto& errors = run.ranking[2].standard_errors;  // d, trained twice: 75 and 77
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_DOUBLE_EQ(errors[0].value(), 1.0);
  EXPECT_EQ(errors[1], 0.0);
  EXPECT_FALSE(errors[2]) << "accuracy is recorded of no single one";
  EXPECT_FALSE(run.ranking[1].standard_errors[0]) << "n = 1";
  EXPECT_FALSE(run.baseline->standard_errors[0]);
  const nlohmann::json expected{{"perplexity", 1.0}, {"flops", 0.0}, {"accuracy", nullptr}};
  expect_values(test::results_json(run), {{"/front/2/standard_errors", expected},
                                          {"/ranking/2/standard_errors", expected},
                                          {"/ranking/2/n", 2},
                                          {"/baseline/standard_errors/perplexity", nullptr}});
  expect_words(evaluations_csv(run),
               {",76,1,1600000,0,0.36,,2,d\r\n", ",76,1,1600000,0,0.36,,2,d2\r\n",
                ",68,,4e+06,,0.4,,1,c\r\n", ",,,,,,,,z\r\n"});  // a failure has no mean
  expect_words(closing_table(run), {"means over n trainings, s.e. their standard errors",
                                    "one training each, hence no standard error"});
}

TEST_F(FrontReportTest, ThreeObjectivesKeepTheirSense) {
  const RunSummary run(*make(3));
  EXPECT_EQ(run.front.size(), 5U);
  EXPECT_DOUBLE_EQ(run.ranking[0].values[2], 0.42);
  EXPECT_THAT(closing_table(run), HasSubstr("accuracy (max)"));
  const auto json = test::results_json(run);
  EXPECT_EQ(json["front"][0]["values"]["accuracy"], 0.42);
  EXPECT_EQ(nlohmann::json::parse(json.dump()), json);
}

TEST_F(FrontReportTest, ResultsHoldTheFrontAndTheHypervolume) {
  const auto json = test::results_json(RunSummary(*make(2)));
  expect_values(json, {{"/objectives/1/unit", "FLOP"},
                       {"/hypervolume/value", 0.8125},
                       {"/hypervolume/reference", 1.1},
                       {"/hypervolume/trace/0/front", 3},
                       {"/ended_by", "10 evaluations"},
                       {"/front/2/knee", true},
                       {"/front/2/evaluations", {"d", "d2"}}});
  EXPECT_NEAR(json["last_population_hypervolume"].get<double>(), 0.81, 1e-12);
  EXPECT_EQ(json["front"].size(), 5U);
  EXPECT_EQ(nlohmann::json::parse(json.dump()), json);
}

TEST_F(FrontReportTest, CsvHasAColumnForEachFurtherObjective) {
  const auto store = make(2);
  store->set_meta("objectives", {objective("latency", "ms", 0, 10), objective("f", "1", 0, 1)});
  expect_words(evaluations_csv(RunSummary(*store)),
               {",latency,f,latency_mean,latency_standard_error,f_mean,f_standard_error,n,id\r\n",
                ",2,3e+06,",  // one evaluation an ask: the ask's value
                ",2,,",       // two replicates: a value of neither
                ",1600000,,2,d\r\n"});
}

TEST_F(FrontReportTest, LongFrontIsShownInPart) {
  std::vector<Evaluation> evaluations;
  std::vector<Point> points;
  for (int i = 0; i < 50; ++i) {
    evaluations.push_back(evaluation("e" + std::to_string(i), 50));
    points.push_back({1.0 + i, 100.0 / (1.0 + i)});
  }
  const auto text = closing_table(run_of_points(evaluations, points));
  EXPECT_THAT(text, HasSubstr("50 of 50 candidates; 20 of them, evenly along the front, and 30"));
  EXPECT_EQ(count_of(text, "  candidate e"), 20U);
  EXPECT_EQ(count_of(text, "knee\n"), 1U);
  EXPECT_THAT(text, HasSubstr("candidate e49"));
}

TEST_F(FrontReportTest, FrontOfFailuresIsEmpty) {
  const RunSummary run(*make(2, /*failed=*/true));
  EXPECT_TRUE(run.front.empty());
  EXPECT_FALSE(run.knee);
  EXPECT_THAT(closing_table(run), HasSubstr("non-dominated front, 0 of 0 candidates"));
  EXPECT_TRUE(test::results_json(run)["hypervolume"]["value"].is_null());
}

}  // namespace
}  // namespace nas
