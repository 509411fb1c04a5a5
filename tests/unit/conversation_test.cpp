#include "search/conversation.hpp"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pagmo/problem.hpp>
#include <pagmo/problems/zdt.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "core/stop.hpp"
#include "core/temporary_folder.hpp"
#include "evaluation/virtual_order.hpp"
#include "search/algorithm.hpp"
#include "search/search.hpp"
#include "search/variation.hpp"
#include "unit/fake_measurement.hpp"
#include "unit/forked_search.hpp"
#include "unit/shuffled_executor.hpp"
#include "unit/simulated_executor.hpp"
#include "unit/stepping_measurement.hpp"

namespace nas::testing {
namespace {

namespace fs = std::filesystem;
using Integer = std::int64_t;
using ::testing::ElementsAre;

TEST(VirtualOrder, IsThatOfWorkersThatAreAllAlike) {
  VirtualOrder order;
  order.begin(0, "a", 3.0);
  order.begin(1, "b", 1.0);
  order.begin(2, "c", 3.0);
  EXPECT_EQ(order.first(), 1);
  order.tell(1);
  order.begin(3, "d", 1.0);  // at 1 + 1
  EXPECT_EQ(order.first(), 3);
  order.tell(3);
  order.begin(4, "e", 0.0);  // known: at once
  EXPECT_EQ(order.first(), 4);
  order.tell(4);
  order.begin(5, "a", 0.0);  // out: with the one that is
  std::vector<Integer> told;
  for (int i = 0; i < 3; ++i) {
    told.push_back(order.first());
    order.tell(told.back());
  }
  EXPECT_THAT(told, ElementsAre(0, 2, 5));
}

TEST(VirtualOrder, AgreesWithASimulationOfWorkers) {
  constexpr std::size_t kWorkers = 7;
  RandomEngine random(5);
  VirtualOrder order;
  std::vector<std::pair<double, Integer>> workers;  // when each is done, with what
  double now = 0.0;
  for (Integer next = 0; next < 500;) {
    for (; workers.size() < kWorkers; ++next) {
      const double cost = 1.0 + static_cast<double>(random.below(5));
      order.begin(next, std::to_string(next), cost);
      workers.emplace_back(now + cost, next);
    }
    const auto first = std::min_element(workers.begin(), workers.end());
    ASSERT_EQ(order.first(), first->second);
    order.tell(first->second);
    now = first->first;
    workers.erase(first);
  }
}

TEST(Conversation, AnyProblemAnswersInTheOrderOfAsking) {
  const pagmo::problem problem(pagmo::zdt(1, 3));
  Conversation conversation(problem, 2, false);
  conversation.ask({0.1, 0, 0});
  conversation.ask({0.2, 0, 0});
  EXPECT_THROW(conversation.ask({0.3, 0, 0}), std::logic_error);
  EXPECT_EQ(conversation.out().size(), 2U);
  const auto [point, fitness] = conversation.next();
  EXPECT_EQ(point.front(), 0.1);
  EXPECT_EQ(fitness, problem.fitness(point));
  EXPECT_EQ(conversation.next().first.front(), 0.2);
  EXPECT_THROW(conversation.next(), std::logic_error);
}

TEST(Conversation, KeepsAsManyOutAsItMay) {
  const pagmo::problem problem(pagmo::zdt(1, 3));
  Conversation conversation(problem, 3, false);
  std::vector<std::size_t> out;
  double next = 0.0;
  std::vector<double> heard;
  conversation.run(
      5,
      [&] {
        out.push_back(conversation.out().size());
        return std::vector{next += 0.1, 0.0, 0.0};
      },
      [&heard](const auto& point, const auto&) { heard.push_back(point.front()); });
  EXPECT_THAT(out, ElementsAre(0U, 1U, 2U, 2U, 2U));
  EXPECT_EQ(heard.size(), 5U);
  EXPECT_TRUE(std::is_sorted(heard.begin(), heard.end()));
  conversation.run(
      5, [] { return std::vector<double>(); }, [](const auto&, const auto&) { FAIL(); });
}

/// What is searched with.
struct Searcher {
  std::string key;
  Integer in_flight = 5;
  std::string order = "virtual";
  Integer evaluations = 60;
  Promote promote = in_flight > 1 ? Promote::asha : Promote::successive_halving;

  [[nodiscard]] bool several() const {
    return algorithms().at(key).make().objectives != Algorithm::Objectives::one;
  }
};

void PrintTo(const Searcher& searcher, std::ostream* out) { *out << searcher.key; }

/// One search on the fake measurement, in a store of its own.
struct Search {
  Search(const Searcher& searcher, const fs::path& file, RecordingEvaluator::Options options = {},
         std::shared_ptr<FakeMeasurement> measurement = std::make_shared<FakeMeasurement>(),
         Store::Mode mode = Store::Mode::write_cheap)
      : fake(std::move(measurement)),
        objectives(fake_objectives(searcher.several())),
        settings(algorithms().at(searcher.key).description.settings),
        kind(algorithms().at(searcher.key).make()),
        store(file, mode) {
    const auto space = FakeMeasurement::space();
    const SearchFacts facts{.num_genes = space.num_varying(),
                            .dimension = space.bounds(kind.encoding).first.size(),
                            .num_objectives = objectives.objectives.size(),
                            .num_combinations = space.num_combinations()};
    settings.set("population", Integer{8});
    settings.set("evaluations", searcher.evaluations);
    settings.set("in_flight", searcher.in_flight);
    settings.set("order", searcher.order);
    if (kind.fit) {
      EXPECT_TRUE(kind.fit(settings, facts).empty());
    }
    algorithm = kind.make(settings, facts, 3);
    if (auto* executor = dynamic_cast<ShuffledExecutor*>(options.executor.get())) {
      executor->measurement = fake.get();
    }
    evaluator = std::make_shared<RecordingEvaluator>(
        fake, store, [this](Objective::Evaluations e) { return objectives.judge(e); },
        std::move(options));
  }

  SearchResult run(const SearchSettings& more = {}) {
    auto search = more;
    search.population = 8;
    search.seed = 3;
    search.on_indicator = [this](const Indicator& indicator) { store.add_indicator(indicator); };
    return run_search(FakeMeasurement::space(), evaluator, objectives, algorithm, search);
  }

  [[nodiscard]] std::string record() const {
    std::string text;
    for (const auto& ask : store.asks()) {
      text += std::to_string(ask.number) + " " + std::to_string(ask.batch) + " " + ask.genotype +
              " " + nlohmann::json(ask.evaluations).dump() + " " + std::to_string(ask.reused) +
              " " + nlohmann::json(ask.fitness).dump() + " " + std::to_string(ask.until) + "\n";
    }
    for (const auto& evaluations : {store.evaluations(), store.partials()}) {
      for (const auto& evaluation : evaluations) text += canonical_json(evaluation).dump() + "\n";
    }
    for (const auto& i : store.indicators()) {
      text += std::to_string(i.asked) + " " + std::to_string(i.evaluated) + " " +
              nlohmann::json(i.value).dump() + "\n";
    }
    return text;
  }

  std::shared_ptr<FakeMeasurement> fake;
  ObjectiveSet objectives;
  Parameters settings;
  Algorithm kind;
  Store store;
  pagmo::algorithm algorithm;
  std::shared_ptr<RecordingEvaluator> evaluator;
};

RecordingEvaluator::Options shuffled(std::size_t workers, std::uint64_t seed) {
  return {.workers = static_cast<int>(workers),
          .executor = std::make_shared<ShuffledExecutor>(workers, seed)};
}

class AsynchronousSearch : public ::testing::TestWithParam<Searcher> {
 protected:
  void TearDown() override { request_stop(false); }
  fs::path file(const std::string& name) const { return temporary_.path() / (name + ".sqlite"); }

  /// Evaluations of all asks that are recorded, each number once, from 0.
  static void expect_contiguous(const Store& store) {
    Integer number = 0;
    for (const auto& ask : store.asks()) EXPECT_EQ(ask.number, number++);
  }

  const TemporaryFolder temporary_;
};

/// Trainings of which the longest takes ten times as long as the shortest, as expected or not.
class Uneven final : public FakeMeasurement {
 public:
  static double seconds(const std::string& candidate) {
    return 1.0 + 9.0 * std::pow(RandomEngine(derive_seed(4, 0, "seconds", candidate)).uniform(), 3);
  }
  double expected_cost(const Candidate& candidate) const override {
    return expected_ ? seconds(candidate.name) : 1.0;
  }
  void measure(const Task& task, Evaluation& evaluation) override {
    FakeMeasurement::measure(task, evaluation);
    const double noise =
        RandomEngine(derive_seed(4, task.replicate, "noise", task.candidate.name)).uniform();
    evaluation.measured["train_seconds"] = seconds(task.candidate.name) * (0.9 + 0.2 * noise);
  }
  bool expected_ = true;
};

/// Costs what it is expected to cost, and takes another time.
class Late final : public FakeMeasurement {
 public:
  void measure(const Task& task, Evaluation& evaluation) override {
    FakeMeasurement::measure(task, evaluation);
    evaluation.measured["train_seconds"] = Uneven::seconds(task.candidate.name);
  }
};

/// The share of sixteen workers that are at work in simulated time.
double efficiency(const fs::path& file, const Searcher& searcher, bool expected) {
  const auto uneven = std::make_shared<Uneven>();
  uneven->expected_ = expected;
  const auto executor = std::make_shared<SimulatedExecutor>(*uneven, 16);
  Search search(searcher, file, {.executor = executor, .repeated = Repeated::retrain}, uneven);
  search.run();
  return executor->efficiency();
}

TEST(SimulatedFleet, IsBusyWhereNobodyWaitsForTheSlowest) {
  const TemporaryFolder folder;
  int number = 0;
  const auto of = [&](Integer in_flight, const std::string& order, bool expected) {
    const auto file = folder.path() / (std::to_string(number++) + ".sqlite");
    return efficiency(file, {"random_search", in_flight, order, 640}, expected);
  };
  const double batches = of(1, "virtual", true);  // of 8
  const double arrival = of(16, "arrival", true);
  const double as_many = of(16, "virtual", true);
  const double half_as_many_again = of(24, "virtual", true);
  const double unexpected = of(24, "virtual", false);
  EXPECT_LT(batches, 0.4);
  EXPECT_GT(arrival, 0.95);
  EXPECT_GT(half_as_many_again, 0.95);
  EXPECT_GT(half_as_many_again, as_many);
  EXPECT_GT(as_many, batches);
  EXPECT_LT(unexpected, half_as_many_again);
  EXPECT_GT(unexpected, batches);
}

INSTANTIATE_TEST_SUITE_P(, AsynchronousSearch,
                         ::testing::Values(Searcher{"nsga2_async"},
                                           Searcher{"regularized_evolution"},
                                           Searcher{"random_search"}, Searcher{"motpe"}),
                         [](const auto& searcher) { return searcher.param.key; });

TEST_P(AsynchronousSearch, DependsOnNeitherTheWorkersNorTheOrderInWhichTheyFinish) {
  Search whole(GetParam(), file("whole"));
  whole.run();
  const auto expected = whole.record();
  EXPECT_EQ(whole.evaluator->num_asked(), 60);
  expect_contiguous(whole.store);
  EXPECT_TRUE(whole.store.tells().empty());
  for (const int workers : {2, 4}) {
    Search search(GetParam(), file("threads" + std::to_string(workers)), {.workers = workers});
    search.run();
    EXPECT_EQ(search.record(), expected) << workers << " threads";
  }
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const auto options = shuffled(1 + seed % 6, seed);
    Search search(GetParam(), file("shuffled" + std::to_string(seed)), options);
    search.run();
    EXPECT_EQ(search.record(), expected) << "order " << seed;
    EXPECT_LE(static_cast<ShuffledExecutor&>(*options.executor).most_out(), 8U);
  }
  const auto late = std::make_shared<Late>();
  Search fleet(GetParam(), file("fleet"),
               {.executor = std::make_shared<SimulatedExecutor>(*late, 64)}, late);
  fleet.run();
  EXPECT_EQ(fleet.record(), expected) << "64 workers in simulated time";
}

TEST_P(AsynchronousSearch, DependsOnWhatIsOutAtOnce) {
  if (GetParam().key == "random_search") return;  // which asks whatever the answers are
  Search few(GetParam(), file("few"));
  few.run();
  auto searcher = GetParam();
  searcher.in_flight = 20;
  Search many(searcher, file("many"));
  many.run();
  EXPECT_NE(many.record(), few.record());
}

TEST_P(AsynchronousSearch, KilledItGoesOnAsIfNothingHadHappened) {
  Search whole(GetParam(), file("whole"));
  whole.run();
  const auto killed = file("killed");
  for (int kill_number = 0; kill_number < 3; ++kill_number) {
    const pid_t child = fork();
    if (child == 0) {
      Search search(GetParam(), killed, shuffled(3, static_cast<std::uint64_t>(kill_number)),
                    std::make_shared<FakeMeasurement>(), Store::Mode::write);
      search.fake->on_measure_ = [kill_number](int number, const Task&) {
        if (number == 11 + kill_number) kill(getpid(), SIGKILL);
      };
      search.run();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
  }
  Search resumed(GetParam(), killed, {.workers = 2});
  resumed.run();
  EXPECT_LT(resumed.fake->measured_, whole.fake->measured_);
  EXPECT_EQ(resumed.record(), whole.record());
}

TEST_P(AsynchronousSearch, StoppedItKeepsWhatHasFinished) {
  Search whole(GetParam(), file("whole"));
  whole.run();
  {
    Search search(GetParam(), file("stopped"), shuffled(4, 1));
    search.fake->on_measure_ = [](int number, const Task&) {
      if (number == 20) request_stop();
    };
    EXPECT_THROW(search.run(), StopRequested);
    EXPECT_EQ(search.store.evaluations().size(), 20U);
  }
  request_stop(false);
  Search resumed(GetParam(), file("stopped"), shuffled(2, 2));
  resumed.run();
  EXPECT_EQ(resumed.record(), whole.record());
  EXPECT_EQ(resumed.fake->measured_ + 20, whole.fake->measured_);
}

TEST_P(AsynchronousSearch, ABudgetOfEvaluationsIsSpentExactlyAndMayBecomeLarger) {
  auto options = shuffled(3, 1);
  options.budget.evaluations = 40;
  auto searcher = GetParam();
  searcher.evaluations = 200;
  Search whole(searcher, file("whole"), options);
  EXPECT_EQ(whole.run().ended_by, "40 evaluations");
  EXPECT_EQ(whole.store.evaluations().size(), 40U);
  EXPECT_EQ(whole.evaluator->num_evaluated(), 40);
  expect_contiguous(whole.store);
  for (const Integer budget : {20, 40}) {
    options = shuffled(2, 7);
    options.budget.evaluations = budget;
    Search search(searcher, file("continued"), options);
    search.run();
    EXPECT_EQ(std::ssize(search.store.evaluations()), budget);
  }
  Search continued(searcher, file("continued"), options);
  const auto asks = continued.store.asks();
  const auto expected = whole.store.asks();
  ASSERT_EQ(asks.size(), expected.size());
  for (std::size_t i = 0; i < asks.size(); ++i) {
    EXPECT_EQ(asks[i].genotype, expected[i].genotype);
    EXPECT_EQ(asks[i].evaluations, expected[i].evaluations);
    EXPECT_EQ(asks[i].fitness, expected[i].fitness);
  }
}

TEST_P(AsynchronousSearch, ABudgetOfTimeEndsTheAskingAndWhatIsOutIsTold) {
  auto options = shuffled(3, 1);
  options.budget.train_seconds = 40.0;  // of 2 s each
  Search search(GetParam(), file("time"), options);
  EXPECT_EQ(search.run().ended_by, "40 s of training");
  expect_contiguous(search.store);
  const auto trained = search.store.evaluations().size();
  EXPECT_GE(trained, 20U);
  EXPECT_LE(trained, 24U);
  EXPECT_EQ(search.evaluator->num_evaluated(), static_cast<Integer>(trained));
  options.executor = std::make_shared<ShuffledExecutor>(2, 9);
  Search other(GetParam(), file("other"), options);
  other.run();
  EXPECT_EQ(other.record(), search.record());
}

TEST_P(AsynchronousSearch, WhatIsOutIsToldWhereProgressEnds) {
  Search search(GetParam(), file("stagnation"), shuffled(4, 1));
  const auto result = search.run({.stagnation = 4});
  EXPECT_EQ(result.ended_by, "no progress in 4 asks");
  expect_contiguous(search.store);
  EXPECT_EQ(static_cast<Integer>(search.store.asks().size()), search.evaluator->num_asked());
}

TEST_P(AsynchronousSearch, ReplicatesOfEachAnswerAreMeasuredBesideOthers) {
  const auto with = [&](const std::string& name, RecordingEvaluator::Options options) {
    options.repeated = Repeated::replicate;
    options.replicates = 2;
    Search search(GetParam(), file(name), std::move(options));
    search.run();
    return search.record();
  };
  const auto expected = with("one", {});
  EXPECT_EQ(with("shuffled", shuffled(5, 3)), expected);
  EXPECT_EQ(with("threads", {.workers = 3}), expected);
}

TEST_P(AsynchronousSearch, CandidatesThatAreRejectedCostNothing) {
  const auto with = [&](const std::string& name, RecordingEvaluator::Options options) {
    options.budget.evaluations = 30;
    Search search(GetParam(), file(name), std::move(options));
    search.fake->refused_ = 'b';
    search.fake->on_screen_ = [](const Task& task, Evaluation& evaluation) {
      if (task.candidate.name[2] == 'a') evaluation.status = Status::rejected;
    };
    search.run();
    Integer rejected = 0;
    for (const auto& evaluation : search.store.evaluations()) {
      rejected += evaluation.status == Status::rejected ? 1 : 0;
    }
    EXPECT_GT(rejected, 0);
    EXPECT_LE(std::ssize(search.store.evaluations()) - rejected, 30);
    return search.record();
  };
  EXPECT_EQ(with("shuffled", shuffled(5, 3)), with("one", {}));
}

TEST_P(AsynchronousSearch, ArrivalsAreRecordedBeforeTheyAreToldAndReplayed) {
  auto searcher = GetParam();
  searcher.order = "arrival";
  std::set<std::string> records;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const auto name = "arrival" + std::to_string(seed);
    std::string record;
    std::vector<Integer> tells;
    {
      Search search(searcher, file(name), shuffled(4, seed));
      search.run();
      record = search.record();
      tells = search.store.tells();
    }
    EXPECT_EQ(tells.size(), 52U);  // all but the initial population
    auto sorted = tells;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted.front(), 8);
    EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());
    EXPECT_NE(sorted, tells);
    Search replayed(searcher, file(name), shuffled(2, seed + 100));
    replayed.run();
    EXPECT_EQ(replayed.record(), record);
    EXPECT_EQ(replayed.store.tells(), tells);
    EXPECT_EQ(replayed.fake->measured_, 0);
    for (const auto& tell : tells) record += std::to_string(tell) + " ";
    records.insert(record);
  }
  EXPECT_GT(records.size(), 1U);
}

TEST_P(AsynchronousSearch, AKilledSearchByArrivalGoesOnWithWhatItWasTold) {
  auto searcher = GetParam();
  searcher.order = "arrival";
  const auto killed = file("killed");
  const pid_t child = fork();
  if (child == 0) {
    Search search(searcher, killed, shuffled(4, 5), std::make_shared<FakeMeasurement>(),
                  Store::Mode::write);
    search.fake->on_measure_ = [](int number, const Task&) {
      if (number == 25) kill(getpid(), SIGKILL);
    };
    search.run();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Search resumed(searcher, killed, shuffled(4, 6));
  const auto told = resumed.store.tells();
  const auto known = resumed.store.evaluations().size();
  EXPECT_GT(told.size(), 5U);
  EXPECT_EQ(known, 24U);
  resumed.run();
  const auto all = resumed.store.tells();
  ASSERT_EQ(all.size(), 52U);
  EXPECT_TRUE(std::equal(told.begin(), told.end(), all.begin()));
  expect_contiguous(resumed.store);
}

TEST_P(AsynchronousSearch, ASlowTrainingHoldsNobodyUp) {
  std::mutex mutex;
  std::condition_variable changed;
  int others = 0;
  bool in_time = true;
  Search search(GetParam(), file("slow"), {.workers = 2});
  search.fake->on_measure_ = [&](int number, const Task&) {
    std::unique_lock lock(mutex);
    if (number == 9) {  // the first after the initial population
      in_time = changed.wait_for(lock, std::chrono::seconds(20), [&] { return others >= 4; });
    } else if (number > 9) {
      ++others;
      changed.notify_all();
    }
  };
  search.run();
  EXPECT_TRUE(in_time) << "only " << others << " others were measured beside it";
  EXPECT_EQ(search.evaluator->num_asked(), 60);
}

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
  for (Integer candidates = 1; candidates <= 5; ++candidates) {
    for (const double eta : {2.0, 3.0, 4.0}) {
      for (const std::vector<Integer>& rungs : {std::vector<Integer>{10}, {10, 20}}) {
        const Fidelity fidelity{
            .promote = GetParam().promote, .rungs = rungs, .steps = 40, .eta = eta};
        // A budget of training runs, a budget of steps that none comes to the end in, no progress.
        for (const Budget& budget : {Budget{.evaluations = candidates},
                                     Budget{.train_steps = 10 * candidates}, Budget{}}) {
          Search search(GetParam(), file(std::to_string(++runs)), {.budget = budget}, stepping());
          SearchSettings few{.fidelity = fidelity};
          few.stagnation = budget.evaluations + budget.train_steps > 0 ? 0 : candidates;
          const auto result = search.run(few);
          EXPECT_FALSE(result.archive.front().empty())
              << candidates << " candidates, eta " << eta << ", " << rungs.size() << " rungs, "
              << result.ended_by;
        }
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
  for (const int workers : {2, 4}) {
    Search search(GetParam(), file("threads" + std::to_string(workers)), {.workers = workers},
                  stepping());
    search.run(settings());
    EXPECT_EQ(search.record(), expected) << workers << " threads";
  }
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Search search(GetParam(), file("shuffled" + std::to_string(seed)), shuffled(1 + seed % 6, seed),
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

TEST_P(SearchByRungs, KilledItGoesOnAsIfNothingHadHappened) {
  Search whole(GetParam(), file("whole"), {}, stepping());
  whole.run(settings());
  const auto killed = file("killed");
  RandomEngine random(derive_seed(7, 0, "kills", GetParam().key));
  for (int kills = 0; kills < 4; ++kills) {
    const int last = 8 + static_cast<int>(random.below(12));
    const pid_t child = fork();
    if (child == 0) {
      Search search(GetParam(), killed, shuffled(3, static_cast<std::uint64_t>(kills)), stepping(),
                    Store::Mode::write);
      search.fake->on_measure_ = [last](int number, const Task&) {
        if (number == last) kill(getpid(), SIGKILL);
      };
      search.run(settings());
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
  }
  Search resumed(GetParam(), killed, {.workers = 2}, stepping());
  resumed.run(settings());
  EXPECT_EQ(resumed.record(), whole.record());
  EXPECT_LT(resumed.fake->measured_, whole.fake->measured_);
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
