#include "evaluation/recording_evaluator.hpp"

#include <pagmo/algorithms/sga.hpp>

#include "algorithms/evo_ga.hpp"
#include "core/fault.hpp"
#include "core/stop.hpp"
#include "prelude.hpp"
#include "unit/evaluator_fixture.hpp"

namespace nas::testing {
namespace {

TEST_F(EvaluatorTest, ReuseAnswersByTheFirstEvaluation) {
  const Run run(folder_ / "s.sqlite");
  const auto first = run.ask({{0.1, 0, 1, 2}, {0.1, 0, 1, 2}, {0.2, 0, 1, 2}});
  EXPECT_EQ(first[0], first[1]);
  EXPECT_EQ(first[0], FakeMeasurement::value("a|b|c|0.1", 0));
  run.fake->version_ = 2;  // the identity changes within the run, as early-stopping limits do
  EXPECT_EQ(run.ask({{0.1, 0, 1, 2}}).front(), first[0]);
  EXPECT_EQ(run.fake->measured_, 2);
  const auto asks = run.store.asks();
  ASSERT_EQ(asks.size(), 4U);
  EXPECT_FALSE(asks[0].reused);
  EXPECT_TRUE(asks[1].reused);
  EXPECT_EQ(asks[3].batch, 1);
  EXPECT_EQ(asks[3].genotype, "a|b|c|0.1");
  EXPECT_THAT(run.fake->earlier_, ElementsAre(0U, 3U));
}

TEST_F(EvaluatorTest, RetrainMakesTheKthAskReplicateK) {
  const Run run(folder_ / "s.sqlite", {.workers = 2, .repeated = Repeated::retrain});
  const auto values = run.ask({{0.1, 0, 1, 2}, {0.1, 0, 1, 2}});
  EXPECT_THAT(values, ElementsAre(FakeMeasurement::value("a|b|c|0.1", 0),
                                  FakeMeasurement::value("a|b|c|0.1", 1)));
  EXPECT_EQ(run.ask({{0.1, 0, 1, 2}}).front(), FakeMeasurement::value("a|b|c|0.1", 2));
  EXPECT_EQ(run.fake->measured_, 3);
}

TEST_F(EvaluatorTest, ReplicateAnswersTheMeanSoFar) {
  const Run run(folder_ / "s.sqlite", {.repeated = Repeated::replicate});
  const double a = FakeMeasurement::value("a|b|c|0.1", 0);
  const double b = FakeMeasurement::value("a|b|c|0.1", 1);
  EXPECT_THAT(run.ask({{0.1, 0, 1, 2}, {0.1, 0, 1, 2}}), ElementsAre(a, (a + b) / 2));
}

TEST_F(EvaluatorTest, WhatBelongsToAFinishedMeasurementIsDoneAfterItIsCommitted) {
  const auto file = folder_ / "s.sqlite";
  Texts seen;
  {
    const Run run(file);
    run.fake->array_width_ = 2;
    run.fake->on_recorded_ = [&](const Evaluation& evaluation) {
      EXPECT_TRUE(run.store.find(evaluation.id).has_value());
      seen.push_back(evaluation.candidate.substr(0, 1));
      if (evaluation.candidate[0] == 'b') throw MachineError("no space left in runs/x");
    };
    EXPECT_THROW(run.ask(kFour), MachineError);
    EXPECT_EQ(run.store.evaluations().size(), 4U) << "nothing measured is lost";
  }
  EXPECT_THAT(seen, ElementsAre("d", "c", "b"));
  seen.clear();
  const Run run(file);
  run.fake->on_recorded_ = [&](const Evaluation& evaluation) {
    seen.push_back(evaluation.candidate.substr(0, 1));
  };
  run.ask(kFour);
  EXPECT_EQ(run.fake->measured_, 0);
  EXPECT_THAT(seen, ElementsAre("d", "c", "b", "a")) << "as far as an earlier process did not";
}

// As what has ended processes before, whose checkpoint is still there.
TEST_F(EvaluatorTest, SoIsWhatBelongsToOneThatDoesNotBeginAgain) {
  const Run run(folder_ / "s.sqlite");
  std::vector<Status> recorded;
  run.fake->on_screen_ = [](const Task& /*task*/, Evaluation& evaluation) {
    evaluation.status = Status::crashed;
  };
  run.fake->on_recorded_ = [&](const Evaluation& evaluation) {
    EXPECT_TRUE(run.store.find(evaluation.id).has_value());
    recorded.push_back(evaluation.status);
  };
  (void)run.ask({kFour.front()});
  EXPECT_THAT(recorded, ElementsAre(Status::crashed));
}

TEST_F(EvaluatorTest, LongestFirst) {
  const Run run(folder_ / "s.sqlite");
  run.ask({{0, 0, 0, 0}, {0, 2, 0, 0}, {0, 1, 0, 0}, {0, 2, 1, 0}});
  EXPECT_THAT(run.fake->order_, ElementsAre("c|a|a|0", "c|b|a|0", "b|a|a|0", "a|a|a|0"));
}

TEST_F(EvaluatorTest, NumberOfWorkersChangesNothingButMeasuredFields) {
  const auto one = uninterrupted(1);
  EXPECT_EQ(one, uninterrupted(4));
  EXPECT_FALSE(one.empty());
}

TEST_F(EvaluatorTest, StoppedAtAnyMeasurementAndRestartedEndsTheSame) {
  const auto whole = uninterrupted();
  const auto file = folder_ / "stopped.sqlite";
  std::map<std::string, int> times;
  int stops = 0;
  for (bool done = false; !done; ++stops) {
    const Run run(file, {.workers = 1 + stops % 3});
    run.fake->on_measure_ = [](int number, const Task&) {
      if (number == 4) throw StopRequested();
    };
    try {
      run.search();
      done = true;
      EXPECT_EQ(comparable(run.store), whole);
    } catch (const StopRequested&) {
    }
    for (const auto& [id, count] : run.fake->times_) times[id] += count;
  }
  EXPECT_GT(stops, 5);
}

TEST_F(EvaluatorTest, StopSignalKeepsWhatIsFinished) {
  const Run run(folder_ / "s.sqlite");
  run.fake->on_measure_ = [](int number, const Task&) {
    if (number == 2) request_stop();
  };
  EXPECT_THROW(run.ask({{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 2, 0, 0}}), StopRequested);
  EXPECT_EQ(run.store.evaluations().size(), 2U);
  EXPECT_EQ(run.store.asks().size(), 2U);
}

TEST_F(EvaluatorTest, WhileCandidatesAreLookedAtTheSearchCanBeWatchedAndStopped) {
  std::vector<std::pair<std::int64_t, std::int64_t>> seen;
  const Run run(folder_ / "s.sqlite", {.on_progress = [&](const Progress& progress) {
                  if (progress.kind != Progress::Kind::candidate_screening) return;
                  seen.emplace_back(progress.screening, progress.batch_size);
                }});
  int looked_at = 0;
  run.fake->on_screen_ = [&](const Task& /*task*/, Evaluation& /*evaluation*/) {
    if (++looked_at == 2) request_stop();
  };
  EXPECT_THROW(run.ask({{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 2, 0, 0}, {0, 3, 0, 0}}), StopRequested);
  EXPECT_EQ(looked_at, 2);
  EXPECT_EQ(run.fake->measured_, 0);
  using Seen = std::pair<std::int64_t, std::int64_t>;
  EXPECT_THAT(seen, ElementsAre(Seen(1, 4), Seen(2, 4), Seen(3, 4)));
}

TEST_F(EvaluatorTest, AsksCanBeReadBeforeTheirBatchIsAnswered) {
  const auto file = folder_ / "s.sqlite";
  const Run run(file);
  std::vector<std::size_t> recorded;
  run.fake->on_measure_ = [&](int, const Task&) {
    recorded.push_back(Store(file, Store::Mode::read_only).asks().size());
  };
  // The longest first: d, c, b. The fourth ask is answered by the same evaluation as the first.
  const auto values = run.ask({{0, 1, 0, 0}, {0, 3, 0, 0}, {0, 2, 0, 0}, {0, 1, 0, 0}});
  EXPECT_THAT(recorded, ElementsAre(0U, 1U, 2U));
  ASSERT_EQ(run.store.asks().size(), 4U);
  run.fake->on_measure_ = [&](int, const Task&) {
    const auto asks = Store(file, Store::Mode::read_only).asks();
    ASSERT_EQ(asks.size(), 5U) << "what is known answers at once";
    EXPECT_EQ(asks[4].number, 5);
    EXPECT_EQ(asks[4].batch, 1);
    EXPECT_EQ(asks[4].genotype, "d|a|a|0");
    EXPECT_TRUE(asks[4].reused);
    EXPECT_THAT(asks[4].fitness, ElementsAre(values[1]));
  };
  run.ask({{0, 0, 0, 0}, {0, 3, 0, 0}});
  EXPECT_EQ(run.store.asks().size(), 6U);
}

TEST_F(EvaluatorTest, CheapMeasurementsAreCommittedOnceABatch) {
  const Run run(folder_ / "s.sqlite");
  run.fake->expensive_ = false;
  run.fake->on_measure_ = [&](int, const Task&) { EXPECT_TRUE(run.store.evaluations().empty()); };
  run.ask({{0, 0, 0, 0}, {0, 1, 0, 0}});
  EXPECT_EQ(run.store.evaluations().size(), 2U);
}

TEST_F(EvaluatorTest, CheapEvaluationsAreLeftToTheStoreAndAnswerAgain) {
  constexpr std::int64_t kReplicates = 10;
  const Run run(folder_ / "s.sqlite", {.workers = 1, .replicates = kReplicates});
  run.fake->expensive_ = false;
  std::vector<std::vector<double>> all;
  for (int i = 0; i < 4 * 4 * 3 * 11; ++i) {
    all.push_back({(i % 11) / 10.0, double(i / 11 % 4), double(i / 44 % 4), double(i / 176)});
  }
  const auto first = run.ask(all);
  const auto made = run.store.evaluations();
  ASSERT_EQ(std::ssize(made), kReplicates * std::ssize(all)) << "more than are kept in memory";
  EXPECT_FALSE(made.front().measured.contains("host")) << "the session says it";
  EXPECT_EQ(run.ask(all), first);
  EXPECT_EQ(run.ask({all[7], all[7], all[500]}), (std::vector{first[7], first[7], first[500]}));
  EXPECT_EQ(run.fake->measured_, std::ssize(made));
  EXPECT_EQ(run.evaluator->num_evaluated(), std::ssize(made));
  EXPECT_TRUE(run.store.asks().back().reused);
  EXPECT_THAT(run.fake->earlier_, ElementsAre(0, 0, 0)) << "none is kept for measurements";
}

TEST_F(EvaluatorTest, ProgressCountsAskedTrainedAndReused) {
  std::vector<Progress> seen;
  const Run run(folder_ / "s.sqlite",
                {.workers = 1, .on_progress = [&](const Progress& p) { seen.push_back(p); }});
  run.ask({{0.1, 0, 0, 0}, {0.1, 0, 0, 0}, {0.1, 1, 0, 0}});
  // Two candidates looked at, a start, two evaluations started and finished, an end.
  ASSERT_EQ(seen.size(), 8U);
  EXPECT_EQ(seen.back().kind, Progress::Kind::batch_finished);
  EXPECT_EQ(seen.back().asked, 3);
  EXPECT_EQ(seen.back().trained, 2);
  EXPECT_EQ(seen.back().reused, 1);
}

TEST_F(EvaluatorTest, AlgorithmsOfPagmoThatAskOneByOneRunToo) {
  const Run run(folder_ / "s.sqlite");
  run.search(
      pagmo::algorithm(pagmo::sga(3, 0.9, 1., 0.3, 1., 2, "single", "uniform", "truncated", 5)),
      {.population = 8, .seed = 5});
  EXPECT_GT(run.evaluator->num_asked(), 8);
}

TEST_F(EvaluatorTest, InitialGenotypesComeFirst) {
  const Run run(folder_ / "s.sqlite");
  const auto known = FakeMeasurement::space().decode({0.5, 3, 3, 2});
  run.search(pagmo::algorithm(EvoGa({}, 1)), {.population = 12, .seed = 1, .initial = {known}});
  EXPECT_EQ(run.store.asks().front().genotype, "d|d|c|0.5");
}

TEST_F(EvaluatorTest, ReplicatesAreAnsweredByTheirMean) {
  const Run run(folder_ / "s.sqlite", {.workers = 2, .replicates = 3});
  double mean = 0.0;
  for (int i = 0; i < 3; ++i) mean += FakeMeasurement::value("a|b|c|0.1", i) / 3;
  const auto values = run.ask({{0.1, 0, 1, 2}, {0.1, 0, 1, 2}});
  EXPECT_DOUBLE_EQ(values[0], mean);
  EXPECT_EQ(values[1], values[0]);
  EXPECT_EQ(run.fake->measured_, 3);
  EXPECT_EQ(run.store.asks()[1].evaluations.size(), 3U);
  EXPECT_TRUE(run.store.asks()[1].reused);
  const auto answers = run.evaluator->evaluate(Candidate{"a|b|c|0.1"});
  ASSERT_EQ(answers.size(), 3U);
  for (const auto& answer : answers) {
    EXPECT_EQ(answer.identity, run.store.find(answer.id).value().identity) << "kept without it";
  }
}

TEST_F(EvaluatorTest, AConstraintOnTrainingIsTestedOnTheMeanOverTheReplicates) {
  const std::string candidate = "a|b|c|0.1";
  const auto value = [&candidate](int i) { return FakeMeasurement::value(candidate, i); };
  const double mean = (value(0) + value(1) + value(2)) / 3;
  const double least = std::min({value(0), value(1), value(2)});
  ASSERT_LT(least, mean);
  for (const double bound : {mean + 1e-6, (mean + least) / 2}) {
    auto objectives = fake_objectives();
    objectives.constraints.push_back(
        {.quantity = objectives.objectives.front(), .at_most = true, .bound = bound});
    Store store(folder_ / (shortest(bound) + ".sqlite"));
    const auto fake = std::make_shared<FakeMeasurement>();
    RecordingEvaluator evaluator(
        fake, store, [&objectives](Objective::Evaluations e) { return objectives.judge(e); },
        {.replicates = 3});
    const auto answer = evaluator.ask({FakeMeasurement::space().decode({0.1, 0, 1, 2})}).front();
    EXPECT_EQ(answer.status, bound > mean ? Status::ok : Status::rejected)
        << "one lucky seed is not enough";
    EXPECT_DOUBLE_EQ(answer.fitness.front(), bound > mean ? mean : 1000.0);
    EXPECT_EQ(evaluator.num_evaluated(), 3) << "all were trained";
  }
}

TEST_F(EvaluatorTest, RetrainWithReplicatesTakesFreshOnesEachTime) {
  const Run run(folder_ / "s.sqlite", {.repeated = Repeated::retrain, .replicates = 2});
  const auto value = [](int i) { return FakeMeasurement::value("a|b|c|0.1", i); };
  EXPECT_THAT(run.ask({{0.1, 0, 1, 2}, {0.1, 0, 1, 2}}),
              ElementsAre((value(0) + value(1)) / 2, (value(2) + value(3)) / 2));
}

TEST_F(EvaluatorTest, WhatIsScreenedOutIsNotMeasuredButRecorded) {
  const Run run(folder_ / "s.sqlite", {.workers = 2});
  run.fake->on_screen_ = [&run](const Task& task, Evaluation& evaluation) {
    EXPECT_EQ(run.fake->measured_, 0) << "before anything of the batch is measured";
    evaluation.values["letters"] = task.candidate.name[0] - 'a';
    if (task.candidate.name[0] == 'b') {
      evaluation.status = Status::rejected;
      evaluation.reason = "letters = 1, must be <= 0";
    }
    if (task.candidate.name[0] == 'c') throw CandidateFailure("cannot tell");
  };
  EXPECT_THAT(run.ask({{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 2, 0, 0}}),
              ElementsAre(FakeMeasurement::value("a|a|a|0", 0), 1000.0, 1000.0));
  EXPECT_EQ(run.fake->measured_, 1);
  auto by_first = by_letter(run.store);
  EXPECT_EQ(by_first['b'].status, Status::rejected);
  EXPECT_EQ(by_first['b'].values.at("letters"), 1.0);
  EXPECT_EQ(by_first['a'].values.at("letters"), 0.0);
  EXPECT_EQ(by_first['c'].reason, "cannot tell");
}

TEST_F(EvaluatorTest, WhatIsNoModelIsRecordedAsRejectedAndCostsNothing) {
  const Run run(folder_ / "s.sqlite",
                {.workers = 2, .replicates = 2, .budget = {.evaluations = 4}});
  run.fake->refused_ = 'b';
  const auto values = run.ask({{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 1, 0, 0}, {0, 2, 0, 0}});
  EXPECT_EQ(values[1], 1000.0);
  EXPECT_EQ(values[2], 1000.0);
  EXPECT_LT(values[3], 1000.0);
  EXPECT_EQ(run.fake->measured_, 4);
  EXPECT_EQ(run.evaluator->num_evaluated(), 4);
  int rejected = 0;
  for (const auto& evaluation : run.store.evaluations()) {
    if (evaluation.candidate != "b|a|a|0") continue;
    ++rejected;
    EXPECT_TRUE(is_screened_out(evaluation));
    EXPECT_EQ(evaluation.reason, "no such model: must not begin so");
  }
  EXPECT_EQ(rejected, 1);
}

/// Rejects before training whatever begins with another letter than d.
void reject_all_but_d(const Task& task, Evaluation& evaluation) {
  if (task.candidate.name[0] == 'd') return;
  evaluation.status = Status::rejected;
  evaluation.reason = "letter = " + task.candidate.name.substr(0, 1) + ", must be d";
}

TEST_F(EvaluatorTest, WhatConstraintsRejectIsRecordedOnceAndCostsNothing) {
  for (const auto repeated : {Repeated::reuse, Repeated::retrain, Repeated::replicate}) {
    Progress last{};
    std::string events;
    const Run run(folder_ / (std::to_string(static_cast<int>(repeated)) + ".sqlite"),
                  {.repeated = repeated,
                   .replicates = 2,
                   .budget = {.evaluations = 2},
                   .on_progress = [&](const Progress& progress) {
                     last = progress;
                     if (progress.evaluation == nullptr) return;
                     using Kind = Progress::Kind;
                     events += progress.evaluation->candidate[0];
                     events += progress.kind == Kind::evaluation_screened_out ? "-"
                               : progress.kind == Kind::evaluation_started    ? "<"
                                                                              : ">";
                   }});
    run.fake->on_screen_ = reject_all_but_d;
    EXPECT_EQ(run.ask({{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 0, 0}, {0, 3, 0, 0}}).size(), 4U);
    EXPECT_EQ(run.ask({{0, 0, 0, 0}, {0, 2, 0, 0}}).size(), 2U);
    EXPECT_EQ(run.evaluator->num_evaluated(), 2);
    EXPECT_EQ(run.evaluator->spent(), "");
    EXPECT_EQ(run.fake->measured_, 2);
    const auto evaluations = run.store.evaluations();
    EXPECT_EQ(evaluations.size(), 5U) << "of a, b and c one each";
    EXPECT_EQ(last.rejected, 3);
    EXPECT_EQ(last.trained, 2);
    EXPECT_EQ(events, "a-b-d<d>d<d>c-") << "what never started does not finish";
    EXPECT_EQ(run.evaluator->evaluate(Candidate{"a|a|a|0.5"}).size(), 1U);
  }
}

TEST_F(EvaluatorTest, ASearchThatConstraintsRejectEndsInTheSameWayAgain) {
  const auto file = folder_ / "s.sqlite";
  const RecordingEvaluator::Options options{.budget = {.evaluations = 4, .rejections = 7}};
  std::string before;
  for (int time = 0; time < 2; ++time) {
    const Run run(file, options);
    run.fake->on_screen_ = [](const Task& task, Evaluation& evaluation) {
      reject_all_but_d(task, evaluation);
      if (!task.candidate.name.starts_with("d|d")) evaluation.status = Status::rejected;
    };
    run.search(pagmo::algorithm(EvoGa({.generations = 1000}, 3)), {.population = 12, .seed = 3});
    EXPECT_EQ(run.evaluator->spent(), "7 candidates in a row rejected by constraints");
    EXPECT_LT(run.evaluator->num_evaluated(), 4);
    EXPECT_EQ(run.fake->measured_, time == 0 ? run.evaluator->num_evaluated() : 0);
    EXPECT_TRUE(time == 0 || comparable(run.store) == before);
    before = comparable(run.store);
  }
}

TEST_F(EvaluatorTest, ATrainingBeginsTheCountOfRejectionsAnew) {
  const Run run(folder_ / "s.sqlite", {.budget = {.rejections = 3}});
  run.fake->on_screen_ = reject_all_but_d;
  EXPECT_EQ(run.ask({{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 3, 0, 0}, {0, 2, 0, 0}, {0, 3, 0, 0}}).size(),
            5U);
  EXPECT_EQ(run.ask({{0, 0, 0, 0}}).size(), 1U);
  EXPECT_EQ(run.evaluator->spent(), "");
  EXPECT_EQ(run.ask({{0, 0, 0, 0}, {0, 3, 0, 0}}).size(), 1U) << "a known one is no training";
  EXPECT_EQ(run.evaluator->spent(), "3 candidates in a row rejected by constraints");
}

TEST_F(EvaluatorTest, TheBudgetOfEvaluationsCutsTheLastBatch) {
  const Run run(folder_ / "s.sqlite", {.workers = 2, .budget = {.evaluations = 3}});
  run.evaluator->evaluate(Candidate{"d|d|d|1"});  // the baseline is not charged
  EXPECT_EQ(run.ask({{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 1, 0, 0}}).size(), 3U);
  EXPECT_EQ(run.evaluator->spent(), "");
  EXPECT_EQ(run.ask({{0, 2, 0, 0}, {0, 0, 0, 0}, {0, 3, 0, 0}, {0, 0, 0, 0}}).size(), 2U);
  EXPECT_EQ(run.evaluator->spent(), "3 evaluations");
  EXPECT_TRUE(run.ask({{0, 0, 0, 0}}).empty());
  EXPECT_EQ(run.evaluator->num_asked(), 5);
  EXPECT_EQ(run.evaluator->num_evaluated(), 3);
  EXPECT_EQ(run.store.asks().size(), 5U);
  EXPECT_EQ(run.fake->measured_, 4);
}

TEST_F(EvaluatorTest, TheBudgetOfAsksCountsKnownOnesToo) {
  const Run run(folder_ / "s.sqlite", {.budget = {.asks = 3}});
  EXPECT_EQ(run.ask({{0, 0, 0, 0}, {0, 0, 0, 0}}).size(), 2U);
  EXPECT_EQ(run.ask({{0, 0, 0, 0}, {0, 0, 0, 0}}).size(), 1U);
  EXPECT_EQ(run.evaluator->spent(), "3 asks");
  EXPECT_EQ(run.evaluator->num_evaluated(), 1);
}

TEST_F(EvaluatorTest, NoTrainingBeginsOnceTheDevicesTimeIsSpent) {
  const Run run(folder_ / "s.sqlite", {.budget = {.train_seconds = 5.0}});  // each takes 2
  const auto first = run.ask({{0, 3, 0, 0}, {0, 2, 0, 0}, {0, 1, 0, 0}, {0, 0, 0, 0}});
  EXPECT_EQ(first.size(), 3U);
  EXPECT_EQ(run.fake->measured_, 3);
  EXPECT_EQ(run.evaluator->spent(), "5 s of training");
  // What was recorded is charged again.
  Run again(folder_ / "t.sqlite", {.budget = {.train_seconds = 5.0}});
  again.store.add(run.store.evaluations());
  EXPECT_EQ(again.ask({{0, 3, 0, 0}, {0, 2, 0, 0}, {0, 1, 0, 0}}).size(), 3U);
  EXPECT_EQ(again.evaluator->spent(), "5 s of training");
  EXPECT_EQ(again.fake->measured_, 0);
}

/// What comes behind an unanswered ask is lost to a search: the asks are trained in their order.
TEST_F(EvaluatorTest, WhatTheEndOfTheBudgetLeavesUnansweredIsNoAsk) {
  const auto file = folder_ / "s.sqlite";
  const std::vector<std::vector<double>> cheapest_first{
      {0, 0, 0, 0}, {0, 1, 0, 0}, {0, 2, 0, 0}, {0, 3, 0, 0}};
  {
    const Run stopped(file, {.budget = {.train_seconds = 5.0}});  // each takes 2
    stopped.fake->on_measure_ = [](int number, const Task&) {
      if (number == 3) throw StopRequested();
    };
    EXPECT_THROW(stopped.ask(cheapest_first), StopRequested);
    EXPECT_EQ(stopped.store.asks().size(), 2U);
  }
  const Run run(file, {.budget = {.train_seconds = 5.0}});
  EXPECT_EQ(run.ask(cheapest_first).size(), 3U);
  EXPECT_EQ(run.store.evaluations().size(), 3U);
  EXPECT_EQ(run.store.asks().size(), 3U);
}

}  // namespace
}  // namespace nas::testing
