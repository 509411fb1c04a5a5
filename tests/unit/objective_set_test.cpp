#include "search/objective_set.hpp"

#include "core/error.hpp"
#include "genotype/slots.hpp"
#include "prelude.hpp"
#include "study/session/ranges.hpp"
#include "unit/data_fixture.hpp"
#include "unit/paper_components.hpp"
#include "unit/widths.hpp"

namespace nas {
namespace {

using testing::Widths;
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

TEST(ObjectiveSet, AFormulaReplacesWhatTheProblemRecordsUnderItsName) {
  Probe probe;
  const ObjectiveSet set{.objectives = {probe.analytic}};
  Evaluation evaluation;
  evaluation.values["width"] = 1.0;  // as `flops`, at another context
  set.screen(kSubject, nlohmann::json::object(), evaluation);
  EXPECT_EQ(evaluation.values.at("width"), 128.0);
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

TEST(ObjectiveSet, WhatIsMeasuredMayBeMeasuredElsewhere) {
  Probe probe;
  const ObjectiveSet set{.objectives = {probe.analytic, chosen("perplexity")},
                         .constraints = {{.quantity = probe.slow, .at_most = true, .bound = 100}}};
  Texts asked;
  const auto elsewhere = [&](const std::string& name) {
    asked.push_back(name);
    return nlohmann::json{{"value", 7.0}};
  };
  Evaluation evaluation;
  evaluation.status = Status::ok;
  set.screen(kSubject, nlohmann::json::object(), evaluation, elsewhere);
  EXPECT_EQ(evaluation.status, Status::ok);
  EXPECT_EQ(evaluation.measured["width_ms"]["value"], 7.0);
  EXPECT_EQ(asked, Texts{"width_ms"});
  EXPECT_EQ(probe.measured, 0);
  evaluation.measured.clear();
  set.screen(kSubject, {{"width_ms", {{"value", 5.0}}}}, evaluation, elsewhere);
  EXPECT_EQ(asked.size(), 1U) << "once a function";
  EXPECT_EQ(set.find("width_ms"), &set.constraints[0].quantity);
  EXPECT_EQ(set.find("width"), &set.objectives[0]);
  EXPECT_EQ(set.find("depth"), nullptr);
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

TEST(ObjectiveSet, ConstraintsOnTrainingAreTestedOnTheMeansOverReplicates) {
  ObjectiveSet set{
      .objectives = {chosen("perplexity")},
      .constraints = {{.quantity = chosen("accuracy"), .at_most = false, .bound = 0.5}}};
  set.objectives[0].range = Range{.best = 50, .worst = 150};
  auto evaluation = trained(90, 40);
  set.screen(kSubject, nlohmann::json::object(), evaluation);
  set.record_trained(evaluation);
  EXPECT_EQ(evaluation.status, Status::ok) << "a training is not rejected by itself";
  EXPECT_EQ(evaluation.measured.at("accuracy").at("value"), 0.4) << "for reports";
  const auto lucky = trained(80, 55);
  const auto luckier = trained(70, 70);
  const auto alone = set.judge(Evaluations{&evaluation});
  EXPECT_EQ(alone.status, Status::rejected);
  EXPECT_EQ(alone.reason, "accuracy = 0.4, must be >= 0.5");
  EXPECT_EQ(alone.fitness, set.failure());
  EXPECT_THAT(alone.measured, ElementsAre(DoubleNear(90, 1e-9)));
  const auto two = set.judge(Evaluations{&evaluation, &lucky});
  EXPECT_EQ(two.status, Status::rejected);
  EXPECT_EQ(two.reason, "accuracy = 0.475, must be >= 0.5 (over 2 replicates)");
  const auto three = set.judge(Evaluations{&evaluation, &lucky, &luckier});
  EXPECT_EQ(three.status, Status::ok);
  EXPECT_THAT(three.fitness, ElementsAre(DoubleNear(80, 1e-9)));
  EXPECT_EQ(three.reason, "");
}

TEST(ObjectiveSet, AFailedReplicateFailsTheCandidateUnlessFailuresAreJudged) {
  ObjectiveSet set{.objectives = {chosen("perplexity")}};
  set.objectives[0].range = Range{.best = 50, .worst = 150};
  const auto good = trained(100);
  Evaluation diverged;
  diverged.status = Status::diverged;
  diverged.replicate = 1;
  diverged.reason = "training loss is not finite by step 40";
  Evaluation lost;
  lost.status = Status::out_of_memory;
  lost.replicate = 2;
  lost.reason = "too big";
  const auto one = set.judge(Evaluations{&good, &diverged});
  EXPECT_EQ(one.status, Status::diverged);
  EXPECT_EQ(one.reason,
            "1 of 2 replicates failed, replicate 1 diverged: training loss is not finite by step "
            "40");
  EXPECT_EQ(one.fitness, set.failure());
  const auto both = set.judge(Evaluations{&diverged, &lost, &good});
  EXPECT_EQ(both.status, Status::out_of_memory) << "the worst";
  EXPECT_EQ(both.reason, "2 of 3 replicates failed, replicate 2 ran out of memory: too big");
  EXPECT_EQ(set.judge(Evaluations{&diverged}).reason, diverged.reason);

  auto judging = set;
  judging.objectives.push_back(chosen("divergence_rate"));
  judging.objectives[1].range = Range{.best = 0, .worst = 1};
  const auto judged = judging.judge(Evaluations{&good, &diverged});
  EXPECT_EQ(judged.status, Status::ok);
  EXPECT_THAT(judged.fitness, ElementsAre(DoubleNear(100, 1e-9), 0.5));
  EXPECT_EQ(judging.judge(Evaluations{&diverged}).status, Status::diverged) << "nothing is left";

  auto constrained = set;
  constrained.constraints = {
      {.quantity = chosen("divergence_rate"), .at_most = true, .bound = 0.5}};
  EXPECT_EQ(constrained.judge(Evaluations{&good, &diverged}).status, Status::ok);
  const auto broken = constrained.judge(Evaluations{&good, &diverged, &lost});
  EXPECT_EQ(broken.status, Status::rejected);
  EXPECT_THAT(broken.reason, StartsWith("divergence_rate = 0.66"));
}

TEST(ObjectiveSet, AReplicateThatWasStoppedEarlyMarksTheCandidate) {
  ObjectiveSet set{.objectives = {chosen("perplexity")}};
  set.objectives[0].range = Range{.best = 50, .worst = 150};
  const auto whole = trained(90);
  auto stopped = trained(110);
  stopped.status = Status::stopped_early;
  stopped.replicate = 1;
  stopped.reason = "nll above the limit at step 20";
  const auto both = set.judge(Evaluations{&whole, &stopped});
  EXPECT_EQ(both.status, Status::stopped_early);
  EXPECT_EQ(both.reason,
            "1 of 2 replicates stopped early, replicate 1: nll above the limit at step 20");
  EXPECT_THAT(both.fitness, ElementsAre(DoubleNear(100, 1e-9)));
  EXPECT_EQ(set.judge(Evaluations{&stopped}).reason, "nll above the limit at step 20");
}

TEST(ObjectiveSet, FormulasDecideWithoutAnEvaluation) {
  Probe probe;
  ObjectiveSet set{.objectives = {chosen("perplexity")},
                   .constraints = {{.quantity = chosen("accuracy"), .at_most = false, .bound = 1},
                                   {.quantity = probe.slow, .at_most = true, .bound = 1},
                                   {.quantity = probe.analytic, .at_most = true, .bound = 100}}};
  EXPECT_EQ(set.violation_by_formula(kSubject), "width = 128, must be <= 100");
  set.constraints.pop_back();
  EXPECT_EQ(set.violation_by_formula(kSubject), "");
  EXPECT_EQ(probe.measured, 0);
}

TEST(ObjectiveSet, TrainedValuesAreRecordedUnderTheObjectivesName) {
  ObjectiveSet set{.objectives = {chosen("perplexity"), chosen("accuracy"), chosen("perplexity")}};
  set.objectives[2].name = "ppl";
  auto evaluation = trained(100);
  evaluation.values["perplexity"] = 100;
  evaluation.values["ppl"] = 7;  // another quantity of that name
  set.record_trained(evaluation);
  EXPECT_FALSE(evaluation.measured.contains("perplexity")) << "is among the values";
  EXPECT_EQ(evaluation.measured["accuracy"]["value"], 0.4);
  EXPECT_NEAR(evaluation.measured["ppl"]["value"].get<double>(), 100, 1e-9);
  Evaluation failed;
  set.record_trained(failed);
  EXPECT_TRUE(failed.measured.empty());
}

TEST(ObjectiveSet, FitnessIsFiniteAndMinimised) {
  ObjectiveSet set{.objectives = {chosen("perplexity"), chosen("accuracy")}};
  set.objectives[0].range = Range{.best = 50, .worst = 150};
  set.objectives[1].range = Range{.best = 1, .worst = 0};
  EXPECT_THAT(set.failure(), ElementsAre(1050, 9));
  const auto good = trained(100);
  EXPECT_THAT(set.judge(Evaluations{&good}).fitness, ElementsAre(DoubleNear(100, 1e-9), -0.4));
  EXPECT_THAT(set.scaled(set.judge(Evaluations{&good}).fitness),
              ElementsAre(DoubleNear(0.5, 1e-9), DoubleNear(0.6, 1e-9)));
  const auto exploded = trained(1e7);
  EXPECT_NEAR(set.judge(Evaluations{&exploded}).fitness[0], 1e7, 1e-3) << "bad ones differ, too";
  auto absurd = trained(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(set.judge(Evaluations{&absurd}).fitness[0], 1050);
  Evaluation failed;
  EXPECT_EQ(set.judge(Evaluations{&failed}).fitness, set.failure());
  EXPECT_EQ(set.judge(Evaluations{&failed, &good}).fitness, set.failure());
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
    subject.architecture.stack = {vanilla_mechanism(Semantics::corrected)};
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
  subject.architecture.stack = {vanilla_mechanism(Semantics::corrected)};
  const auto value = [&](const std::string& key) {
    return chosen(key).objective.analytic(subject);
  };
  EXPECT_EQ(value("parameters") - value("non_embedding_parameters"), (10000 + 128) * 128);
  EXPECT_EQ(value("parameters"), 1693184) << "as published";
  EXPECT_EQ(value("state_bytes"), 2 * 2 * 128 * 4);
  auto of_state = chosen("state_bytes").settings;
  of_state.set("tokens", std::int64_t{100});
  const auto state = objectives().at("state_bytes").make(of_state).analytic;
  EXPECT_EQ(state(subject), 100 * 2 * 2 * 128 * 4);
  auto windowed = subject;
  windowed.architecture.stack.front().set("pattern", "window");
  windowed.architecture.stack.front().set("window", 32);
  EXPECT_EQ(state(windowed), 32 * 2 * 2 * 128 * 4);
  EXPECT_EQ(value("flops") - value("attention_flops"),
            2 * 16.0 * 128 * 128 * 128 + 2.0 * 128 * 128 * 10000);
  // A longer context costs the attention its square.
  auto settings = chosen("attention_flops").settings;
  settings.set("context", std::int64_t{1024});
  const auto longer = objectives().at("attention_flops").make(settings).analytic(subject);
  EXPECT_GT(longer, 8 * value("attention_flops"));
}

TEST(Ranges, OfAFormulaAreItsExtremesOverTheSpace) {
  const SearchSpace space(
      {{.name = "width", .options = {"64", "32", "128"}}, {.name = "other", .max = 1.0}});
  Probe probe;
  ObjectiveSet set{.objectives = {probe.analytic, probe.analytic}};
  set.objectives[1].maximise = true;
  set_expected_ranges(set, shown_candidates(space, Widths()), Widths(), {});
  EXPECT_EQ(set.objectives[0].range->best, 32);
  EXPECT_EQ(set.objectives[0].range->worst, 128);
  EXPECT_EQ(set.objectives[1].range->best, 128);
  EXPECT_EQ(set.objectives[1].range->worst, 32);
}

TEST(Ranges, AConstantObjectiveIsRefused) {
  const SearchSpace space({{.name = "width", .options = {"64"}}, {.name = "other", .max = 1.0}});
  Probe probe;
  ObjectiveSet set{.objectives = {probe.analytic}};
  const auto shown = shown_candidates(space, Widths());
  EXPECT_EQ(error_of([&] { set_expected_ranges(set, shown, Widths(), {}); }),
            "objectives: width is 64 for every candidate of this space; leave it out");
}

TEST(Ranges, OpenOnesComeFromTheBaseline) {
  Probe probe;
  ObjectiveSet set{.objectives = {probe.slow, chosen("perplexity")}};
  set_expected_ranges(set, {}, Widths(), {{"unigram_perplexity", 500.0}});
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
              set_expected_ranges(set, {}, Widths(), {{"corpus", "mqar"}});
            }),
            "objectives: bits_per_byte is unavailable: which bytes the scored tokens of the corpus "
            "mqar stand for is not known: it is no text, tokens lose a part of it (further blanks, "
            "ends of lines, what NFC composes), or training.validation_windows scores a part of "
            "it; take data.unit = byte, or perplexity at one vocabulary");
  const nlohmann::json unknown_words{{"bytes_per_token", 5.0},
                                     {"unigram_perplexity", 500.0},
                                     {"valid_targets", 8000},
                                     {"valid_unknown_targets", 410}};
  const std::string why =
      "objectives: bits_per_byte is unavailable: 5.1 % of the validation targets are <unk> (410), "
      "whose bytes no model predicts, so that the smallest vocabulary would win; take data.unit = "
      "byte, a vocabulary that covers the validation text, or perplexity at one vocabulary";
  EXPECT_EQ(error_of([&] { set_expected_ranges(set, {}, Widths(), unknown_words); }), why);
  ObjectiveSet constrained{.objectives = {chosen("perplexity")},
                           .constraints = {{.quantity = chosen("bits_per_byte"), .bound = 2.0}}};
  EXPECT_EQ(error_of([&] { set_expected_ranges(constrained, {}, Widths(), unknown_words); }), why);
  auto covered = unknown_words;
  covered["valid_unknown_targets"] = 0;
  EXPECT_EQ(error_of([&] { set_expected_ranges(set, {}, Widths(), covered); }),
            "nothing was thrown");
}

}  // namespace
}  // namespace nas
