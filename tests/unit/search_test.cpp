#include "search/search.hpp"

#include <pagmo/algorithms/nsga2.hpp>
#include <pagmo/algorithms/null_algorithm.hpp>
#include <pagmo/population.hpp>
#include <pagmo/problem.hpp>

#include "algorithms/evo_ga.hpp"
#include "core/fault.hpp"
#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "search/algorithm.hpp"
#include "search/synthetic.hpp"
#include "unit/fake_measurement.hpp"

namespace nas::testing {
namespace {

using Vector = std::vector<double>;

/// Asks for the same decision vectors as often as it is told, one batch each, and notes the answers.
struct Repeater {
  Vector batch;
  int times = 1;
  std::shared_ptr<std::vector<Vector>> seen = std::make_shared<std::vector<Vector>>();

  [[nodiscard]] pagmo::population evolve(const pagmo::population& population) const {
    for (int i = 0; i < times; ++i) seen->push_back(population.get_problem().batch_fitness(batch));
    return population;
  }
  template <class Archive>
  void serialize(Archive& /*archive*/, unsigned /*version*/) {}
};

class SearchTest : public ::testing::Test {
 protected:
  SearchResult search(const pagmo::algorithm& algorithm, SearchSettings settings,
                      RecordingEvaluator::Options options = {}) {
    evaluator_ = std::make_shared<RecordingEvaluator>(
        fake_, store_, [this](Objective::Evaluations e) { return objectives_.judge(e); },
        std::move(options));
    settings.on_indicator = [this](const Indicator& indicator) {
      indicators_.push_back(indicator);
    };
    return run_search(FakeMeasurement::space(), evaluator_, objectives_, algorithm, settings);
  }

  TemporaryFolder folder_;
  Store store_{folder_.path() / "store.sqlite", Store::Mode::write_cheap};
  std::shared_ptr<FakeMeasurement> fake_ = std::make_shared<FakeMeasurement>();
  ObjectiveSet objectives_ = fake_objectives();
  std::shared_ptr<Evaluator> evaluator_;
  std::vector<Indicator> indicators_;
};

TEST_F(SearchTest, OneObjectiveIsSeenInItsOwnUnit) {
  const Repeater repeater{.batch = {0.5, 0, 0, 0}};
  search(pagmo::algorithm(repeater), {.population = 1});
  EXPECT_THAT(*repeater.seen, ElementsAre(ElementsAre(FakeMeasurement::value("a|a|a|0.5", 0))));
}

TEST_F(SearchTest, SeveralObjectivesAreScaledAndClonesAreSlightlyWorse) {
  objectives_ = fake_objectives(/*several=*/true);
  const Repeater repeater{.batch = {0.5, 1, 1, 1}, .times = 3};
  search(pagmo::algorithm(repeater), {.population = 1});
  ASSERT_EQ(repeater.seen->size(), 3U);
  const auto& first = repeater.seen->front();
  EXPECT_DOUBLE_EQ(first[0], FakeMeasurement::value("b|b|b|0.5", 0) / 100);
  EXPECT_DOUBLE_EQ(first[1], 3.0 / 8);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_LT((*repeater.seen)[0][i], (*repeater.seen)[1][i]);
    EXPECT_LT((*repeater.seen)[1][i], (*repeater.seen)[2][i]);
    EXPECT_NEAR((*repeater.seen)[2][i], first[i], 1e-8);
  }
  const auto asks = store_.asks();
  EXPECT_EQ(asks[1].fitness, asks[3].fitness) << "the record holds what was measured";
}

TEST_F(SearchTest, DecompositionIsPagmosOverTheScaledObjectives) {
  objectives_ = fake_objectives(true);
  const Repeater weighted{.batch = {0.5, 1, 1, 1}};
  const auto result =
      search(pagmo::algorithm(weighted),
             {.population = 1,
              .decomposition = Decomposition{.method = "weighted", .weights = {0.75, 0.25}}});
  const double value = FakeMeasurement::value("b|b|b|0.5", 0) / 100;
  EXPECT_DOUBLE_EQ(weighted.seen->front().front(), 0.75 * value + 0.25 * 3 / 8);
  EXPECT_EQ(result.archive.front().front().second.size(), 2U) << "the archive keeps them apart";
  EXPECT_TRUE(result.last_population.empty());
}

TEST_F(SearchTest, TchebycheffIsBetterBeyondTheBestOfARange) {
  objectives_ = fake_objectives(true);
  const double value = FakeMeasurement::value("b|b|b|0.5", 0);
  objectives_.objectives[0].range = Range{.best = value + 10.0, .worst = value + 20.0};
  objectives_.objectives[1].range = Range{.best = 4.0, .worst = 8.0};
  // All values are better than the first range's best by half of the range and more; the letters
  // are at -1/4, -1 and 1 of the second.
  const Repeater repeater{.batch = {0.5, 1, 1, 1, 0.5, 0, 0, 0, 0.5, 3, 3, 2}};
  search(pagmo::algorithm(repeater),
         {.population = 1,
          .decomposition = Decomposition{.method = "tchebycheff", .weights = {0.75, 0.25}}});
  EXPECT_THAT(repeater.seen->front(), ElementsAre(-0.0625, -0.25, 0.25));
}

TEST_F(SearchTest, FailuresAreFarBeyondTheWorst) {
  objectives_ = fake_objectives(true);
  fake_->on_measure_ = [](int, const Task&) { throw CandidateFailure("broken"); };
  const Repeater repeater{.batch = {0.5, 1, 1, 1}};
  const auto result = search(pagmo::algorithm(repeater), {.population = 1});
  EXPECT_THAT(repeater.seen->front(), ElementsAre(10.0, 10.0));
  EXPECT_EQ(result.archive.size(), 0U);
  EXPECT_TRUE(indicators_.empty());
}

TEST_F(SearchTest, StagnationEndsIt) {
  const Repeater repeater{.batch = {0.5, 3, 3, 2, 0.5, 0, 0, 0}, .times = 100};
  const auto result = search(pagmo::algorithm(repeater), {.population = 3, .stagnation = 20});
  EXPECT_EQ(result.ended_by, "no progress in 20 asks");
  EXPECT_EQ(evaluator_->num_asked(), 3 + 2 + 20 - 1 + 1) << "the best came with ask 5";
}

TEST_F(SearchTest, WhatMeansTakeBackIsNoProgressWhenItComesAgain) {
  // Each replicate is another number: the mean of the one candidate goes up and down.
  const Repeater repeater{.batch = {0.5, 0, 0, 0, 0.5, 0, 0, 0, 0.5, 1, 1, 1}, .times = 200};
  const auto result = search(pagmo::algorithm(repeater),
                             {.population = 3, .mean_of_answers = true, .stagnation = 60},
                             {.repeated = Repeated::retrain});
  EXPECT_EQ(result.ended_by, "no progress in 60 asks");
  double best = std::numeric_limits<double>::infinity();
  std::int64_t since = 0;
  std::map<std::string, std::pair<double, int>> sums;
  std::int64_t asked = 0;
  for (const auto& ask : store_.asks()) {
    auto& [sum, n] = sums[ask.genotype];
    sum += ask.fitness.front();
    ++n;
    ++asked;
    double now = std::numeric_limits<double>::infinity();
    for (const auto& [name, mean] : sums) now = std::min(now, mean.first / mean.second);
    if (now < best - 1e-12) since = asked;
    best = std::min(best, now);
  }
  EXPECT_LE(asked - since, 63) << "a batch is looked at as a whole";
  EXPECT_GE(asked - since, 60);
}

TEST_F(SearchTest, BeforeTheRangesWhatEntersTheFrontIsProgress) {
  objectives_ = fake_objectives(/*several=*/true);
  objectives_.objectives[0].range = Range{.best = -2e6, .worst = -1e6};
  const Repeater repeater{.batch = {0.5, 3, 3, 2, 0.5, 0, 0, 0}, .times = 100};
  const auto result = search(pagmo::algorithm(repeater), {.population = 3, .stagnation = 20});
  EXPECT_EQ(result.ended_by, "no progress in 20 asks");
}

TEST_F(SearchTest, ATargetEndsIt) {
  const double best = FakeMeasurement::value("d|d|c|0.5", 0);
  const Repeater repeater{.batch = {0.5, 3, 3, 2}, .times = 100};
  const auto result = search(pagmo::algorithm(repeater), {.population = 3, .target = best + 0.01});
  EXPECT_EQ(evaluator_->num_asked(), 4);
  EXPECT_EQ(result.ended_by.substr(0, 7), "target ");
}

TEST_F(SearchTest, AMaximisedObjectiveHasItsOwnSign) {
  objectives_.objectives[0].maximise = true;
  objectives_.objectives[0].range = Range{.best = 100.0, .worst = 0.0};
  const Repeater repeater{.batch = {0, 0, 0, 0}, .times = 100};
  const double value = FakeMeasurement::value("a|a|a|0", 0);
  const auto result = search(pagmo::algorithm(repeater), {.population = 1, .target = value - 0.01});
  EXPECT_EQ(result.ended_by.substr(0, 7), "target ");
  EXPECT_DOUBLE_EQ(indicators_.back().value, value) << "in its own sense";
  EXPECT_DOUBLE_EQ(store_.asks().back().fitness.front(), -value) << "in minimisation form";
}

TEST_F(SearchTest, IndicatorsComeOnceAPopulation) {
  objectives_ = fake_objectives(true);
  search(pagmo::algorithm(pagmo::nsga2(4, 0.9, 10, 0.3, 50, 3)),
         {.population = 8, .seed = 3, .indicator_interval = 8});
  ASSERT_EQ(indicators_.size(), 5U);
  EXPECT_EQ(indicators_[0].asked, 8);
  EXPECT_EQ(indicators_[4].asked, 40);
  EXPECT_GT(indicators_[0].value, 0.0);
  EXPECT_LT(indicators_[4].value, 1.21);
}

TEST_F(SearchTest, TheLastIndicatorIsThatOfTheEnd) {
  search(pagmo::algorithm(EvoGa({}, 1)), {.population = 12, .seed = 1, .indicator_interval = 12},
         {.budget = {.asks = 30}});
  EXPECT_EQ(indicators_.back().asked, 30);
}

TEST_F(SearchTest, AReplicateThatFailsLaterTakesTheCandidateOut) {
  fake_->on_measure_ = [](int, const Task& task) {
    if (task.candidate.name[0] == 'd' && task.replicate == 1) throw CandidateFailure("diverged");
  };
  const Repeater repeater{.batch = {0.5, 3, 3, 2, 0.5, 0, 0, 0}, .times = 2};
  const auto front_under = [&](bool mean_of_answers, Repeated repeated) {
    const TemporaryFolder folder;
    Store store(folder.path() / "store.sqlite", Store::Mode::write_cheap);
    const auto evaluator = std::make_shared<RecordingEvaluator>(
        fake_, store, [this](Objective::Evaluations e) { return objectives_.judge(e); },
        RecordingEvaluator::Options{.repeated = repeated});
    return run_search(FakeMeasurement::space(), evaluator, objectives_, pagmo::algorithm(repeater),
                      {.population = 1, .seed = 2, .mean_of_answers = mean_of_answers})
        .archive.front();
  };
  EXPECT_NE(front_under(false, Repeated::replicate).front().first, "d|d|c|0.5");
  EXPECT_EQ(front_under(true, Repeated::retrain).front().first, "d|d|c|0.5")
      << "each answer stands alone";
  EXPECT_EQ(front_under(false, Repeated::reuse).front().first, "d|d|c|0.5");
}

TEST_F(SearchTest, WhatWasStoppedEarlyIsNeverTheBest) {
  // A measurement whose best candidate is stopped.
  struct Stopping : FakeMeasurement {
    void measure(const Task& task, Evaluation& evaluation) override {
      FakeMeasurement::measure(task, evaluation);
      if (task.candidate.name[0] == 'd') evaluation.status = Status::stopped_early;
    }
  };
  fake_ = std::make_shared<Stopping>();
  const Repeater repeater{.batch = {0.5, 3, 3, 2, 0.5, 0, 0, 0}};
  const auto result = search(pagmo::algorithm(repeater), {.population = 1, .seed = 2});
  ASSERT_EQ(result.archive.front().size(), 1U);
  EXPECT_NE(result.archive.front().front().first[0], 'd');
  EXPECT_LT(repeater.seen->front().front(), repeater.seen->front().back())
      << "the algorithm sees what it scored";
}

TEST_F(SearchTest, EncodingsShareTheirInitialPopulation) {
  Texts genotypes[3];
  for (const auto encoding : {Encoding::integers, Encoding::relaxed, Encoding::scores}) {
    const TemporaryFolder folder;
    Store store(folder.path() / "store.sqlite", Store::Mode::write_cheap);
    const auto evaluator = std::make_shared<RecordingEvaluator>(
        fake_, store, [this](Objective::Evaluations e) { return objectives_.judge(e); },
        RecordingEvaluator::Options{});
    run_search(FakeMeasurement::space(), evaluator, objectives_,
               pagmo::algorithm(pagmo::null_algorithm()),
               {.population = 20, .seed = 9, .encoding = encoding});
    for (const auto& ask : store.asks()) {
      genotypes[static_cast<int>(encoding)].push_back(ask.genotype);
    }
  }
  EXPECT_EQ(genotypes[0].size(), 20U);
  EXPECT_EQ(genotypes[0], genotypes[1]);
  EXPECT_EQ(genotypes[0], genotypes[2]);
}

TEST(Synthetic, CandidatesReadBackExactly) {
  struct Sum {
    [[nodiscard]] Vector fitness(const Vector& x) const { return {x[0] + x[1], x[0]}; }
    [[nodiscard]] std::pair<Vector, Vector> get_bounds() const { return {{-1, 0}, {1, 5}}; }
    [[nodiscard]] static std::size_t get_nobj() { return 2; }
  };
  const auto kind = synthetic([](const Parameters&) { return pagmo::problem(Sum()); });
  const auto space = kind.space({});
  EXPECT_EQ(space.genes()[0].name, "x1");
  EXPECT_EQ(space.genes()[1].max, 5.0);
  EXPECT_EQ(kind.objectives({}).size(), 2U);
  ProblemInputs inputs;
  const auto problem = kind.make(inputs);
  RandomEngine random(4);
  for (int i = 0; i < 100; ++i) {
    const auto genotype = space.draw(random);
    Evaluation evaluation;
    const auto candidate = problem->canonical(genotype);
    problem->measure({.candidate = candidate, .replicate = 0, .id = "", .identity = {}},
                     evaluation);
    EXPECT_EQ(evaluation.values.at("f1"), genotype.real("x1") + genotype.real("x2"));
    EXPECT_EQ(kind.objectives({})[1].value(evaluation), genotype.real("x1"));
  }
}

}  // namespace
}  // namespace nas::testing
