// What every objective that comes from trainings must do, found in the registry and not listed by
// hand.

#include "search/objective.hpp"

#include "prelude.hpp"
#include "search/objective_set.hpp"
#include "table/answer.hpp"

namespace nas::testing {
namespace {

constexpr double kBytesPerToken = 4.0;

/// A training as it is recorded, `extra` nats worse than another.
Evaluation training(Status status, double extra = 0.0) {
  Evaluation evaluation;
  evaluation.candidate = "dot|softmax|none|fixed|bias|0";
  evaluation.status = status;
  evaluation.measured = {{"train_seconds", 3.0}, {"peak_bytes", 4096}};
  for (const std::int64_t step : {10, 20}) {
    CurvePoint point;
    point.step = step;
    point.train_nll = 3.0 + extra;
    point.valid = {.nll = 100.0 * (3.0 + extra + 1.0 / static_cast<double>(step)),
                   .tokens = 100,
                   .correct = 25,
                   .batch_mean_nll = 4.0 * (3.1 + extra),
                   .batches = 4};
    point.seconds = static_cast<double>(step);
    evaluation.curve.push_back(point);
  }
  if (is_usable(evaluation)) set_quality_values(evaluation, kBytesPerToken);
  return evaluation;
}

Evaluation unfinished() {
  Evaluation evaluation;
  evaluation.candidate = "dot|softmax|none|fixed|bias|0";
  evaluation.status = Status::diverged;
  return evaluation;
}

class TrainedObjective : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static ChosenObjective chosen() {
    const auto& entry = objectives().at(GetParam());
    const Parameters settings(entry.description.settings);
    return {.name = GetParam(),
            .key = GetParam(),
            .settings = settings,
            .objective = entry.make(settings)};
  }
  [[nodiscard]] static double value(const std::vector<Evaluation>& evaluations) {
    std::vector<const Evaluation*> pointers;
    for (const auto& evaluation : evaluations) pointers.push_back(&evaluation);
    return chosen().value(pointers);
  }
};

TEST_P(TrainedObjective, HasAValueOfFinishedTrainingRunsAndOfThoseStoppedEarly) {
  for (const auto status : {Status::ok, Status::stopped_early}) {
    const auto one = training(status);
    EXPECT_TRUE(std::isfinite(value({one, training(status, 0.1)}))) << to_string(status);
    if (chosen().objective.trained) {
      EXPECT_TRUE(std::isfinite(chosen().value(one))) << to_string(status);
    }
  }
  EXPECT_TRUE(std::isfinite(value({training(Status::ok), training(Status::stopped_early, 0.1)})));
}

TEST_P(TrainedObjective, IsTheMeanOverUsableReplicates) {
  const auto objective = chosen();
  if (objective.objective.across) return;
  const auto a = training(Status::ok);
  const auto b = training(Status::stopped_early, 0.2);
  EXPECT_DOUBLE_EQ(value({a, unfinished(), b}), (objective.value(a) + objective.value(b)) / 2.0);
}

TEST_P(TrainedObjective, IsTheSameOfTheMeanOfSeveralTrainingRuns) {
  const auto objective = chosen();
  if (objective.objective.across) return;
  const std::vector<Evaluation> replicates{training(Status::ok), training(Status::ok, 0.7),
                                           training(Status::ok, 1.9)};
  EXPECT_DOUBLE_EQ(objective.value(mean_evaluation(replicates, kBytesPerToken)), value(replicates));
}

TEST_P(TrainedObjective, SaysInWordsWhatWasNotRecorded) {
  Evaluation empty;
  empty.candidate = "dot|softmax|none|fixed|bias|0";
  empty.status = Status::ok;
  empty.measured = nlohmann::json::object();
  try {
    EXPECT_TRUE(chosen().objective.across) << value({empty});
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("was recorded"), HasSubstr(GetParam()), HasSubstr(empty.candidate),
                      Not(HasSubstr("::")), Not(HasSubstr("json"))));
  }
}

Texts of_trainings() {
  Texts keys;
  for (const auto& key : objectives().keys()) {
    const auto& entry = objectives().at(key);
    const auto objective = entry.make(Parameters(entry.description.settings));
    if (objective.trained || objective.across) keys.push_back(key);
  }
  return keys;
}

INSTANTIATE_TEST_SUITE_P(, TrainedObjective, ::testing::ValuesIn(of_trainings()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace nas::testing
