#include "search/objective_set.hpp"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/ranges.hpp"
#include "core/error.hpp"
#include "unit/data_fixture.hpp"
#include "unit/paper_components.hpp"

namespace nas {
namespace {

using ::testing::ElementsAre;
using Evaluations = std::vector<const Evaluation*>;

ChosenObjective chosen(const std::string& key) {
  const auto& entry = objectives().at(key);
  const Parameters settings(entry.description.settings);
  ChosenObjective objective{
      .name = key, .key = key, .settings = settings, .objective = entry.make(settings)};
  objective.maximise = objective.objective.maximise;
  return objective;
}

/// Analytic "width" and measured "width_ms"; how often the latter was measured.
struct Probe {
  int measured = 0;
  ChosenObjective analytic{.name = "width",
                           .key = "width",
                           .settings = {},
                           .objective = {.unit = "1", .analytic = [](const Subject& subject) {
                                           return static_cast<double>(subject.architecture.width);
                                         }}};
  ChosenObjective slow{
      .name = "width_ms",
      .key = "width_ms",
      .settings = {},
      .objective = {
          .unit = "ms", .measured = [this](const Subject& subject) {
            ++measured;
            return nlohmann::json{{"value", 2.0 * static_cast<double>(subject.architecture.width)}};
          }}};
};

const Subject kSubject;

Evaluation trained(double perplexity, std::int64_t correct = 40) {
  Evaluation evaluation;
  evaluation.status = Status::ok;
  CurvePoint point;
  point.valid.tokens = 100;
  point.valid.nll = 100 * std::log(perplexity);
  point.valid.correct = correct;
  point.valid.batches = 1;
  point.valid.batch_mean_nll = std::log(perplexity);
  evaluation.curve = {point};
  return evaluation;
}

TEST(ObjectiveSet, ScreeningComputesWhatNeedsNoTraining) {
  Probe probe;
  ObjectiveSet set{.objectives = {probe.analytic, probe.slow, chosen("perplexity")}};
  Evaluation evaluation;
  evaluation.status = Status::ok;
  set.screen(kSubject, nlohmann::json::object(), evaluation);
  EXPECT_EQ(evaluation.values.at("width"), 128.0);
  EXPECT_EQ(evaluation.measured["width_ms"]["value"], 256.0);
  EXPECT_EQ(evaluation.status, Status::ok);
  EXPECT_EQ(set.objectives[1].value(evaluation), 256.0);
}

TEST(ObjectiveSet, WhatIsKnownIsNotMeasuredAgain) {
  Probe probe;
  const ObjectiveSet set{.objectives = {probe.slow}};
  Evaluation evaluation;
  evaluation.status = Status::ok;
  set.screen(kSubject, {{"width_ms", {{"value", 5.0}}}}, evaluation);
  EXPECT_EQ(probe.measured, 0);
  EXPECT_EQ(set.objectives[0].value(evaluation), 5.0);
}

TEST(ObjectiveSet, ABrokenConstraintRejectsBeforeAnythingIsMeasured) {
  Probe probe;
  ObjectiveSet set{.objectives = {probe.slow},
                   .constraints = {{.quantity = probe.analytic, .at_most = true, .bound = 100}}};
  Evaluation evaluation;
  evaluation.status = Status::ok;
  set.screen(kSubject, nlohmann::json::object(), evaluation);
  EXPECT_EQ(evaluation.status, Status::rejected);
  EXPECT_EQ(evaluation.reason, "width = 128, must be <= 100");
  EXPECT_EQ(probe.measured, 0);
  set.constraints[0].bound = 128;
  evaluation = {};
  evaluation.status = Status::ok;
  set.screen(kSubject, nlohmann::json::object(), evaluation);
  EXPECT_EQ(evaluation.status, Status::ok);
  set.constraints[0].at_most = false;
  set.constraints[0].bound = 129;
  evaluation = {};
  set.screen(kSubject, nlohmann::json::object(), evaluation);
  EXPECT_EQ(evaluation.reason, "width = 128, must be >= 129");
}

TEST(ObjectiveSet, ConstraintsOnTrainingRejectAfterIt) {
  const ObjectiveSet set{
      .objectives = {chosen("perplexity")},
      .constraints = {{.quantity = chosen("accuracy"), .at_most = false, .bound = 0.5}}};
  auto evaluation = trained(90);
  set.screen(kSubject, nlohmann::json::object(), evaluation);
  EXPECT_EQ(evaluation.status, Status::ok);
  set.check_trained(evaluation);
  EXPECT_EQ(evaluation.status, Status::rejected);
  EXPECT_EQ(evaluation.reason, "accuracy = 0.4, must be >= 0.5");
  EXPECT_FALSE(evaluation.curve.empty()) << "what was found stays";
}

TEST(ObjectiveSet, TrainedValuesAreRecordedUnderTheObjectivesName) {
  ObjectiveSet set{.objectives = {chosen("perplexity"), chosen("accuracy"), chosen("perplexity")}};
  set.objectives[2].name = "ppl";
  auto evaluation = trained(100);
  evaluation.values["perplexity"] = 100;
  evaluation.values["ppl"] = 7;  // another quantity of that name
  set.check_trained(evaluation);
  EXPECT_FALSE(evaluation.measured.contains("perplexity")) << "is among the values";
  EXPECT_EQ(evaluation.measured["accuracy"]["value"], 0.4);
  EXPECT_NEAR(evaluation.measured["ppl"]["value"].get<double>(), 100, 1e-9);
  Evaluation failed;
  set.check_trained(failed);
  EXPECT_TRUE(failed.measured.empty());
}

TEST(ObjectiveSet, FitnessIsFiniteAndMinimised) {
  ObjectiveSet set{.objectives = {chosen("perplexity"), chosen("accuracy")}};
  set.objectives[0].range = Range{.best = 50, .worst = 150};
  set.objectives[1].range = Range{.best = 1, .worst = 0};
  EXPECT_THAT(set.failure(), ElementsAre(1050, 9));
  const auto good = trained(100);
  EXPECT_THAT(set.fitness(Evaluations{&good}), ElementsAre(::testing::DoubleNear(100, 1e-9), -0.4));
  EXPECT_THAT(set.scaled(set.fitness(Evaluations{&good})),
              ElementsAre(::testing::DoubleNear(0.5, 1e-9), ::testing::DoubleNear(0.6, 1e-9)));
  const auto exploded = trained(1e7);
  EXPECT_NEAR(set.fitness(Evaluations{&exploded})[0], 1e7, 1e-3) << "bad ones differ, too";
  auto absurd = trained(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(set.fitness(Evaluations{&absurd})[0], 1050);
  Evaluation failed;
  EXPECT_EQ(set.fitness(Evaluations{&failed}), set.failure());
  EXPECT_DOUBLE_EQ(set.fitness(Evaluations{&failed, &good})[0], set.fitness(Evaluations{&good})[0]);
}

TEST(Objectives, AcrossReplicates) {
  const auto a = trained(100);
  const auto b = trained(110);
  Evaluation diverged;
  diverged.status = Status::diverged;
  const auto sd = chosen("seed_sd");
  EXPECT_NEAR(sd.value(Evaluations{&a, &b, &diverged}), std::log(1.1) / std::sqrt(2.0), 1e-12);
  EXPECT_TRUE(std::isinf(sd.value(Evaluations{&a, &diverged})));
  EXPECT_DOUBLE_EQ(chosen("divergence_rate").value(Evaluations{&a, &b, &diverged}), 1.0 / 3);
  EXPECT_EQ(sd.objective.min_replicates, 2);
  EXPECT_NEAR(chosen("perplexity").value(Evaluations{&a, &b, &diverged}), 105, 1e-9);
}

TEST(Objectives, OfTheRegistryHaveOneSourceAUnitAndFiniteValues) {
  auto evaluation = trained(100);
  evaluation.values["bits_per_byte"] = 2.0;
  evaluation.measured = {{"train_seconds", 3.0}, {"peak_bytes", 4.0}};
  for (const auto& key : objectives().keys()) {
    auto objective = chosen(key);
    const auto& what = objective.objective;
    EXPECT_FALSE(what.unit.empty()) << key;
    EXPECT_EQ(int{static_cast<bool>(what.analytic)} + static_cast<bool>(what.measured) +
                  static_cast<bool>(what.trained) + static_cast<bool>(what.across),
              1)
        << key;
    Subject subject;
    subject.architecture.mechanism = vanilla_mechanism(Semantics::corrected);
    if (what.measured) continue;
    objective.compute_before_training(subject, nullptr, evaluation);
    const auto again = trained(120);
    const double value = what.across ? objective.value(Evaluations{&evaluation, &again})
                                     : objective.value(evaluation);
    EXPECT_TRUE(std::isfinite(value)) << key;
    if (!what.range) continue;
    const auto range = what.range({{"unigram_perplexity", 500.0}, {"bytes_per_token", 5.0}});
    ASSERT_TRUE(range.has_value()) << key;
    EXPECT_LT(objective.minimised(range->best), objective.minimised(range->worst)) << key;
  }
}

TEST(Objectives, CostsByFormulaAreThoseOfTheArchitecture) {
  Subject subject;
  subject.architecture.mechanism = vanilla_mechanism(Semantics::corrected);
  const auto value = [&](const std::string& key) {
    return chosen(key).objective.analytic(subject);
  };
  EXPECT_EQ(value("parameters") - value("non_embedding_parameters"), (10000 + 128) * 128);
  EXPECT_EQ(value("parameters"), 1693184) << "as published";
  EXPECT_EQ(value("state_bytes"), 2 * 2 * 128 * 4);
  EXPECT_EQ(value("flops") - value("attention_flops"),
            2 * 16.0 * 128 * 128 * 128 + 2.0 * 128 * 128 * 10000);
  // A longer context costs the attention its square.
  auto settings = chosen("attention_flops").settings;
  settings.set("context", std::int64_t{1024});
  const auto longer = objectives().at("attention_flops").make(settings).analytic(subject);
  EXPECT_GT(longer, 8 * value("attention_flops"));
}

/// A problem of two genes whose subjects differ in width.
class Widths final : public Problem {
 public:
  [[nodiscard]] std::string canonical(const Genotype& genotype) const override {
    return genotype.option("width");
  }
  [[nodiscard]] nlohmann::json identity(const std::string&) const override { return {}; }
  void measure(const Task&, Evaluation&) override {}
  [[nodiscard]] std::string parse(const std::string& name) const override { return name; }
  [[nodiscard]] std::string label(const std::string& candidate) const override { return candidate; }
  [[nodiscard]] nlohmann::json facts() const override { return {}; }
  [[nodiscard]] int num_workers() const override { return 1; }
  double calibrate_seconds(const std::string&) override { return 0; }
  [[nodiscard]] std::optional<Subject> subject(const std::string& candidate) const override {
    Subject subject;
    subject.architecture.width = std::stoll(candidate);
    return subject;
  }
};

TEST(Ranges, OfAFormulaAreItsExtremesOverTheSpace) {
  const SearchSpace space(
      {{.name = "width", .options = {"64", "32", "128"}}, {.name = "other", .max = 1.0}});
  Probe probe;
  ObjectiveSet set{.objectives = {probe.analytic, probe.analytic}};
  set.objectives[1].maximise = true;
  set_expected_ranges(set, space, Widths(), {});
  EXPECT_EQ(set.objectives[0].range->best, 32);
  EXPECT_EQ(set.objectives[0].range->worst, 128);
  EXPECT_EQ(set.objectives[1].range->best, 128);
  EXPECT_EQ(set.objectives[1].range->worst, 32);
}

TEST(Ranges, AConstantObjectiveIsRefused) {
  const SearchSpace space({{.name = "width", .options = {"64"}}, {.name = "other", .max = 1.0}});
  Probe probe;
  ObjectiveSet set{.objectives = {probe.analytic}};
  EXPECT_EQ(error_of([&] { set_expected_ranges(set, space, Widths(), {}); }),
            "objectives: width is 64 for every candidate of this space; leave it out");
}

TEST(Ranges, OpenOnesComeFromTheBaseline) {
  Probe probe;
  ObjectiveSet set{.objectives = {probe.slow, chosen("perplexity")}};
  set_expected_ranges(set, SearchSpace({{.name = "x", .max = 1.0}}), Widths(),
                      {{"unigram_perplexity", 500.0}});
  EXPECT_FALSE(set.objectives[0].range.has_value());
  EXPECT_EQ(set.objectives[1].range->worst, 500);
  auto baseline = trained(100);
  baseline.measured["width_ms"] = {{"value", 3.0}};
  set_ranges_from_baseline(set, Evaluations{&baseline});
  EXPECT_EQ(set.objectives[0].range->worst, 6);
  ObjectiveSet again{.objectives = {probe.slow, chosen("perplexity")}};
  set_recorded_ranges(again, set.record());
  EXPECT_EQ(again.record(), set.record());
  ObjectiveSet open{.objectives = {probe.slow}};
  Evaluation failed;
  failed.reason = "not finite";
  EXPECT_EQ(
      error_of([&] { set_ranges_from_baseline(open, Evaluations{&failed}); }),
      "objectives: nothing is known of the range of width_ms, since the baseline could not be "
      "evaluated (not finite); give objectives.width_ms.range");
}

TEST(Ranges, WhatIsUnavailableIsRefusedWithTheReason) {
  ObjectiveSet set{.objectives = {chosen("bits_per_byte")}};
  EXPECT_EQ(error_of([&] {
              set_expected_ranges(set, SearchSpace(), Widths(), {{"corpus", "mqar"}});
            }),
            "objectives: bits_per_byte is unavailable: the corpus mqar is no text, its tokens have "
            "no bytes");
  const nlohmann::json unknown_words{{"bytes_per_token", 5.0},
                                     {"unigram_perplexity", 500.0},
                                     {"valid_targets", 8000},
                                     {"valid_unknown_targets", 410}};
  const std::string why =
      "objectives: bits_per_byte is unavailable: 5.1 % of the validation targets are <unk> (410), "
      "whose bytes no model predicts, so that the smallest vocabulary would win; take data.unit = "
      "byte, a vocabulary that covers the validation text, or perplexity at one vocabulary";
  EXPECT_EQ(error_of([&] { set_expected_ranges(set, SearchSpace(), Widths(), unknown_words); }),
            why);
  ObjectiveSet constrained{.objectives = {chosen("perplexity")},
                           .constraints = {{.quantity = chosen("bits_per_byte"), .bound = 2.0}}};
  EXPECT_EQ(
      error_of([&] { set_expected_ranges(constrained, SearchSpace(), Widths(), unknown_words); }),
      why);
  auto covered = unknown_words;
  covered["valid_unknown_targets"] = 0;
  EXPECT_EQ(error_of([&] { set_expected_ranges(set, SearchSpace(), Widths(), covered); }), "");
}

}  // namespace
}  // namespace nas
