#include "table/table_evaluator.hpp"

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/stop.hpp"
#include "evaluation/recording_evaluator.hpp"
#include "prelude.hpp"
#include "search/algorithm.hpp"
#include "search/search.hpp"
#include "small_study.hpp"
#include "table/outcome.hpp"
#include "table/search_pool.hpp"

namespace nas::testing {
namespace {

constexpr std::uint64_t kSeed = 5;

class TableEvaluatorTest : public ::testing::Test {
 protected:
  void TearDown() override { request_stop(false); }

  /// A search by an algorithm that takes the study's objectives.
  /// @param in_flight  asks that are out at once; 1: an algorithm that asks in generations.
  static SearchResult search(const StudyTable& study, const std::shared_ptr<Evaluator>& evaluator,
                             std::int64_t in_flight = 1, std::optional<Fidelity> fidelity = {}) {
    const bool several = study.objectives().objectives.size() > 1;
    const auto& plugin =
        algorithms().at(in_flight == 1 ? (several ? "nsga2" : "evo_ga")
                                       : (several ? "nsga2_async" : "regularized_evolution"));
    const auto algorithm = plugin.make();
    Parameters settings(plugin.description.settings);
    settings.set("population", std::int64_t{12});
    if (in_flight > 1) settings.set("in_flight", in_flight);
    const SearchFacts facts{.num_genes = study.space().num_varying(),
                            .dimension = study.space().bounds().first.size(),
                            .num_objectives = study.objectives().objectives.size(),
                            .num_combinations = study.space().num_combinations()};
    EXPECT_TRUE(!algorithm.fit || algorithm.fit(settings, facts).empty());
    return run_search(study.space(), evaluator, study.objectives(),
                      algorithm.make(settings, facts, kSeed),
                      {.population = 12, .seed = kSeed, .fidelity = std::move(fidelity)});
  }

  template <class Measurement>
  static StudyTable noisy_study(const Table& table) {
    return {table,
            {.space = small_space(),
             .objectives = small_objectives(),
             .mode = ReplayMode::noisy,
             .problem = std::make_shared<Measurement>(table, ReplayMode::noisy, kSeed)}};
  }

  /// The recording evaluator of the same study.
  template <class Measurement>
  static std::shared_ptr<RecordingEvaluator> recorded_by(const StudyTable& study,
                                                         const TableEvaluator::Options& options,
                                                         Store& store) {
    return std::make_shared<RecordingEvaluator>(
        std::make_shared<Measurement>(study.table(), study.mode(), kSeed), store,
        [&study](Objective::Evaluations e) { return study.objectives().judge(e); },
        RecordingEvaluator::Options{.repeated = options.repeated,
                                    .replicates = options.replicates,
                                    .budget = options.budget});
  }
  /// Both evaluators end the same search alike.
  template <class Measurement = TableMeasurement>
  static void expect_equal(const StudyTable& study, const TableEvaluator::Options& options,
                           const std::string& ended_by) {
    const auto lean = std::make_shared<TableEvaluator>(study, kSeed, options);
    const auto found = search(study, lean);
    const auto evaluated = lean->num_evaluated();
    const auto trajectory = lean->take_trajectory();

    const TemporaryFolder folder;
    Store store(folder.path() / "store.sqlite", Store::Mode::write_cheap);
    const auto recording = recorded_by<Measurement>(study, options, store);
    if (options.baseline)
      recording->evaluate(Candidate{study.table().mechanism(*options.baseline)});
    const auto expected = search(study, recording);

    EXPECT_EQ(found.ended_by, expected.ended_by);
    EXPECT_EQ(found.ended_by, ended_by);
    EXPECT_EQ(found.archive.front(), expected.archive.front());
    EXPECT_EQ(evaluated, recording->num_evaluated());
    std::vector<std::int32_t> candidates;
    std::vector<std::int32_t> trained;
    std::vector<double> fitness;
    std::set<std::string> charged;
    for (const auto& ask : store.asks()) {
      const auto first = store.find(ask.evaluations.front()).value();
      candidates.push_back(static_cast<std::int32_t>(study.table().find(first.candidate).value()));
      if (first.status != Status::rejected) {
        charged.insert(ask.evaluations.begin(), ask.evaluations.end());
      }
      trained.push_back(static_cast<std::int32_t>(charged.size()));
      fitness.insert(fitness.end(), ask.fitness.begin(), ask.fitness.end());
    }
    EXPECT_EQ(trajectory.candidates, candidates);
    EXPECT_EQ(trajectory.trained, trained);
    EXPECT_EQ(trajectory.fitness, fitness);
  }
};

TEST_F(TableEvaluatorTest, AnswersAsTheRecordingEvaluatorDoes) {
  expect_equal(small_study(), {}, "the algorithm's end");
  expect_equal(small_study(ReplayMode::paired), {}, "the algorithm's end");
  expect_equal(small_study(ReplayMode::noisy, true), {}, "the algorithm's end");
}

TEST_F(TableEvaluatorTest, ADrawAnswersInPlaceOfTheRecordedTable) {
  const auto study = small_study(ReplayMode::noisy, false, small_table(unequal_cells()));
  const Draw draw{.seed = 7, .number = 3};
  const auto asked = [&](std::optional<Draw> by) {
    TableEvaluator evaluator(study, kSeed, {.replicates = 3, .draw = by});
    RandomEngine random(3);
    for (int i = 0; i < 60; ++i) (void)evaluator.ask({study.space().draw(random)});
    return evaluator.take_trajectory();
  };
  const auto trajectory = asked(draw);
  EXPECT_EQ(asked(draw), trajectory);
  const auto recorded = asked(std::nullopt);
  EXPECT_EQ(recorded.candidates, trajectory.candidates);
  std::set<std::int32_t> others;
  for (std::size_t i = 0; i < trajectory.candidates.size(); ++i) {
    const auto mechanism = trajectory.candidates[i];
    auto answering = redrawn_replicates(study.table(), mechanism, draw);
    answering.resize(3);
    EXPECT_NEAR(trajectory.fitness[i], study.judge(mechanism, answering).fitness.front(), 1e-12);
    if (std::abs(trajectory.fitness[i] - recorded.fitness[i]) > 1e-9) others.insert(mechanism);
  }
  EXPECT_TRUE(others.contains(0));
  for (const auto mechanism : others) EXPECT_LT(mechanism, 2) << "all others have three alone";
}

/// As nas-compare makes them, on one table.
TEST_F(TableEvaluatorTest, SearchesAtTheSameTimeFindWhatTheyFindOneByOne) {
  const auto study = small_study();
  const auto found = [&study](int threads) {
    SearchPool pool(
        12,
        [&study](std::size_t number) {
          const auto evaluator = std::make_shared<TableEvaluator>(
              study, kSeed + number, TableEvaluator::Options{.repeated = Repeated::retrain});
          auto result = search(study, evaluator);
          return ComparedSearch{.ended_by = std::move(result.ended_by),
                                .trajectory = evaluator->take_trajectory()};
        },
        threads);
    std::vector<Trajectory> trajectories;
    for (auto some = pool.take(); !some.empty(); some = pool.take()) {
      for (auto& one : some) trajectories.push_back(std::move(one.trajectory));
    }
    return trajectories;
  };
  const auto alone = found(1);
  ASSERT_EQ(alone.size(), 12U);
  EXPECT_NE(alone[0], alone[1]) << "seeds differ";
  EXPECT_EQ(found(4), alone);
}

/// The trajectory is in the order of tells, the record in that of asks.
TEST_F(TableEvaluatorTest, AnswersAlikeWithSeveralAsksOut) {
  for (const bool several : {false, true}) {
    const auto& study = small_study(ReplayMode::noisy, several);
    for (const auto& options :
         {TableEvaluator::Options{}, TableEvaluator::Options{.budget = {.evaluations = 9}},
          TableEvaluator::Options{.repeated = Repeated::replicate,
          .replicates = 2,
          .budget = {.train_seconds = 900.0}}}) {
      const auto lean = std::make_shared<TableEvaluator>(study, kSeed, options);
      const auto found = search(study, lean, 5);
      const TemporaryFolder folder;
      Store store(folder.path() / "store.sqlite", Store::Mode::write_cheap);
      const auto recording = recorded_by<TableMeasurement>(study, options, store);
      const auto expected = search(study, recording, 5);
      EXPECT_EQ(found.ended_by, expected.ended_by);
      EXPECT_EQ(found.archive.front(), expected.archive.front());
      EXPECT_EQ(lean->num_evaluated(), recording->num_evaluated());
      EXPECT_EQ(lean->num_asked(), std::ssize(store.asks()));
      std::multiset<std::pair<std::int32_t, double>> recorded;
      for (const auto& ask : store.asks()) {
        const auto first = store.find(ask.evaluations.front()).value();
        recorded.emplace(study.table().find(first.candidate).value(), ask.fitness.front());
      }
      const auto trajectory = lean->take_trajectory();
      std::multiset<std::pair<std::int32_t, double>> told;
      for (std::size_t i = 0; i < trajectory.candidates.size(); ++i) {
        told.emplace(trajectory.candidates[i],
                     trajectory.fitness[i * study.objectives().objectives.size()]);
      }
      EXPECT_EQ(told, recorded);
    }
  }
}

/// By rungs, too: asks, answers, steps and the end are those of a run on the table.
TEST_F(TableEvaluatorTest, AnswersAlikeByRungs) {
  const auto table = small_table();
  const StudyTable study(
      table, {.space = small_space(),
              .objectives = small_objectives(),
              .mode = ReplayMode::paired,
              .problem = std::make_shared<TableMeasurement>(table, ReplayMode::paired, kSeed),
              .rungs = {10, 20}});
  for (const auto promote :
       {Promote::asha, Promote::pasha, Promote::successive_halving, Promote::hyperband}) {
    for (const auto& options :
         {TableEvaluator::Options{}, TableEvaluator::Options{.budget = {.train_steps = 300}},
          TableEvaluator::Options{.replicates = 2}}) {
      SCOPED_TRACE(static_cast<int>(promote));
      const Fidelity fidelity{
          .promote = promote, .rungs = {10, 20}, .steps = 40, .replicated = options.replicates > 1};
      const auto in_flight = halves_batches(promote) ? 1 : 3;
      const auto lean = std::make_shared<TableEvaluator>(study, kSeed, options);
      const auto found = search(study, lean, in_flight, fidelity);
      const TemporaryFolder folder;
      Store store(folder.path() / "store.sqlite", Store::Mode::write_cheap);
      const auto recording = recorded_by<TableMeasurement>(study, options, store);
      const auto expected = search(study, recording, in_flight, fidelity);
      EXPECT_EQ(found.ended_by, expected.ended_by);
      EXPECT_EQ(found.archive.front(), expected.archive.front());
      EXPECT_FALSE(found.archive.front().empty());
      EXPECT_EQ(lean->num_evaluated(), recording->num_evaluated());
      EXPECT_EQ(lean->num_asked(), std::ssize(store.asks()));
      std::int64_t steps = 0;
      for (const auto& evaluations : {store.evaluations(), store.partials()}) {
        for (const auto& one : evaluations) {
          if (!one.curve.empty()) steps += one.curve.back().step;
        }
      }
      const auto trajectory = lean->take_trajectory();
      EXPECT_EQ(trajectory.steps.back(), steps) << "each once";
      const auto asks = store.asks();
      EXPECT_EQ(std::count_if(trajectory.fitness.begin(), trajectory.fitness.end(),
                              [](double value) { return std::isnan(value); }) > 0,
                std::any_of(asks.begin(), asks.end(), [](auto& ask) { return ask.until > 0; }));
    }
  }
}

TEST_F(TableEvaluatorTest, AnswersAlikeUnderEveryPolicy) {
  for (const auto repeated : {Repeated::retrain, Repeated::replicate}) {
    expect_equal(small_study(), {.repeated = repeated}, "the algorithm's end");
    expect_equal(small_study(ReplayMode::noisy, true), {.repeated = repeated, .replicates = 2},
                 "the algorithm's end");
  }
  expect_equal(small_study(), {.replicates = 2}, "the algorithm's end");
}

TEST_F(TableEvaluatorTest, AnswersAlikeUnderEveryBudget) {
  expect_equal(small_study(), {.budget = {.evaluations = 9}}, "9 evaluations");
  expect_equal(small_study(), {.budget = {.asks = 30}}, "30 asks");
  expect_equal(small_study(), {.budget = {.train_steps = 380}}, "380 training steps");
  expect_equal(small_study(), {.repeated = Repeated::retrain, .budget = {.train_seconds = 1000.0}},
               "16 min 40 s of training");
  expect_equal(small_study(),
               {.repeated = Repeated::replicate,
                .replicates = 2,
                .budget = {.evaluations = 41, .train_seconds = 5000.0}},
               "41 evaluations");
}

/// What the baseline trained before the search is there wherever the time of training ends.
TEST_F(TableEvaluatorTest, AnswersAlikeWithABaselineAndABudgetOfTrainingTime) {
  for (const std::int64_t baseline : {0, 5, 11}) {
    SCOPED_TRACE(baseline);
    expect_equal(small_study(), {.budget = {.train_seconds = 100.0}, .baseline = baseline},
                 "1 min 40 s of training");
    expect_equal(small_study(),
                 {.repeated = Repeated::retrain,
                  .replicates = 2,
                  .budget = {.train_seconds = 500.0},
                  .baseline = baseline},
                 "8 min 20 s of training");
  }
}

/// Where the time of training ends within a batch, the first of it are there.
TEST_F(TableEvaluatorTest, AnswersAlikeWhereTrainingRunsAreExpectedToDiffer) {
  const auto table = small_table();
  const auto study = noisy_study<UnequalMeasurement>(table);
  for (int seconds = 60; seconds <= 240; seconds += 30) {
    SCOPED_TRACE(seconds);
    expect_equal<UnequalMeasurement>(study,
                                     {.budget = {.train_seconds = static_cast<double>(seconds)}},
                                     human_duration(seconds) + " of training");
  }
  expect_equal<UnequalMeasurement>(study,
                                   {.repeated = Repeated::retrain,
                                    .replicates = 2,
                                    .budget = {.train_seconds = 500.0},
                                    .baseline = 3},
                                   "8 min 20 s of training");
}

/// A rejection is there, too, and an ask before the first training that is not is answered.
TEST_F(TableEvaluatorTest, AnswersAlikeWhereCandidatesAreRejectedUntrained) {
  const auto table = small_table();
  const auto study = noisy_study<ScreeningMeasurement>(table);
  for (int seconds = 30; seconds <= 120; seconds += 30) {
    SCOPED_TRACE(seconds);
    expect_equal<ScreeningMeasurement>(study,
                                       {.budget = {.train_seconds = static_cast<double>(seconds)}},
                                       human_duration(seconds) + " of training");
  }
  for (const auto repeated : {Repeated::reuse, Repeated::retrain, Repeated::replicate}) {
    SCOPED_TRACE(static_cast<int>(repeated));
    expect_equal<ScreeningMeasurement>(
        study, {.repeated = repeated, .replicates = 2, .budget = {.evaluations = 6}},
        "6 evaluations");
    expect_equal<ScreeningMeasurement>(study, {.repeated = repeated, .budget = {.rejections = 2}},
                                       "2 candidates in a row rejected by constraints");
  }
}

TEST_F(TableEvaluatorTest, ChargesWhatIsTrained) {
  const auto study = small_study();
  TableEvaluator evaluator(study, kSeed, {.replicates = 2});
  RandomEngine random(1);
  const auto genotype = study.space().draw(random);
  ASSERT_EQ(evaluator.ask({genotype, genotype}).size(), 2U);
  EXPECT_EQ(evaluator.num_evaluated(), 2);
  EXPECT_EQ(evaluator.num_asked(), 2);
  const auto mechanism = study.mechanism(genotype);
  const Replay replay(study.table(), ReplayMode::noisy, kSeed);
  const double seconds = study.cell(mechanism, replay.replicate(mechanism, 0)).seconds +
                         study.cell(mechanism, replay.replicate(mechanism, 1)).seconds;
  const auto trajectory = evaluator.take_trajectory();
  EXPECT_THAT(trajectory.trained, ElementsAre(2, 2));
  EXPECT_THAT(trajectory.seconds, ElementsAre(seconds, seconds));
}

TEST_F(TableEvaluatorTest, WhatComesBeyondTheReplicatesMeetsOneAgain) {
  const auto study = small_study();  // of three replicates
  RandomEngine random(1);
  const auto genotype = study.space().draw(random);
  TableEvaluator evaluator(study, kSeed, {.repeated = Repeated::retrain});
  const auto answers = evaluator.ask({genotype, genotype, genotype, genotype});
  EXPECT_EQ(num_recycled(evaluator.take_trajectory(), study.table().num_replicates()), 1);
  EXPECT_EQ(answers[3].fitness, answers[0].fitness);
  EXPECT_NE(answers[1].fitness, answers[0].fitness);
}

TEST_F(TableEvaluatorTest, StopsWhenItIsAskedTo) {
  const auto study = small_study();
  TableEvaluator evaluator(study, kSeed, {});
  request_stop();
  EXPECT_THROW(evaluator.ask({}), StopRequested);
}

}  // namespace
}  // namespace nas::testing
