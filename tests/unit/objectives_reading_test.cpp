#include <tuple>

#include "experiment_fixture.hpp"
#include "prelude.hpp"
#include "study/reader/objectives.hpp"

namespace nas {
namespace {

TEST_F(ExperimentTest, ObjectivesAreKnownOnes) {
  EXPECT_NE(mistakes("objectives: [perplexty]\n").find("did you mean perplexity?"),
            std::string::npos);
  EXPECT_THAT(mistakes("objectives: perplexity,flops\n"),
              EndsWith("; several must be a list: [perplexity,flops]"));
  EXPECT_EQ(mistakes("objectives: []\n").substr(0, 60),
            "a.yaml:1:13: objectives = [], must be a list of at least one");
  EXPECT_EQ(mistakes("objectives:\n  - flops\n  - {name: flops, context: 64}\n" + kAny),
            "a.yaml:3:5: objectives: flops is given twice, must be distinguished by `as`");
  EXPECT_EQ(mistakes("objectives: [[flops]]\n").substr(0, 76),
            "a.yaml:1:14: objectives = [flops], every item must be a name or a map with a");
  EXPECT_EQ(mistakes("objectives: [{context: 5}]\n").substr(0, 36),
            "a.yaml:1:14: objectives = {context: ");
  EXPECT_EQ(mistakes("objectives: [{name: flops, contxt: 5}]\n").substr(0, 72),
            "a.yaml:1:28: objectives.flops.contxt: unknown key; did you mean context?");
}

TEST_F(ExperimentTest, ObjectivesHaveSettingsGoalsAndRanges) {
  const auto experiment = load(
      "objectives:\n  - {name: flops, context: 1024, as: long_flops, range: [1e6, 5e6]}\n"
      "  - {name: accuracy, range: [0.9, 0.1]}\n  - {name: parameters, goal: maximise}\n" +
      kAny);
  const auto& [flops, accuracy, parameters] =
      std::tie(experiment.objectives.objectives.at(0), experiment.objectives.objectives.at(1),
               experiment.objectives.objectives.at(2));
  EXPECT_EQ(flops.name, "long_flops");
  EXPECT_EQ(flops.key, "flops");
  EXPECT_EQ(flops.settings.get<Integer>("context"), 1024);
  EXPECT_EQ(flops.range->worst, 5e6);
  EXPECT_TRUE(accuracy.maximise);
  EXPECT_TRUE(parameters.maximise);
  EXPECT_FALSE(flops.maximise);
  EXPECT_EQ(mistakes("objectives: [{name: flops, range: [5, 1]}]\n"),
            "a.yaml:1:35: objectives.flops.range = [5, 1], must be [best, worst], the best smaller "
            "since it is minimised");
  EXPECT_EQ(mistakes("objectives: [{name: accuracy, range: [0, 1]}]\n"),
            "a.yaml:1:38: objectives.accuracy.range = [0, 1], must be [best, worst], the best "
            "larger since it is maximised");
  EXPECT_NE(mistakes("objectives: [{name: flops, range: [1]}]\n"), "");
  EXPECT_EQ(mistakes("objectives: [{name: flops, goal: max}]\n"),
            "a.yaml:1:34: objectives.flops.goal = max, must be one of natural, minimise, maximise; "
            "did you mean maximise?");
}

TEST_F(ExperimentTest, NoObjectiveHasTheNameOfAnotherQuantity) {
  const auto named = [this](const std::string& key, const std::string& as) {
    return mistakes("objectives: [{name: " + key + ", as: '" + as +
                    "'}]\nevaluation: {replicates: 2}\n");
  };
  for (const auto& key : objectives().keys()) {
    if (key == "peak_bytes") continue;  // of another test
    EXPECT_FALSE(is_recorded_name(key)) << key;
    for (const auto& other : objectives().keys()) {
      const auto prefix = "a.yaml:1:" + std::to_string(27 + key.size()) + ": objectives." + key +
                          ".as = " + other + ", must be another name";
      if (key == other) {
        EXPECT_EQ(named(key, other), "");
      } else {
        EXPECT_THAT(named(key, other), HasSubstr(prefix));
      }
    }
  }
  for (const std::string recorded :
       {"status", "id", "steps", "seed", "n", "nll", "peak_bytes", "worker", "test_nll",
        "similarity", "position", "x1", "p_holm", "distinguished", "percent_low", "role"}) {
    EXPECT_THAT(named("flops", recorded),
                HasSubstr(".as = " + recorded + ", must be another name: runs record something"));
  }
  for (const std::string text :
       {"a,b", "a|b", "a=b", "a b", "a<=b", "1", "-a", "a.b", " ", "a\"b", ""}) {
    EXPECT_THAT(named("flops", text), HasSubstr("must begin with a letter")) << text;
  }
  EXPECT_THAT(named("flops", std::string(65, 'a')), HasSubstr("at most 64 bytes"));
  EXPECT_EQ(named("flops", "größe-64_b"), "");
}

TEST_F(ExperimentTest, NoObjectiveHasTheNameOfAnothersColumn) {
  for (const std::string other :
       {"perplexity_mean", "perplexity_standard_error", "perplexity_low", "fitness_perplexity"}) {
    const auto item = "{name: flops, as: " + other + "}";
    EXPECT_THAT(mistakes("objectives: [perplexity, " + item + "]\n" + kAny),
                HasSubstr("perplexity and " + other + " have a column of one name"));
    EXPECT_THAT(mistakes("objectives: [" + item + ", perplexity]\n" + kAny),
                HasSubstr("have a column of one name, must be distinguished by `as`"));
    EXPECT_EQ(mistakes("objectives: [accuracy, " + item + "]\n" + kAny), "");
  }
}

TEST_F(ExperimentTest, ObjectivesOfAPlugInHaveNoNameThatRunsRecordAnythingElseUnder) {
  objectives().add({.key = "peak_bytes", .summary = "of a plug-in", .file = "mine.so"},
                   [](const Parameters&) { return Objective{}; });
  const std::string refusal =
      "the objective peak_bytes, of mine.so, must have another key: runs record something else";
  EXPECT_THAT(mistakes("objectives: [peak_bytes]\n"), HasSubstr(refusal));
  EXPECT_THAT(mistakes("constraints: [peak_bytes <= 1]\n"), HasSubstr(refusal));
}

TEST_F(ExperimentTest, ConstraintsAreBoundsOfObjectives) {
  const auto experiment = load(
      "objectives: [perplexity, {name: flops, context: 64, as: short_flops}]\n"
      "constraints: [short_flops <= 4e6, parameters >= 10]\n" +
      kAny);
  ASSERT_EQ(experiment.objectives.constraints.size(), 2U);
  EXPECT_EQ(experiment.objectives.constraints[0].quantity.settings.get<Integer>("context"), 64);
  EXPECT_EQ(experiment.objectives.constraints[1].text(), "parameters >= 10");
  EXPECT_FALSE(experiment.objectives.constraints[1].at_most);
  for (const std::string text :
       {"flops < 4", "flops <= many", "flops <=", "flops", "flops <= 4 6", "flops <= nan"}) {
    EXPECT_NE(
        mistakes("constraints: ['" + text + "']\n").find("must be of the form NAME <= NUMBER"),
        std::string::npos)
        << text;
  }
  EXPECT_NE(mistakes("constraints: [flps <= 4]\n").find("did you mean flops?"), std::string::npos);
}

TEST_F(ExperimentTest, BoundsOfConstraintsMayHavePrefixesAndNeedNoBlanks) {
  const std::pair<const char*, double> bounds[] = {
      {"parameters<=1.7M", 1.7e6},     {"parameters <= 1.7 M", 1.7e6},
      {" parameters>=2k ", 2e3},       {"parameters <=3G", 3e9},
      {"parameters<= 1e3k", 1e6},      {"parameters<=.5T", 5e11},
      {"parameters<=+512Ki", 524288},  {"parameters<=2Mi", 2097152},
      {"parameters<=1Gi", 1073741824}, {"parameters<=4e6", 4e6}};
  for (const auto& [text, bound] : bounds) {
    const auto experiment = load("constraints: ['" + std::string(text) + "']\n" + kAny);
    ASSERT_EQ(experiment.objectives.constraints.size(), 1U);
    EXPECT_EQ(experiment.objectives.constraints[0].bound, bound) << text;
    EXPECT_EQ(
        mistakes("constraints: ['" + experiment.objectives.constraints[0].text() + "']\n" + kAny),
        "");
  }
  for (const std::string text :
       {"parameters<=1.7m", "parameters<=M", "parameters<=1MB", "parameters<=1Mk", "parameters<1M",
        "parameters=1M", "parameters=<1M", "<=1M", "parameters<=1e308T", "parameters<=1<=2"}) {
    EXPECT_THAT(mistakes("constraints: ['" + text + "']\n" + kAny),
                HasSubstr("must be of the form NAME <= NUMBER"))
        << text;
  }
}

}  // namespace
}  // namespace nas
