#include "evaluation/recording_evaluator.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <new>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pagmo/algorithms/sga.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "algorithms/evo_ga.hpp"
#include "core/fault.hpp"
#include "core/stop.hpp"
#include "evaluation/outcomes.hpp"
#include "unit/evaluator_fixture.hpp"
#include "unit/forked_search.hpp"
#include "unit/message_of.hpp"
#include "unit/stepping_measurement.hpp"

namespace nas::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What many tests ask for: four candidates, of falling cost.
const std::vector<std::vector<double>> kFour{
    {0, 3, 0, 0}, {0, 2, 0, 0}, {0, 1, 0, 0}, {0, 0, 0, 0}};

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

TEST_F(EvaluatorTest, FailuresAreRecordsWithAFinitePenalty) {
  const Run run(folder_ / "s.sqlite", {.workers = 3});
  run.fake->on_measure_ = [](int, const Task& task) {
    switch (task.candidate.name[0]) {
      case 'a':
        throw CandidateFailure("broken tensor");
      case 'b':
        throw MemoryLimitExceeded("too big");
      case 'c':
        throw DeviceOutOfMemory("no memory on the device");
      default:
        break;
    }
  };
  EXPECT_THAT(run.ask({{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 2, 0, 0}, {0, 3, 0, 0}}),
              ElementsAre(1000.0, 1000.0, 1000.0, FakeMeasurement::value("d|a|a|0", 0)));
  std::map<char, Evaluation> by_first;
  for (const auto& evaluation : run.store.evaluations())
    by_first[evaluation.candidate[0]] = evaluation;
  EXPECT_EQ(by_first['a'].status, Status::failed);
  EXPECT_EQ(by_first['a'].reason, "broken tensor");
  EXPECT_EQ(by_first['b'].status, Status::out_of_memory);
  EXPECT_EQ(by_first['b'].reason, "too big");
  EXPECT_EQ(by_first['c'].status, Status::out_of_memory);
  EXPECT_EQ(by_first['c'].reason, "no memory on the device");
  EXPECT_EQ(by_first['d'].status, Status::ok);
}

TEST_F(EvaluatorTest, FaultsOfTheMachineAndUnknownOnesAreNobodysResult) {
  const std::function<void()> faults[] = {
      [] { throw MachineError("no space left in runs/x"); },
      [] {
        throw fs::filesystem_error("cannot rename", std::make_error_code(std::errc::io_error));
      },
      [] { throw std::logic_error("a defect"); },
      [] { throw 7; },  // NOLINT: not even an exception of the standard's
      [] { throw std::bad_alloc(); },
  };
  for (std::size_t i = 0; i < std::size(faults); ++i) {
    for (const std::int64_t width : {1, 4}) {
      for (const bool screened : {false, true}) {
        const auto file = folder_ / (std::to_string(i) + std::to_string(width) +
                                     (screened ? "screened" : "measured") + ".sqlite");
        const Run run(file);
        run.fake->array_width_ = width;
        const auto fault = [&](const Task& task) {
          if (task.candidate.name[0] == 'b') faults[i]();
        };
        if (screened) {
          run.fake->on_screen_ = [&](const Task& task, Evaluation&) { fault(task); };
        } else {
          run.fake->on_measure_ = [&](int, const Task& task) { fault(task); };
        }
        EXPECT_ANY_THROW(run.ask(kFour));
        for (const auto& evaluation : run.store.evaluations()) {
          EXPECT_EQ(evaluation.status, Status::ok);
          EXPECT_NE(evaluation.candidate[0], 'b');
        }
        EXPECT_FALSE(stop_requested()) << "others were asked to stop for this alone";
        // The same store goes on once the fault is gone.
        run.fake->on_screen_ = {};
        run.fake->on_measure_ = {};
        Run again(folder_ / "again.sqlite");
        again.store.add(run.store.evaluations());
        EXPECT_THAT(again.ask({kFour[2]}), ElementsAre(FakeMeasurement::value("b|a|a|0", 0)));
        fs::remove(folder_ / "again.sqlite");
      }
    }
  }
}

TEST_F(EvaluatorTest, AFaultEndsTheWorkOfTheOtherWorkers) {
  const Run run(folder_ / "s.sqlite", {.workers = 2});
  std::atomic<bool> at_work{false};
  std::atomic<bool> waited{false};
  run.fake->on_measure_ = [&](int, const Task& task) {
    if (task.candidate.name[0] == 'd') {
      while (!at_work) std::this_thread::yield();
      throw MachineError("no space left in runs/x");
    }
    at_work = true;
    while (!stop_requested()) std::this_thread::yield();
    waited = true;
    throw StopRequested();
  };
  EXPECT_EQ(message_of<MachineError>([&] { run.ask(kFour); }), "no space left in runs/x");
  EXPECT_TRUE(waited);
  EXPECT_EQ(run.fake->measured_, 2);
}

TEST_F(EvaluatorTest, WhatLackedMemoryBesideOthersIsMeasuredAlone) {
  const std::function<void()> lacks[] = {[] { throw std::bad_alloc(); },
                                         [] { throw DeviceOutOfMemory("full"); }};
  int number = 0;
  for (const auto& lack : lacks) {
    for (const bool screened : {false, true}) {
      const Run run(folder_ / (std::to_string(++number) + ".sqlite"), {.workers = 2});
      std::atomic<int> tries{0};
      std::atomic<int> at_work{0};
      const auto once = [&](const Task& task) {
        if (task.candidate.name[0] != 'b') return;
        if (tries++ == 0) lack();
        EXPECT_EQ(at_work, 0);
      };
      run.fake->on_screen_ = [&](const Task& task, Evaluation& evaluation) {
        if (!screened) return;
        evaluation.values["tried"] += 1;
        once(task);
      };
      run.fake->on_measure_ = [&](int, const Task& task) {
        if (!screened) once(task);
        ++at_work;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        --at_work;
      };
      EXPECT_EQ(run.ask(kFour)[2], FakeMeasurement::value("b|a|a|0", 0));
      EXPECT_EQ(tries, 2);
      for (const auto& evaluation : run.store.evaluations()) {
        EXPECT_EQ(evaluation.status, Status::ok);
        EXPECT_EQ(evaluation.values.contains("tried"), screened);
        if (screened) {
          EXPECT_EQ(evaluation.values.at("tried"), 1.0);
        }
      }
    }
  }
}

TEST_F(EvaluatorTest, ASearchInWhichNothingSucceedsEndsEarly) {
  std::vector<std::vector<double>> many;
  for (int i = 0; i < 16; ++i) many.push_back({0, i % 4 * 1.0, i / 4 * 1.0, 0});
  const auto fail_but = [](char spared) {
    return [spared](int, const Task& task) {
      if (task.candidate.name[2] != spared) throw CandidateFailure("no such operation");
    };
  };
  const auto file = folder_ / "s.sqlite";
  {
    const Run run(file);
    run.fake->on_measure_ = fail_but('-');
    try {
      run.ask(many);
      FAIL() << "it went on";
    } catch (const MachineError& error) {
      EXPECT_STREQ(
          error.what(),
          "none of the first 10 evaluations succeeded: 10 times failed, no such operation");
    }
    EXPECT_EQ(run.fake->measured_, 10);
  }
  {
    // What is measured now is the first of this process.
    const Run run(file);
    run.fake->on_measure_ = fail_but('-');
    EXPECT_EQ(run.ask(many).size(), many.size());
    EXPECT_EQ(run.fake->measured_, 6);
  }
  const Run run(folder_ / "one.sqlite", {.workers = 3});
  run.fake->on_measure_ = fail_but('c');
  EXPECT_EQ(run.ask(many).size(), many.size()) << "a single success will do";
}

TEST_F(EvaluatorTest, ASearchInWhichTooManyFailEndsEarly) {
  // Ten distinct candidates of b, which succeed, then others that fail but for the third letter b.
  std::vector<std::vector<double>> good;
  std::vector<std::vector<double>> many;
  for (int i = 0; i < 10; ++i) good.push_back({i / 10.0, 1, 0, 0});
  for (int i = 0; i < 12; ++i) many.push_back({i % 6 / 10.0, 0, i / 6 * 1.0, 0});
  const auto fail = [](int, const Task& task) {
    if (task.candidate.name[0] == 'a') throw CandidateFailure("no such operation");
  };
  const auto file = folder_ / "s.sqlite";
  {
    const Run run(file, {.failure_window = 8});
    run.fake->on_measure_ = fail;
    EXPECT_EQ(run.ask(good).size(), good.size());
    EXPECT_EQ(message_of<TooManyFailures>([&] { run.ask(many); }),
              "too many failures, 5 of the latest 8 candidates: 5 times failed, no such "
              "operation (evaluation.failure_window = 0 goes on all the same)");
    EXPECT_EQ(run.fake->measured_, 15);
    EXPECT_EQ(run.store.evaluations().size(), 15U) << "nothing is lost";
  }
  {
    // What counts is what this process has measured.
    const Run run(file, {.failure_window = 8});
    run.fake->on_measure_ = fail;
    EXPECT_EQ(run.ask(good).size(), good.size());
    EXPECT_EQ(run.ask(many).size(), many.size());
    EXPECT_EQ(run.fake->measured_, 7);
  }
  for (const auto& options : {RecordingEvaluator::Options{},
                              RecordingEvaluator::Options{.replicates = 3, .failure_window = 20}}) {
    const Run run(folder_ / ("s" + std::to_string(options.replicates) + ".sqlite"), options);
    run.fake->on_measure_ = fail;
    run.fake->on_screen_ = [](const Task& task, Evaluation& evaluation) {
      if (task.candidate.name[2] == 'b') evaluation.status = Status::rejected;
    };
    run.ask(good);
    EXPECT_EQ(run.ask(many).size(), many.size())
        << "replicates are one candidate, and who is rejected did not fail";
  }
}

TEST_F(EvaluatorTest, WhatMayComeToSomethingElseIsTriedAgainAsOftenAsItIsSaid) {
  // What ends with a status at the first two tries, by its first letter.
  const auto results = [this](const Retries& retries, const std::string& name, int workers) {
    const Run run(folder_ / (name + ".sqlite"), {.workers = workers, .retries = retries});
    run.fake->on_array_ = [&](std::span<const Assignment> array) {
      const std::lock_guard lock(run.fake->mutex_);
      const auto& [task, evaluation] = array.front();
      if (++run.fake->times_[task.id] > 2) return;
      if (task.candidate.name[0] == 'a') throw CandidateFailure("no such operation");
      if (task.candidate.name[0] == 'b') throw MemoryLimitExceeded("too big");
    };
    std::vector<std::string> begun_again;
    run.fake->on_recorded_ = [&](const Evaluation& evaluation) {
      if (!run.store.find(evaluation.id)) begun_again.push_back(evaluation.candidate.substr(0, 1));
    };
    run.ask({{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 2, 0, 0}});
    std::string text;
    for (const auto& evaluation : run.store.evaluations()) {
      const auto tries = evaluation.measured.value("failed_tries", std::vector<std::string>());
      text += evaluation.candidate.substr(0, 1) + " " + std::string(to_string(evaluation.status)) +
              " " + std::to_string(tries.size()) + (tries.empty() ? "" : " " + tries.back()) + "\n";
    }
    text += std::to_string(begun_again.size()) + " begun again";
    return text;
  };
  for (const int workers : {1, 3}) {
    const auto name = std::to_string(workers);
    const auto lines = [&](const Retries& retries, const std::string& more) {
      auto text = results(retries, name + more, workers);
      std::vector<std::string> parts;
      std::istringstream stream(text);
      for (std::string line; std::getline(stream, line);) parts.push_back(line);
      return parts;
    };
    EXPECT_THAT(lines({}, "none"),
                ::testing::UnorderedElementsAre("a failed 0", "b out_of_memory 0", "c ok 0",
                                                "0 begun again"));
    EXPECT_THAT(lines({.failed = 1, .out_of_memory = 2}, "some"),
                ::testing::UnorderedElementsAre("a failed 1 failed: no such operation",
                                                "b ok 2 out_of_memory: too big", "c ok 0",
                                                "3 begun again"));
    EXPECT_THAT(lines({.failed = 5}, "many"),
                ::testing::UnorderedElementsAre("a ok 2 failed: no such operation",
                                                "b out_of_memory 0", "c ok 0", "2 begun again"));
  }
}

TEST_F(EvaluatorTest, TriesThatAreRepeatedAreChargedToTheBudgetOfTime) {
  RecordingEvaluator::Options options;
  options.budget.train_seconds = 5.0;
  options.retries.timed_out = 2;
  const auto file = folder_ / "tries.sqlite";
  for (const bool again : {false, true}) {
    const Run run(file, options);
    run.fake->after_array_ = [&](std::span<const Assignment> array) {
      const auto& [task, evaluation] = array.front();
      if (run.fake->times_[task.id] <= 2) evaluation.status = Status::timed_out;
    };
    run.ask({{0, 0, 0, 0}});
    const auto recorded = run.store.evaluations().front();
    EXPECT_EQ(recorded.status, Status::ok);
    EXPECT_EQ(recorded.measured.value(kFailedSeconds, 0.0), 4.0);
    EXPECT_EQ(spent_seconds(recorded), 6.0);
    EXPECT_TRUE(run.ask({{0, 1, 0, 0}}).empty()) << "all is spent";
    EXPECT_EQ(run.fake->measured_, again ? 0 : 3);
  }
}

TEST_F(EvaluatorTest, WhatBelongsToAFinishedMeasurementIsDoneAfterItIsCommitted) {
  const auto file = folder_ / "s.sqlite";
  std::vector<std::string> seen;
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

TEST_F(EvaluatorTest, AValueBeyondNumbersIsADivergence) {
  const Run run(folder_ / "s.sqlite");
  run.fake->value_ = [](const std::string& candidate, std::int64_t replicate) {
    if (candidate[0] == 'b') return std::exp(710.0);
    if (candidate[0] == 'c') return std::nan("");
    return FakeMeasurement::value(candidate, replicate);
  };
  EXPECT_THAT(run.ask(kFour), ElementsAre(FakeMeasurement::value("d|a|a|0", 0), 1000.0, 1000.0,
                                          FakeMeasurement::value("a|a|a|0", 0)));
  std::map<char, Evaluation> by_first;
  for (const auto& evaluation : run.store.evaluations())
    by_first[evaluation.candidate[0]] = evaluation;
  EXPECT_EQ(by_first['b'].status, Status::diverged);
  EXPECT_EQ(by_first['b'].reason, "value = inf, must be finite");
  EXPECT_TRUE(std::isinf(by_first['b'].values.at("value")));
  EXPECT_EQ(by_first['c'].status, Status::diverged);
  EXPECT_EQ(by_first['a'].status, Status::ok);
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

TEST_F(EvaluatorTest, KilledProcessLosesNoFinishedEvaluation) {
  const auto file = folder_ / "killed.sqlite";
  RandomEngine random(3);
  for (int kill_number = 0; kill_number < 8; ++kill_number) {
    const int last = 1 + static_cast<int>(random.below(12));
    const pid_t child = fork();
    if (child == 0) {
      std::atomic<int> stored = 0;
      const Run run(file, {.workers = 2, .on_progress = [&](const Progress& progress) {
                             if (progress.kind == Progress::Kind::evaluation_finished) ++stored;
                           }});
      run.fake->on_measure_ = [&](int number, const Task&) {
        if (number != last) return;
        // What finished before is stored by another thread: all but what the other worker is at.
        while (stored < last - 2) std::this_thread::yield();
        kill(getpid(), SIGKILL);
      };
      run.search();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
  }
  // Not before: the thread sanitizer wants a process that forks to have run no threads.
  const auto whole = uninterrupted();
  const Run run(file, {.workers = 2});
  const auto known = run.store.evaluations().size();
  EXPECT_GT(known, 8U);
  run.search();
  EXPECT_EQ(comparable(run.store), whole);
  EXPECT_EQ(static_cast<std::size_t>(run.fake->measured_) + known, run.store.evaluations().size());
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

TEST_F(EvaluatorTest, AFailedReplicateFailsTheCandidate) {
  const Run run(folder_ / "s.sqlite", {.replicates = 2});
  run.fake->on_measure_ = [](int, const Task& task) {
    if (task.replicate == 0) throw CandidateFailure("unlucky");
  };
  const auto answer = run.evaluator->ask({FakeMeasurement::space().decode({0.1, 0, 1, 2})}).front();
  EXPECT_EQ(answer.status, Status::failed);
  EXPECT_THAT(answer.fitness, ElementsAre(1000.0));
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
  std::map<char, Evaluation> by_first;
  for (const auto& evaluation : run.store.evaluations())
    by_first[evaluation.candidate[0]] = evaluation;
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
  EXPECT_TRUE(run.ask(cheapest_first).empty());
  EXPECT_EQ(run.store.evaluations().size(), 3U);
  EXPECT_TRUE(run.store.asks().empty()) << "the first is not answered, so that none is";
}

TEST_F(EvaluatorTest, ArraysAndWorkersChangeNothingButMeasuredFields) {
  const auto whole = uninterrupted();
  for (const int workers : {1, 2}) {
    for (const std::int64_t width : {1, 3, 8}) {
      const auto name = std::to_string(workers) + " " + std::to_string(width);
      const Run run(folder_ / (name + ".sqlite"), {.workers = workers});
      run.fake->array_width_ = width;
      run.search();
      EXPECT_EQ(comparable(run.store), whole) << name;
      const auto widest = *std::max_element(run.fake->arrays_.begin(), run.fake->arrays_.end());
      EXPECT_EQ(widest > 1, width > 1) << name;
      EXPECT_LE(widest, static_cast<std::size_t>(width)) << name;
    }
  }
}

TEST_F(EvaluatorTest, WhichTasksAreAlikeChangesNothingEither) {
  const auto whole = uninterrupted();
  for (const int workers : {1, 2}) {
    const Run run(folder_ / (std::to_string(workers) + ".sqlite"), {.workers = workers});
    run.fake->array_width_ = 3;
    run.fake->kind_ = [](const Task& task) { return task.candidate.name[2]; };
    run.fake->on_array_ = [](std::span<const Assignment> array) {
      for (const auto& member : array) {
        EXPECT_EQ(member.task.candidate.name[2], array.front().task.candidate.name[2]);
      }
    };
    run.search();
    EXPECT_EQ(comparable(run.store), whole) << workers;
    EXPECT_GT(*std::max_element(run.fake->arrays_.begin(), run.fake->arrays_.end()), 1U);
  }
}

TEST_F(EvaluatorTest, EachMemberOfAnArrayIsChargedItsOwnShare) {
  for (const int workers : {1, 2}) {
    for (const std::int64_t width : {1, 3, 8}) {
      const auto name = std::to_string(workers) + " " + std::to_string(width);
      const Run run(folder_ / (name + ".sqlite"),  // each takes 2
                    {.workers = workers, .budget = {.train_seconds = 8.0}});
      run.fake->array_width_ = width;
      EXPECT_EQ(run.ask(kFour).size(), 4U) << name;
      EXPECT_EQ(run.evaluator->spent(), "8 s of training") << name;
      EXPECT_EQ(run.evaluator->num_evaluated(), 4) << name;
      EXPECT_EQ(run.fake->measured_, 4) << name;
    }
  }
}

TEST_F(EvaluatorTest, TasksAreDividedEvenlyInOrderOfTheirCost) {
  const Run run(folder_ / "s.sqlite");
  run.fake->array_width_ = 3;
  std::vector<std::string> members;
  run.fake->on_array_ = [&](std::span<const Assignment> array) {
    members.emplace_back();
    for (const auto& member : array) members.back() += member.task.candidate.name[0];
  };
  run.ask({kFour[2], kFour[0], kFour[3], kFour[1]});
  EXPECT_THAT(members, ElementsAre("dc", "ba"));
  for (const auto& evaluation : run.store.evaluations()) {
    EXPECT_EQ(evaluation.measured.at("array"), 2);
  }
}

TEST_F(EvaluatorTest, ReplicatesOfACandidateShareAnArray) {
  const Run run(folder_ / "s.sqlite", {.replicates = 3});
  run.fake->array_width_ = 3;
  run.fake->on_array_ = [&](std::span<const Assignment> array) {
    EXPECT_EQ(array.size(), 3U);
    for (const auto& member : array) {
      EXPECT_EQ(member.task.candidate.name, array.front().task.candidate.name);
    }
  };
  run.ask(kFour);
  EXPECT_EQ(run.fake->arrays_.size(), 4U);
}

TEST_F(EvaluatorTest, OnlyTasksThatWaitForAWorkerMakeArrays) {
  const Run run(folder_ / "s.sqlite", {.workers = 4});
  run.fake->array_width_ = 8;
  run.ask(kFour);
  EXPECT_THAT(run.fake->arrays_, ElementsAre(1U, 1U, 1U, 1U));
  EXPECT_EQ(run.fake->widths_asked_, 0) << "finding out may take a while";
  EXPECT_FALSE(run.store.evaluations().front().measured.contains("array"));
}

TEST_F(EvaluatorTest, AFailureTakesNoMateAlong) {
  const Run run(folder_ / "s.sqlite");
  run.fake->array_width_ = 4;
  run.fake->on_array_ = [](std::span<const Assignment> array) {
    if (array.size() > 1) array.back().evaluation.values["half done"] = 1;
  };
  run.fake->on_measure_ = [](int, const Task& task) {
    if (task.candidate.name[0] == 'b') throw CandidateFailure("broken tensor");
  };
  EXPECT_THAT(run.ask(kFour), ElementsAre(FakeMeasurement::value("d|a|a|0", 0),
                                          FakeMeasurement::value("c|a|a|0", 0), 1000.0,
                                          FakeMeasurement::value("a|a|a|0", 0)));
  EXPECT_THAT(run.fake->arrays_, ElementsAre(4U, 1U, 1U, 1U, 1U));
  for (const auto& evaluation : run.store.evaluations()) {
    EXPECT_EQ(evaluation.reason, evaluation.candidate[0] == 'b' ? "broken tensor" : "");
    EXPECT_FALSE(evaluation.values.contains("half done"));
    EXPECT_FALSE(evaluation.measured.contains("array"));
    EXPECT_EQ(evaluation.measured.at("array_failure"), "broken tensor");
  }
}

TEST_F(EvaluatorTest, AnArrayThatDoesNotFitIsHalved) {
  using Array = std::span<const Assignment>;
  const std::function<void(Array)> ways[] = {[](Array) { throw MemoryLimitExceeded("too big"); },
                                             [](Array) { throw DeviceOutOfMemory("full"); },
                                             [](Array array) {
                                               for (const auto& member : array)
                                                 member.evaluation.status = Status::out_of_memory;
                                             }};
  int number = 0;
  for (const auto& does_not_fit : ways) {
    const Run run(folder_ / (std::to_string(++number) + ".sqlite"));
    run.fake->array_width_ = 8;
    run.fake->after_array_ = [&](Array array) {
      const bool alone_too_big = array.front().task.candidate.name[0] == 'd';
      if (array.size() > 2 || alone_too_big) does_not_fit(array);
    };
    const auto values = run.ask({kFour[0], kFour[1], kFour[2], kFour[3], {1, 1, 0, 0}});
    EXPECT_THAT(values, ElementsAre(1000.0, FakeMeasurement::value("c|a|a|0", 0),
                                    FakeMeasurement::value("b|a|a|0", 0),
                                    FakeMeasurement::value("a|a|a|0", 0),
                                    FakeMeasurement::value("b|a|a|1", 0)));
    // Too little memory of a device for one alone is believed once nobody else is at work.
    std::vector<std::size_t> tried{5, 3, 2, 1, 1, 1, 2};
    if (number == 2) tried.push_back(1);
    EXPECT_EQ(run.fake->arrays_, tried) << number;
    for (const auto& evaluation : run.store.evaluations()) {
      EXPECT_EQ(evaluation.status == Status::out_of_memory, evaluation.candidate[0] == 'd');
    }
  }
}

TEST_F(EvaluatorTest, AStoppedArrayIsNotMeasuredInParts) {
  const Run run(folder_ / "s.sqlite");
  run.fake->array_width_ = 2;
  run.fake->on_measure_ = [](int number, const Task&) {
    if (number == 3) throw StopRequested();
  };
  EXPECT_THROW(run.ask(kFour), StopRequested);
  EXPECT_EQ(run.fake->measured_, 3);
  EXPECT_EQ(run.store.evaluations().size(), 2U) << "the array before it is kept";
}

TEST_F(EvaluatorTest, HowFarAnArrayIsCanBeHeard) {
  std::vector<Progress> heard;
  std::vector<std::string> candidates;
  const Run run(
      folder_ / "s.sqlite", {.on_progress = [&](const Progress& progress) {
        if (progress.kind != Progress::Kind::evaluation_advanced) return;
        heard.push_back(progress);
        candidates.push_back(progress.evaluation->candidate + " to " + progress.last->candidate);
      }});
  run.fake->array_width_ = 4;
  run.fake->on_array_ = [&](std::span<const Assignment> array) {
    run.fake->tell(array, {.step = 100, .steps = 400, .loss = 5.1});
  };
  run.ask(kFour);
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(candidates.front(), "d|a|a|0 to a|a|a|0");
  EXPECT_EQ(heard.front().advance.step, 100);
  EXPECT_EQ(heard.front().advance.steps, 400);
  EXPECT_EQ(heard.front().advance.loss, 5.1);
  EXPECT_EQ(heard.front().asked, 4);
  run.fake->tell({}, {});  // after the batch nobody listens
  EXPECT_EQ(heard.size(), 1U);
}

class RungTest : public EvaluatorTest {
 protected:
  std::shared_ptr<RecordingEvaluator> evaluator(Store& store,
                                                RecordingEvaluator::Options options = {}) {
    return std::make_shared<RecordingEvaluator>(
        stepping_, store,
        [set = fake_objectives()](Objective::Evaluations e) { return set.judge(e); }, options);
  }
  Task task(const std::string& name, std::int64_t until = 0) const {
    auto task = make_task(*stepping_, {name}, 0);
    task.until = until;
    return task;
  }
  /// Without what another process would measure otherwise.
  static std::string comparable(const Evaluation& evaluation) {
    return canonical_json(evaluation).dump() + evaluation.measured.at("train_seconds").dump();
  }

  std::shared_ptr<SteppingMeasurement> stepping_ = std::make_shared<SteppingMeasurement>();
  fs::path file_ = folder_ / "s.sqlite";
  const std::vector<std::string> names_{"a|a|a|0", "b|a|a|0", "c|a|a|0", "d|a|a|0"};
};

TEST_F(RungTest, TrainingGoesOnFromRungToRung) {
  Store store(file_);
  const auto evaluator = this->evaluator(store, {.workers = 2});
  std::vector<Task> first;
  for (const auto& name : names_) first.push_back(task(name, 10));
  for (const auto& answer : evaluator->evaluate(first)) {
    EXPECT_EQ(answer.status, Status::paused);
    EXPECT_EQ(answer.curve.size(), 1U);
  }
  EXPECT_EQ(stepping_->steps_, 40);
  EXPECT_EQ(store.partials().size(), 4U);
  EXPECT_TRUE(store.evaluations().empty());
  EXPECT_EQ(evaluator->evaluate({task(names_[1], 20), task(names_[3], 20)}).back().curve.size(),
            2U);
  EXPECT_EQ(stepping_->steps_, 60);
  EXPECT_EQ(store.find_partial(first[1].id)->curve.size(), 2U);
  EXPECT_EQ(evaluator->evaluate({task(names_[3])}).front().status, Status::ok);
  EXPECT_EQ(stepping_->steps_, 80);
  EXPECT_EQ(store.partials().size(), 3U);
  EXPECT_EQ(store.evaluations().size(), 1U);
}

TEST_F(RungTest, ALongerTrainingRunAnswersEarlierRungs) {
  std::string at_10, at_20;
  {
    Store store(folder_ / "straight.sqlite");
    const auto evaluator = this->evaluator(store);
    at_10 = comparable(evaluator->evaluate({task(names_[0], 10)}).front());
    at_20 = comparable(evaluator->evaluate({task(names_[0], 20)}).front());
  }
  const auto steps = stepping_->steps_;
  for (const std::int64_t before : {20, 0}) {
    const auto file = folder_ / ("after" + std::to_string(before));
    {
      Store store(file);
      (void)this->evaluator(store)->evaluate({task(names_[0], before)});
    }
    const auto taken = stepping_->steps_;
    Store store(file);
    const auto evaluator = this->evaluator(store);
    EXPECT_EQ(comparable(evaluator->evaluate({task(names_[0], 10)}).front()), at_10);
    EXPECT_EQ(comparable(evaluator->evaluate({task(names_[0], 20)}).front()), at_20);
    EXPECT_EQ(stepping_->steps_, taken) << "nothing is trained for that";
  }
  EXPECT_EQ(stepping_->steps_, steps + 20);
}

TEST_F(RungTest, WhatFailedLaterWasPausedBefore) {
  stepping_->fails_ = 'a';
  Store store(file_);
  const auto evaluator = this->evaluator(store);
  EXPECT_EQ(evaluator->evaluate({task(names_[0], 20)}).front().status, Status::diverged);
  EXPECT_EQ(store.evaluations().size(), 1U) << "it has ended";
  EXPECT_EQ(evaluator->evaluate({task(names_[0])}).front().status, Status::diverged);
  const auto again = evaluator->evaluate({task(names_[0], 10)}).front();
  EXPECT_EQ(again.status, Status::paused);
  EXPECT_EQ(again.reason, "");
  EXPECT_EQ(again.values.count("value"), 1U);
}

// Asks were answered by its failure, and are again where the search is repeated.
TEST_F(RungTest, WhatFailsAtARungHasNotComeToIt) {
  stepping_->on_measured_ = [](Evaluation& evaluation) {
    if (evaluation.curve.size() < 2) return;
    evaluation.status = Status::timed_out;
    evaluation.reason = "slow";
  };
  Store store(file_);
  EXPECT_EQ(evaluator(store)->evaluate({task(names_[0], 10)}).front().status, Status::paused);
  for (int process = 0; process < 2; ++process) {
    const auto answer = evaluator(store)->evaluate({task(names_[0], 20)}).front();
    EXPECT_EQ(answer.status, Status::timed_out) << process;
    EXPECT_EQ(answer.curve.size(), 1U);
  }
  EXPECT_EQ(evaluator(store)->evaluate({task(names_[0], 10)}).front().status, Status::paused);
}

TEST_F(RungTest, OfWhatWasMadeElsewhereTheStoreHasWhatItWouldHaveOfItsOwn) {
  Store elsewhere(folder_ / "elsewhere.sqlite");
  (void)evaluator(elsewhere)->evaluate({task(names_[0])});
  const auto steps = stepping_->steps_;
  Store store(file_);
  const auto evaluator = this->evaluator(
      store, {.recall = [&elsewhere](const std::string& id) { return elsewhere.find(id); }});
  for (const std::int64_t until : {10, 20}) {
    EXPECT_EQ(evaluator->evaluate({task(names_[0], until)}).front().status, Status::paused);
    EXPECT_TRUE(store.evaluations().empty());
    ASSERT_EQ(store.partials().size(), 1U);
    EXPECT_EQ(store.partials().front().curve.back().step, until);
  }
  EXPECT_EQ(evaluator->evaluate({task(names_[0])}).front().status, Status::ok);
  EXPECT_EQ(store.evaluations().size(), 1U);
  EXPECT_TRUE(store.partials().empty());
  EXPECT_EQ(stepping_->steps_, steps) << "nothing is trained again";
}

// Asks were answered by what it had come to, and the search is repeated by the same answers.
TEST_F(RungTest, WhatFailedWithoutACurveWasPausedBefore) {
  const auto ask = [this](Store& store, std::int64_t until) {
    return comparable(this->evaluator(store)->evaluate({task(names_[0], until)}).front());
  };
  for (const bool begins : {true, false}) {  // it fails while it trains, or before that
    Store store(folder_ / std::to_string(begins));
    const auto answered = ask(store, 20);
    const auto fail = [](const Task&) { throw CandidateFailure("no such operation"); };
    if (begins) {
      stepping_->on_measure_ = [&](int, const Task& task) { fail(task); };
    } else {
      stepping_->on_screen_ = [&](const Task& task, Evaluation&) { fail(task); };
    }
    (void)ask(store, 0);
    stepping_->on_measure_ = {};
    stepping_->on_screen_ = {};
    const auto failed = store.evaluations().front();
    EXPECT_EQ(failed.status, Status::failed);
    EXPECT_EQ(failed.reason, "no such operation");
    EXPECT_EQ(failed.measured.at("train_seconds"), 2.0) << "which it has taken";
    EXPECT_TRUE(store.partials().empty());
    EXPECT_EQ(ask(store, 20), answered);
  }
}

TEST_F(RungTest, WhatIsCheapIsMeasuredAgainAndTheLongestPartStays) {
  stepping_->expensive_ = false;
  Store store(file_, Store::Mode::write_cheap);
  const auto evaluator = this->evaluator(store);
  (void)evaluator->evaluate({task(names_[0], 20)});
  EXPECT_EQ(evaluator->evaluate({task(names_[0], 10)}).front().curve.size(), 1U);
  EXPECT_EQ(store.partials().front().curve.size(), 2U);
  (void)evaluator->evaluate({task(names_[0])});
  EXPECT_EQ(this->evaluator(store)->evaluate({task(names_[0], 20)}).front().status, Status::paused);
  EXPECT_TRUE(store.partials().empty());
  EXPECT_EQ(store.evaluations().front().status, Status::ok);
}

TEST_F(RungTest, ACandidateThatIsPausedIsJudgedSo) {
  Store store(file_);
  const auto answer = this->evaluator(store)->evaluate({task(names_[0], 10)}).front();
  const auto judgement = fake_objectives().judge(std::vector<const Evaluation*>{&answer});
  EXPECT_EQ(judgement.status, Status::paused);
  EXPECT_EQ(judgement.fitness.front(), answer.values.at("value"));
}

TEST_F(RungTest, TheBudgetOfStepsCutsTheLastBatchWhateverTheWorkers) {
  stepping_->fails_ = 'b';  // after 10 steps
  std::string expected;
  for (const int workers : {1, 3}) {
    Store store(folder_ / ("w" + std::to_string(workers)));
    const auto evaluator =
        this->evaluator(store, {.workers = workers, .budget = {.train_steps = 100}});
    const auto ask = [&](const std::vector<std::vector<double>>& vectors) {
      std::vector<Genotype> batch;
      for (const auto& vector : vectors) batch.push_back(FakeMeasurement::space().decode(vector));
      return evaluator->ask(batch).size();
    };
    EXPECT_EQ(ask({{0, 1, 0, 0}, {0, 0, 0, 0}}), 2U);  // 10 and 40 steps
    EXPECT_EQ(ask({{0, 2, 0, 0}, {0, 3, 0, 0}}), 1U);
    EXPECT_EQ(evaluator->spent(), "100 training steps");
    const auto asks = EvaluatorTest::comparable(store);
    if (expected.empty()) expected = asks;
    EXPECT_EQ(asks, expected);
  }
}

TEST_F(EvaluatorTest, EveryMemberOfAnArrayIsShown) {
  std::string seen;
  const Run run(folder_ / "s.sqlite", {.on_progress = [&](const Progress& progress) {
                  if (progress.evaluation == nullptr) return;
                  const bool started = progress.kind == Progress::Kind::evaluation_started;
                  seen += (started ? "<" : ">") + progress.evaluation->candidate.substr(0, 1);
                  if (!started) seen += std::to_string(progress.trained);
                }});
  run.fake->array_width_ = 2;
  run.ask(kFour);
  EXPECT_EQ(seen, "<d<c>d1>c2<b<a>b3>a4");
}

}  // namespace
}  // namespace nas::testing
