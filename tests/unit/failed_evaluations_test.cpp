// What fails, of a candidate, of a machine, or too often.

#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "core/fault.hpp"
#include "core/stop.hpp"
#include "evaluation/outcomes.hpp"
#include "prelude.hpp"
#include "unit/evaluator_fixture.hpp"

namespace nas::testing {
namespace {

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
  auto by_first = by_letter(run.store);
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
    Texts begun_again;
    run.fake->on_recorded_ = [&](const Evaluation& evaluation) {
      if (!run.store.find(evaluation.id)) begun_again.push_back(evaluation.candidate.substr(0, 1));
    };
    run.ask({{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 2, 0, 0}});
    std::string text;
    for (const auto& evaluation : run.store.evaluations()) {
      const auto tries = evaluation.measured.value("failed_tries", Texts());
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
      Texts parts;
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

TEST_F(EvaluatorTest, AValueBeyondNumbersIsADivergence) {
  const Run run(folder_ / "s.sqlite");
  run.fake->value_ = [](const std::string& candidate, std::int64_t replicate) {
    if (candidate[0] == 'b') return std::exp(710.0);
    if (candidate[0] == 'c') return std::nan("");
    return FakeMeasurement::value(candidate, replicate);
  };
  EXPECT_THAT(run.ask(kFour), ElementsAre(FakeMeasurement::value("d|a|a|0", 0), 1000.0, 1000.0,
                                          FakeMeasurement::value("a|a|a|0", 0)));
  auto by_first = by_letter(run.store);
  EXPECT_EQ(by_first['b'].status, Status::diverged);
  EXPECT_EQ(by_first['b'].reason, "value = inf, must be finite");
  EXPECT_TRUE(std::isinf(by_first['b'].values.at("value")));
  EXPECT_EQ(by_first['c'].status, Status::diverged);
  EXPECT_EQ(by_first['a'].status, Status::ok);
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

}  // namespace
}  // namespace nas::testing
