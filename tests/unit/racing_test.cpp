#include "evaluation/racing.hpp"

#include <numbers>
#include <optional>

#include <pagmo/algorithms/nsga2.hpp>

#include "core/fault.hpp"
#include "prelude.hpp"
#include "unit/evaluator_fixture.hpp"

namespace nas::testing {
namespace {

using ::testing::Each;
using ::testing::Ge;
using ::testing::Le;

/// @param replicates  an empty one has failed.
Racer racer(const Points& replicates) {
  Racer made{.replicates = replicates};
  double n = 0.0;
  for (const auto& point : replicates) {
    if (point.empty()) continue;
    made.mean.resize(point.size());
    for (std::size_t i = 0; i < point.size(); ++i) made.mean[i] += point[i];
    n += 1.0;
  }
  for (auto& value : made.mean) value /= n;
  return made;
}

/// Of one objective.
Racer alone(const std::vector<double>& values) {
  Points points;
  for (const double value : values) points.push_back({value});
  return racer(points);
}

TEST(Racing, ElitesAreTheBestMeansOrTheFront) {
  const std::vector<Racer> one{alone({3.0, 3.0}), alone({9.0}), alone({1.0, 2.0}), racer({{}, {}}),
                               alone({2.0})};
  EXPECT_THAT(elites(one, {.elites = 2}), ElementsAre(2, 4));
  EXPECT_THAT(elites(one, {.elites = 9}), ElementsAre(2, 4, 0, 1)) << "a failure never";
  const std::vector<Racer> several{racer({{1.0, 9.0}}), racer({{5.0, 5.0}}), racer({{6.0, 6.0}}),
                                   racer({{5.0, 5.0}})};
  EXPECT_THAT(elites(several, {.elites = 1}), ElementsAre(0, 1));
  EXPECT_THAT(elites({}, {}), IsEmpty());
}

TEST(Racing, OneReplicateDecidesNothing) {
  const std::vector<Racer> racers{alone({1.0}), alone({1e9}), alone({5.0})};
  EXPECT_THAT(undecided(racers, {0, 1, 2}, {.elites = 1}), ElementsAre(0, 1, 2));
}

TEST(Racing, PairsTellWhatTheNoiseThatAllShareHides) {
  // The seeds move both by 10, the candidates differ by about 1.
  const std::vector<Racer> racers{alone({10.0, 20.0, 30.0, 25.0}), alone({11.1, 20.9, 31.0, 26.0}),
                                  alone({9.0, 22.0, 31.0, 25.5})};
  EXPECT_THAT(undecided(racers, {0, 1, 2}, {.elites = 1}), ElementsAre(0, 2));
  EXPECT_THAT(undecided(racers, {0, 1, 2}, {.elites = 1, .confidence = 0.9999}),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(undecided(racers, {0, 1, 2}, {.elites = 2}), ElementsAre(0, 2, 1))
      << "not worse than the second";
}

TEST(Racing, OnlyReplicatesThatBothHaveArePairs) {
  auto behind = racer({{11.1}, {}, {30.9}, {26.0}, {}, {0.0}});
  const auto leader = racer({{10.0}, {20.0}, {30.0}, {25.0}, {40.0}});
  EXPECT_THAT(undecided({leader, behind}, {0, 1}, {.replicates = 9, .elites = 1}),
              ElementsAre(1, 0))
      << "the mean leads, whatever the pairs say";
  behind.mean = {40.0};
  EXPECT_THAT(undecided({leader, behind}, {0, 1}, {.replicates = 9, .elites = 1}), ElementsAre(0));
}

TEST(Racing, OpenAreOnlyEntrantsWithFewerThanTheMost) {
  const std::vector<Racer> racers{alone({1.0, 1.1, 1.2}), alone({2.0}), alone({1.5}),
                                  racer({{}, {}})};
  EXPECT_THAT(undecided(racers, {1, 3, 1, 0}, {.replicates = 3, .elites = 1}), ElementsAre(1))
      << "0 has the most, 2 was not asked for, 3 has failed, 1 counts once";
}

TEST(Racing, SeveralObjectivesMustAllSpeakAgainstACandidate) {
  // The second objective does not depend on the replicate.
  const auto leader = racer({{10.0, 5.0}, {20.0, 5.0}, {30.0, 5.0}});
  const auto alike = racer({{11.1, 5.0}, {20.9, 5.0}, {31.0, 5.0}});
  const auto cheaper = racer({{11.1, 4.9}, {20.9, 4.9}, {31.0, 4.9}});
  const auto dearer = racer({{11.1, 5.1}, {20.9, 5.1}, {31.0, 5.1}});
  const auto unclear = racer({{8.0, 5.1}, {25.0, 5.1}, {31.0, 5.1}});
  const auto equal = leader;
  const Racing racing{.replicates = 9};
  EXPECT_THAT(
      undecided({leader, alike, cheaper, dearer, unclear, equal}, {0, 1, 2, 3, 4, 5}, racing),
      ElementsAre(0, 2, 4, 5));
}

double normal(std::int64_t run, std::int64_t replicate, const std::string& name) {
  RandomEngine random(derive_seed(static_cast<std::uint64_t>(run), replicate, "normal", name));
  const double radius = std::sqrt(-2.0 * std::log(1.0 - random.uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * random.uniform());
}

/// Twelve candidates "a|a|a|0" ... "d|c|a|0" of one batch, the first the best.
std::vector<std::vector<double>> twelve() {
  std::vector<std::vector<double>> vectors;
  for (int i = 0; i < 12; ++i) vectors.push_back({0, std::floor(i / 3), std::fmod(i, 3), 0});
  return vectors;
}
double rank_of_twelve(const std::string& candidate) {
  return 3.0 * (candidate[0] - 'a') + (candidate[2] - 'a');
}

class RacingTest : public EvaluatorTest {
 protected:
  /// A run with seeds that move a candidate by several steps of the number gene.
  struct NoisyRun : Run {
    NoisyRun(const fs::path& file, RecordingEvaluator::Options options)
        : Run(file, std::move(options)) {
      fake->value_ = [](const std::string& candidate, std::int64_t replicate) {
        return FakeMeasurement::value(candidate, replicate) + 0.7 * normal(1, replicate, "all") +
               0.5 * normal(1, replicate, candidate);
      };
    }
  };
  static RecordingEvaluator::Options racing(int workers = 1) {
    return {.workers = workers, .racing = Racing{.replicates = 6, .elites = 2}};
  }
  std::string raced(int workers = 1) {
    const NoisyRun run(folder_ / ("raced" + std::to_string(workers) + ".sqlite"), racing(workers));
    run.search();
    return comparable(run.store);
  }
  static std::map<std::string, int> replicates(const Store& store) {
    std::map<std::string, int> counts;
    for (const auto& evaluation : store.evaluations()) ++counts[evaluation.candidate];
    return counts;
  }
};

TEST_F(RacingTest, ALuckyBadCandidateIsDemoted) {
  const auto value = [](const std::string& candidate, std::int64_t replicate) {
    if (candidate[0] == 'd') return replicate == 0 ? 1.0 : 20.0;
    return 10.0 + candidate[0] - 'a' + 0.1 * normal(1, replicate, candidate);
  };
  const std::vector<std::vector<double>> batch{
      {0, 0, 0, 0}, {0, 1, 0, 0}, {0, 2, 0, 0}, {0, 3, 0, 0}};
  const Run single(folder_ / "single.sqlite");
  single.fake->value_ = value;
  EXPECT_EQ(single.ask(batch)[3], 1.0) << "leads for ever";
  const Run run(folder_ / "s.sqlite", {.racing = Racing{.replicates = 6, .elites = 1}});
  run.fake->value_ = value;
  const auto answers = run.ask(batch);
  EXPECT_GT(answers[3], 11.0);
  EXPECT_NEAR(answers[0], 10.0, 0.2);
  EXPECT_EQ(run.store.asks()[0].evaluations.size(), 6U) << "the best has the most";
  EXPECT_EQ(run.store.asks()[0].fitness.front(), answers[0]);
}

TEST_F(RacingTest, ReplicatesGoToTheCloseOnes) {
  const Run run(folder_ / "s.sqlite", {.racing = Racing{.replicates = 12, .elites = 1}});
  run.fake->value_ = [](const std::string& candidate, std::int64_t replicate) {
    const double far = rank_of_twelve(candidate) < 3 ? 0.01 : 10.0;
    return far * rank_of_twelve(candidate) + normal(1, replicate, candidate);
  };
  run.ask(twelve());
  for (const auto& [candidate, count] : replicates(run.store)) {
    if (rank_of_twelve(candidate) < 3) {
      EXPECT_EQ(count, 12) << candidate;
    } else {
      EXPECT_THAT(count, AllOf(Ge(2), Le(5))) << candidate;
    }
  }
}

TEST_F(RacingTest, LaterBatchesRaceAgainstTheElitesWhichStayAsTheyAre) {
  const NoisyRun run(folder_ / "s.sqlite", racing());
  const auto first = run.ask({{0.5, 3, 3, 2}, {0.5, 3, 3, 1}});
  EXPECT_EQ(run.fake->measured_, 12) << "two candidates, two elites";
  run.ask({{0, 0, 0, 0}, {0.5, 3, 3, 2}});
  EXPECT_LT(replicates(run.store)["a|a|a|0"], 6);
  EXPECT_EQ(run.ask({{0.5, 3, 3, 2}}), std::vector<double>{first[0]});
  EXPECT_EQ(run.store.asks()[4].evaluations, run.store.asks()[0].evaluations);
}

TEST_F(RacingTest, FailuresAreNotRaced) {
  const NoisyRun run(folder_ / "s.sqlite", racing());
  run.fake->on_measure_ = [](int, const Task& task) {
    if (task.candidate.name[0] == 'a') throw CandidateFailure("broken");
    if (task.candidate.name[0] == 'b' && task.replicate % 2 == 1)
      throw CandidateFailure("sometimes");
  };
  EXPECT_EQ(run.ask({{0, 0, 0, 0}, {0, 1, 0, 0}})[0], 1000.0);
  auto counts = replicates(run.store);
  EXPECT_EQ(counts["a|a|a|0"], 1);
  EXPECT_EQ(counts["b|a|a|0"], 2) << "the second one failed";
}

TEST_F(RacingTest, BaselineHasTheMostReplicates) {
  const NoisyRun run(folder_ / "s.sqlite", racing());
  EXPECT_EQ(run.evaluator->evaluate(Candidate{"a|b|c|0.1"}).size(), 6U);
  EXPECT_EQ(run.evaluator->num_evaluated(), 0);
}

TEST_F(RacingTest, NoMoreThanTheBudgetOfEvaluations) {
  for (const std::int64_t budget : {1, 2, 3, 13, 24, 25, 31, 39, 40, 60}) {
    auto options = racing(2);
    options.budget.evaluations = budget;
    const NoisyRun run(folder_ / ("b" + std::to_string(budget) + ".sqlite"), options);
    const auto answers = run.ask(twelve());
    EXPECT_LE(run.evaluator->num_evaluated(), budget);
    EXPECT_EQ(run.evaluator->num_evaluated(), run.fake->measured_);
    EXPECT_EQ(answers.size(), static_cast<std::size_t>(std::min<std::int64_t>(12, budget / 2)));
    for (const auto& [candidate, count] : replicates(run.store)) EXPECT_GE(count, 2) << candidate;
    const bool enough = run.evaluator->spent().empty();
    EXPECT_EQ(enough, budget >= 40) << budget;
    EXPECT_EQ(run.evaluator->spent(),
              enough ? std::string() : std::to_string(budget) + " evaluations");
  }
}

TEST_F(RacingTest, ALargerBudgetContinuesARunThatWasCut) {
  const NoisyRun whole(folder_ / "whole.sqlite", racing());
  whole.search();
  const auto file = folder_ / "continued.sqlite";
  for (const std::int64_t budget : {5, 17, 40, 41, 77, 0}) {
    auto options = racing();
    options.budget.evaluations = budget;
    const NoisyRun run(file, options);
    run.search();
  }
  const Store continued(file);
  const auto asks = continued.asks();
  const auto expected = whole.store.asks();
  ASSERT_EQ(asks.size(), expected.size());
  for (std::size_t i = 0; i < asks.size(); ++i) {
    EXPECT_EQ(asks[i].evaluations, expected[i].evaluations) << i;
    EXPECT_EQ(asks[i].fitness, expected[i].fitness) << i;
  }
}

TEST_F(RacingTest, NoReplicateBeginsOnceTheDevicesTimeIsSpent) {
  auto options = racing();
  options.budget.train_seconds = 31.0;  // each takes 2
  const NoisyRun run(folder_ / "s.sqlite", options);
  EXPECT_EQ(run.ask(twelve()).size(), 12U);
  EXPECT_EQ(run.fake->measured_, 16);
  EXPECT_EQ(run.evaluator->num_evaluated(), 16);
  EXPECT_EQ(run.evaluator->spent(), "31 s of training");
  std::size_t recorded = 0;
  for (const auto& ask : run.store.asks()) recorded += ask.evaluations.size();
  EXPECT_EQ(recorded, 16U);
}

TEST_F(RacingTest, NumberOfWorkersChangesNothing) {
  const auto one = raced(1);
  EXPECT_EQ(one, raced(4));
  EXPECT_GT(std::count(one.begin(), one.end(), '\n'), 200);
}

TEST_F(RacingTest, TheBestOfASearchHaveTheMostReplicates) {
  const NoisyRun run(folder_ / "s.sqlite", racing());
  const auto result = run.search(pagmo::algorithm(EvoGa({}, 1)), {.population = 12, .seed = 1});
  std::map<double, std::size_t> by_mean;
  std::int64_t fewest = 6;
  for (const auto& ask : run.store.asks()) {
    by_mean[ask.fitness.front()] = ask.evaluations.size();
    fewest = std::min(fewest, static_cast<std::int64_t>(ask.evaluations.size()));
  }
  EXPECT_EQ(by_mean.begin()->second, 6U);
  EXPECT_EQ(std::next(by_mean.begin())->second, 6U);
  EXPECT_LT(fewest, 6) << "and not all have";
  EXPECT_DOUBLE_EQ(100 * result.archive.front().front().second.front(), by_mean.begin()->first);
  EXPECT_EQ(run.evaluator->num_asked(), 93) << "races ask for nothing";
}

TEST_F(RacingTest, SoHasTheFrontOfSeveralObjectives) {
  NoisyRun run(folder_ / "s.sqlite", {});
  run.objectives = fake_objectives(/*several=*/true);
  run.evaluator = std::make_shared<RecordingEvaluator>(
      run.fake, run.store, [&run](Objective::Evaluations e) { return run.objectives.judge(e); },
      racing(3));
  const auto result =
      run.search(pagmo::algorithm(pagmo::nsga2(5, 0.9, 10, 0.2, 20, 3)), {.population = 12});
  const auto counts = replicates(run.store);
  std::set<std::string> front;
  for (const auto& [candidate, point] : result.archive.front()) front.insert(candidate);
  EXPECT_GT(front.size(), 3U);
  int fewest = 6;
  for (const auto& [candidate, count] : counts) {
    EXPECT_TRUE(count == 6 || !front.contains(candidate)) << candidate << " has " << count;
    fewest = std::min(fewest, count);
  }
  EXPECT_LT(fewest, 6);
}

}  // namespace
}  // namespace nas::testing
