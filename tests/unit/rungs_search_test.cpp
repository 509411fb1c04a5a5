#include <optional>
#include <random>

#include <pagmo/problem.hpp>

#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "search/algorithm.hpp"
#include "search/conversation.hpp"
#include "search/search.hpp"
#include "search/variation.hpp"
#include "unit/asynchronous_search.hpp"
#include "unit/fake_measurement.hpp"
#include "unit/shuffled_executor.hpp"
#include "unit/simulated_executor.hpp"
#include "unit/stepping_measurement.hpp"

namespace nas::testing {
namespace {

/// Searches by rungs at steps 10 and 20 of 40, on the stepping measurement.
class SearchByRungs : public AsynchronousSearch {
 protected:
  static SearchSettings settings() {
    return {.fidelity = Fidelity{.promote = GetParam().promote, .rungs = {10, 20}, .steps = 40}};
  }
  static std::shared_ptr<SteppingMeasurement> stepping() {
    auto measurement = std::make_shared<SteppingMeasurement>();
    measurement->fails_ = 'b';
    return measurement;
  }
  /// Steps that the search has taken, each once, as its store says.
  static Integer steps(const Store& store) {
    Integer steps = 0;
    for (const auto& evaluations : {store.evaluations(), store.partials()}) {
      for (const auto& one : evaluations) steps += one.curve.back().step;
    }
    return steps;
  }
};

std::string name_of(const ::testing::TestParamInfo<Searcher>& info) {
  const auto& searcher = info.param;
  const bool plain =
      searcher.promote == Promote::asha || searcher.promote == Promote::successive_halving;
  return (plain                                ? ""
          : searcher.promote == Promote::pasha ? "pasha_"
                                               : "hyperband_") +
         searcher.key + std::to_string(searcher.in_flight);
}

const Searcher kHyperband{.key = "random_search", .in_flight = 1, .promote = Promote::hyperband};
const Searcher kPashaOfTwo{.key = "nsga2_async", .promote = Promote::pasha};
const Searcher kPasha{.key = "regularized_evolution", .promote = Promote::pasha};

INSTANTIATE_TEST_SUITE_P(, SearchByRungs,
                         ::testing::Values(Searcher{"nsga2_async"},
                                           Searcher{"regularized_evolution"},
                                           Searcher{"random_search"}, Searcher{"motpe"},
                                           Searcher{"random_search", 1}, kHyperband, kPashaOfTwo,
                                           kPasha),
                         name_of);

TEST_P(SearchByRungs, TrainsTheBestOfEachRungOn) {
  Search search(GetParam(), file("whole"), {}, stepping());
  const auto result = search.run(settings());
  std::map<Integer, std::set<std::string>> reached;  // evaluations by step, those that end at 0
  for (const auto& ask : search.store.asks()) {
    if (ask.until > 0) {
      EXPECT_EQ(ask.evaluations.size(), 1U);
    }
    reached[ask.until].insert(ask.evaluations.front());
  }
  EXPECT_GT(reached[10].size(), 30U) << "all candidates begin there";
  EXPECT_GE(reached[20].size(), reached[10].size() / 4);
  if (GetParam().promote == Promote::hyperband) {
    EXPECT_GT(reached[20].size(), reached[10].size() * 3 / 4);
  } else {
    EXPECT_LE(reached[20].size(), reached[10].size() * 3 / 4);
    EXPECT_LE(reached[0].size(), reached[20].size() * 3 / 4);
  }
  // The values fall by the step alone, so that pasha finds no need of more than its answer.
  EXPECT_GE(reached[0].size(), GetParam().promote == Promote::pasha ? 1U : 5U);
  EXPECT_FALSE(result.archive.front().empty());
  for (const auto& [step, ids] : reached) {
    EXPECT_TRUE(std::includes(reached[10].begin(), reached[10].end(), ids.begin(), ids.end()));
  }
  EXPECT_EQ(search.evaluator->num_evaluated(), std::ssize(reached[10])) << "each is one evaluation";
  // The archive has what was trained to the end, and no paused one.
  std::set<std::string> whole;
  for (const auto& one : search.store.evaluations()) {
    if (one.status == Status::ok) whole.insert(one.candidate);
  }
  for (const auto& [name, point] : result.archive.front()) EXPECT_TRUE(whole.contains(name));
  EXPECT_EQ(static_cast<SteppingMeasurement&>(*search.fake).steps_, steps(search.store))
      << "no step is taken twice";
}

TEST_P(SearchByRungs, OfFewCandidatesSomebodyIsHandedOver) {
  int runs = 0;
  for (const Integer candidates : {1, 2, 5}) {
    for (const double eta : {2.0, 4.0}) {
      const Fidelity fidelity{
          .promote = GetParam().promote, .rungs = {10, 20}, .steps = 40, .eta = eta};
      // A budget of training runs, a budget of steps that none comes to the end in, no progress.
      for (const Budget& budget :
           {Budget{.evaluations = candidates}, Budget{.train_steps = 10 * candidates}, Budget{}}) {
        Search search(GetParam(), file(std::to_string(++runs)), {.budget = budget}, stepping());
        SearchSettings few{.fidelity = fidelity};
        few.stagnation = budget.evaluations + budget.train_steps > 0 ? 0 : candidates;
        const auto result = search.run(few);
        EXPECT_FALSE(result.archive.front().empty())
            << candidates << " candidates, eta " << eta << ", " << result.ended_by;
      }
    }
  }
}

TEST_P(SearchByRungs, WhereAllFailBehindARungNobodyIsHandedOver) {
  const auto measurement = stepping();
  measurement->on_measured_ = [](Evaluation& evaluation) {
    if (evaluation.status == Status::ok) evaluation.status = Status::diverged;
  };
  Search search(GetParam(), file("failing"), {.budget = {.evaluations = 4}}, measurement);
  EXPECT_TRUE(search.run(settings()).archive.front().empty());
  EXPECT_TRUE(search.store.partials().empty()) << "all were tried";
}

TEST_P(SearchByRungs, TrainsTheBestWithFurtherSeeds) {
  auto wanted = settings();
  wanted.fidelity->replicated = true;
  Search whole(GetParam(), file("whole"), {.replicates = 3}, stepping());
  whole.run(wanted);
  std::map<std::string, std::set<Integer>> replicates;  // by candidate, that came to the end
  for (const auto& one : whole.store.evaluations()) {
    if (one.status == Status::ok) replicates[one.candidate].insert(one.replicate);
  }
  for (const auto& one : whole.store.partials()) EXPECT_EQ(one.replicate, 0) << "at rungs only";
  ASSERT_FALSE(replicates.empty());
  const auto replicated = std::count_if(replicates.begin(), replicates.end(), [](auto& candidate) {
    return candidate.second == std::set<Integer>{0, 1, 2};
  });
  EXPECT_EQ(std::count_if(replicates.begin(), replicates.end(),
                          [](auto& one) { return one.second == std::set<Integer>{0}; }) +
                replicated,
            std::ssize(replicates));
  // Who comes to the end after the search, as pasha's answer may, has one seed.
  if (GetParam().promote != Promote::pasha) {
    EXPECT_GE(replicated, 1);
  }
  if (replicates.size() > 5) {
    EXPECT_LT(replicated, std::ssize(replicates));
  }
  // All of its seeds answer for the best.
  const auto asks = whole.store.asks();
  EXPECT_EQ(std::count_if(asks.begin(), asks.end(),
                          [](const auto& ask) { return ask.evaluations.size() == 3; }),
            replicated);
  Search again(
      GetParam(), file("again"),
      [] {
        auto options = shuffled(4, 9);
        options.replicates = 3;
        return options;
      }(),
      stepping());
  again.run(wanted);
  EXPECT_EQ(again.record(), whole.record());
}

TEST_P(SearchByRungs, RacesThoseOfABatchThatCameToTheEnd) {
  if (GetParam().in_flight > 1) return;
  auto wanted = settings();
  wanted.fidelity->raced = true;
  const RecordingEvaluator::Options options{.racing = Racing{.replicates = 4, .elites = 2}};
  auto search = std::make_optional<Search>(GetParam(), file("race"), options, stepping());
  search->run(wanted);
  std::map<std::string, std::size_t> replicates;
  for (const auto& one : search->store.evaluations()) {
    if (one.status == Status::ok) ++replicates[one.candidate];
  }
  EXPECT_GE(std::count_if(replicates.begin(), replicates.end(),
                          [](const auto& one) { return one.second == 4; }),
            2)
      << "the elites have all";
  const auto record = search->record();
  search.reset();
  Search again(GetParam(), file("race"), options, stepping());
  again.run(wanted);
  EXPECT_EQ(again.record(), record);
  EXPECT_EQ(again.fake->measured_, 0);
}

/// Asks at random, and looks in the end at what is known at the highest rungs.
struct Looker {
  std::map<std::size_t, std::vector<SearchProblem::Observation>>* seen = nullptr;

  pagmo::population evolve(pagmo::population population) const {
    const auto& problem = population.get_problem();
    std::mt19937 engine(5);
    Conversation conversation(problem, 4, false);
    conversation.run(
        60, [&] { return random_point(problem, engine); }, [](const auto&, const auto&) {});
    for (const std::size_t least : {1U, 20U, 1000U}) {
      seen->emplace(least, at_highest_rung(problem, least));
    }
    return population;
  }
  template <class Archive>
  void serialize(Archive& /*archive*/, unsigned /*version*/) {}
};

TEST(HigherRungs, AreSeenOnceSoManyCameThere) {
  const TemporaryFolder folder;
  std::map<std::size_t, std::vector<SearchProblem::Observation>> seen;
  Search search({"regularized_evolution"}, folder.path() / "looker.sqlite", {},
                std::make_shared<SteppingMeasurement>());
  search.algorithm = pagmo::algorithm(Looker{&seen});
  search.run({.fidelity = Fidelity{.rungs = {10, 20}, .steps = 40}});
  const auto expect_step = [&](const auto& observations, double step) {
    for (const auto& [point, fitness] : observations) {
      const auto name = search.fake->canonical(FakeMeasurement::space().decode(point)).name;
      EXPECT_NEAR(fitness.front(), 3.0 * FakeMeasurement::value(name, 0) + 40.0 - step, 1e-9);
    }
  };
  EXPECT_GT(seen.at(1).size(), 5U);
  EXPECT_LT(seen.at(1).size(), 20U);
  expect_step(seen.at(1), 40.0);
  EXPECT_GE(seen.at(20).size(), 20U);
  expect_step(seen.at(20), 20.0);
  EXPECT_TRUE(seen.at(1000).empty()) << "the first rung is what the algorithm has heard of";
}

TEST_P(SearchByRungs, DependsOnNeitherTheWorkersNorTheOrderInWhichTheyFinish) {
  Search whole(GetParam(), file("whole"), {}, stepping());
  whole.run(settings());
  const auto expected = whole.record();
  Search threads(GetParam(), file("threads"), {.workers = 4}, stepping());
  threads.run(settings());
  EXPECT_EQ(threads.record(), expected);
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    Search search(GetParam(), file("shuffled" + std::to_string(seed)), shuffled(2 + seed * 2, seed),
                  stepping());
    search.run(settings());
    EXPECT_EQ(search.record(), expected) << "order " << seed;
  }
  const auto measurement = stepping();
  Search fleet(GetParam(), file("fleet"),
               {.executor = std::make_shared<SimulatedExecutor>(*measurement, 64)}, measurement);
  fleet.run(settings());
  EXPECT_EQ(fleet.record(), expected) << "64 workers in simulated time";
}

TEST_P(SearchByRungs, EndsWhereItsStepsAreSpent) {
  Search whole(GetParam(), file("whole"), {}, stepping());
  whole.run(settings());
  Search search(GetParam(), file("budget"), {.budget = {.train_steps = 500}}, stepping());
  EXPECT_EQ(search.run(settings()).ended_by, "500 training steps");
  const bool beyond = GetParam().promote == Promote::pasha;
  EXPECT_LE(steps(search.store), beyond ? 900 : 500) << "an answer comes to the end";
  EXPECT_GT(steps(search.store), 400) << "a stay takes 20 at most, and some have failed";
  // What a smaller budget asks is how the larger search began.
  const auto asks = search.store.asks();
  const auto all = whole.store.asks();
  for (std::size_t i = 0; i < asks.size(); ++i) {
    if (beyond && asks[i].until == 0) continue;
    EXPECT_EQ(asks[i].evaluations, all[i].evaluations);
    EXPECT_EQ(asks[i].until, all[i].until);
  }
}

TEST_P(SearchByRungs, ToldAsTheyArriveTheAnswersAreReplayed) {
  auto searcher = GetParam();
  if (searcher.in_flight == 1) return;
  searcher.order = "arrival";
  std::string record;
  {
    Search search(searcher, file("arrival"), shuffled(4, 1), stepping());
    search.run(settings());
    record = search.record();
  }
  Search again(searcher, file("arrival"), shuffled(2, 5), stepping());
  again.run(settings());
  EXPECT_EQ(again.record(), record);
  EXPECT_EQ(again.fake->measured_, 0);
}

}  // namespace
}  // namespace nas::testing
