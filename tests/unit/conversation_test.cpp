#include "search/conversation.hpp"

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>

#include <pagmo/problem.hpp>
#include <pagmo/problems/zdt.hpp>
#include <unistd.h>

#include "core/stop.hpp"
#include "core/temporary_folder.hpp"
#include "evaluation/virtual_order.hpp"
#include "prelude.hpp"
#include "search/algorithm.hpp"
#include "search/search.hpp"
#include "search/variation.hpp"
#include "unit/asynchronous_search.hpp"
#include "unit/fake_measurement.hpp"
#include "unit/forked.hpp"
#include "unit/forked_search.hpp"
#include "unit/shuffled_executor.hpp"
#include "unit/simulated_executor.hpp"
#include "unit/stepping_measurement.hpp"

namespace nas::testing {
namespace {

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
  Search threads(GetParam(), file("threads"), {.workers = 4});
  threads.run();
  EXPECT_EQ(threads.record(), expected);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const auto options = shuffled(1 + seed * 2, seed);
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
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
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
  in_child([&] {
    Search search(searcher, killed, shuffled(4, 5), std::make_shared<FakeMeasurement>(),
                  Store::Mode::write);
    search.fake->on_measure_ = [](int number, const Task&) {
      if (number == 25) kill(getpid(), SIGKILL);
    };
    search.run();
    return 0;
  });
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

}  // namespace
}  // namespace nas::testing
