// Engines that are late, forgetful and repeat themselves change no result.

#include "evaluation/command_executor.hpp"

#include <csignal>
#include <fstream>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/stop.hpp"
#include "core/warning.hpp"
#include "places.hpp"
#include "unit/evaluator_fixture.hpp"

namespace nas::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

/// As fake_engine.py computes it.
double value_of(const std::string& candidate, std::int64_t replicate) {
  return static_cast<double>(std::accumulate(candidate.begin(), candidate.end(), replicate));
}

class CommandExecutorTest : public EvaluatorTest {
 protected:
  CommandExecutorTest() {
    signal(SIGPIPE, SIG_IGN);
    measurement_.value_ = value_of;
  }

  CommandExecutor::Settings settings(int seed, const std::string& kind = "") const {
    CommandExecutor::Settings settings;
    settings.command = {"python3", source_folder() + "/tests/unit/fake_engine.py",
                        std::to_string(seed), kind};
    settings.run = nlohmann::json::object();
    settings.log = folder_ / "engine.log";
    settings.grace = 10.0;
    return settings;
  }
  /// A whole search. @return what its store holds.
  std::string searched(const std::string& name, std::shared_ptr<Executor> executor) {
    const Run run(folder_ / (name + ".sqlite"), {.executor = std::move(executor)});
    run.fake->value_ = value_of;
    run.fake->kind_ = measurement_.kind_;
    run.search();
    return comparable(run.store);
  }
  void submit(Executor& executor, const std::string& letters) {
    for (const char letter : letters) {
      auto task = make_task(measurement_, {std::string(1, letter) + "|a|a|0.5"}, 0);
      Evaluation begun;
      begun.id = task.id;
      begun.candidate = task.candidate.name;
      begun.measured = nlohmann::json::object();
      executor.submit(std::move(task), std::move(begun));
    }
  }
  static std::map<std::string, Evaluation> rest(Executor& executor) {
    std::map<std::string, Evaluation> finished;
    while (const auto event = executor.next()) {
      for (const auto& evaluation : event->evaluations) {
        EXPECT_TRUE(finished.emplace(evaluation.candidate, evaluation).second) << "it came twice";
      }
    }
    return finished;
  }
  /// Why an engine's work ends before its time.
  std::string failure(const std::string& kind, const std::string& device = "auto") {
    auto chosen = settings(1, kind);
    chosen.device = device;
    CommandExecutor executor(measurement_, chosen);
    submit(executor, "abc");
    try {
      rest(executor);
    } catch (const MachineError& error) {
      return error.what();
    }
    return "";
  }

  FakeMeasurement measurement_;
};

TEST_F(CommandExecutorTest, NoHistoryOfWorkersChangesASearch) {
  const auto alone = searched("alone", nullptr);
  for (int seed = 0; seed < 20; ++seed) {
    auto chosen = settings(seed);
    chosen.array = static_cast<std::size_t>(1 + seed % 4);
    const auto executor = std::make_shared<CommandExecutor>(measurement_, chosen);
    ASSERT_EQ(searched("seed" + std::to_string(seed), executor), alone) << "seed " << seed;
  }
}

TEST_F(CommandExecutorTest, OrdersHoldTasksThatAreAlike) {
  measurement_.kind_ = [](const Task& task) { return task.candidate.name[0] < 'c' ? 'x' : 'y'; };
  auto chosen = settings(1);
  chosen.array = 2;
  CommandExecutor executor(measurement_, chosen);
  submit(executor, "abcd");
  std::set<std::set<std::string>> together;
  while (const auto event = executor.next()) {
    std::set<std::string> names;
    for (const auto& evaluation : event->evaluations)
      names.insert(evaluation.candidate.substr(0, 1));
    if (!names.empty()) together.insert(names);
  }
  for (const auto& names : together) {
    EXPECT_TRUE(!names.contains("a") || !names.contains("c"));
    EXPECT_TRUE(!names.contains("b") || !names.contains("d"));
    EXPECT_TRUE(!names.contains("a") || !names.contains("d"));
    EXPECT_TRUE(!names.contains("b") || !names.contains("c"));
  }
}

TEST_F(CommandExecutorTest, WhatKillsThreeWorkersHasFailedAndItsNeighboursHaveNot) {
  auto chosen = settings(1, "deadly");
  chosen.array = 3;
  CommandExecutor executor(measurement_, chosen);
  submit(executor, "adb");
  const auto finished = rest(executor);
  ASSERT_EQ(finished.size(), 3U);
  EXPECT_EQ(finished.at("a|a|a|0.5").status, Status::ok);
  EXPECT_EQ(finished.at("b|a|a|0.5").status, Status::ok);
  const auto& failed = finished.at("d|a|a|0.5");
  EXPECT_EQ(failed.status, Status::failed);
  EXPECT_EQ(failed.reason, "its workers died 3 times: killed by signal 9");
}

TEST_F(CommandExecutorTest, HowManyWorkersATaskMayKillIsSaid) {
  auto chosen = settings(1, "deadly");
  chosen.retries = 0;
  CommandExecutor executor(measurement_, chosen);
  submit(executor, "d");
  EXPECT_EQ(rest(executor).at("d|a|a|0.5").reason, "its workers died 1 times: killed by signal 9");
}

TEST_F(CommandExecutorTest, ABrokenMachineIsNoFaultOfAMechanism) {
  std::vector<std::string> warnings;
  const WarningListener listener([&](const std::string& text) { warnings.push_back(text); });
  auto chosen = settings(1, "broken");
  chosen.array = 3;
  chosen.retries = 0;
  CommandExecutor executor(measurement_, chosen);
  submit(executor, "abc");
  const auto finished = rest(executor);
  ASSERT_EQ(finished.size(), 3U);
  for (const auto& [name, evaluation] : finished) EXPECT_EQ(evaluation.status, Status::ok);
  EXPECT_THAT(warnings, ElementsAre("the worker node1 is set aside: no nas-work"));
  EXPECT_THAT(failure("useless"),
              MatchesRegex("20 times a machine has failed with [abc].a.a.0.5: there is no nas-work "
                           "on PATH"));
}

TEST_F(CommandExecutorTest, AWorkerIsAskedBeforeTheTraining) {
  for (int seed = 0; seed < 4; ++seed) {
    CommandExecutor executor(measurement_, settings(seed));
    const auto task = make_task(measurement_, {"a|a|a|0.5"}, 0);
    const auto found = executor.inspect(task, "latency");
    EXPECT_EQ(found.status, Status::ok);
    EXPECT_EQ(found.id, task.id);
    EXPECT_EQ(found.measured.at("latency").at("value"), 3);
    submit(executor, "a");  // of the same id
    EXPECT_EQ(rest(executor).at("a|a|a|0.5").values.at("value"), value_of("a|a|a|0.5", 0))
        << "what was asked before is no result, seed " << seed;
  }
  CommandExecutor executor(measurement_, settings(1, "hot"));
  const auto failed = executor.inspect(make_task(measurement_, {"a|a|a|0.5"}, 0), "latency");
  EXPECT_EQ(failed.status, Status::failed);
  EXPECT_EQ(failed.reason, "it burns");
}

TEST_F(CommandExecutorTest, TheFirstWorkerSaysHowWideArraysAre) {
  const auto widest = [this](const std::string& letters, std::size_t array) {
    auto chosen = settings(2, "certain");
    chosen.array = array;
    CommandExecutor executor(measurement_, chosen);
    submit(executor, letters);
    std::size_t most = 0;
    while (const auto event = executor.next()) most = std::max(most, event->ids.size());
    EXPECT_EQ(executor.workers(), 4) << "its slots";
    return most;
  };
  EXPECT_EQ(widest("abcdefghijkl", 0), 3U);
  EXPECT_EQ(widest("abcdefghi", 0), 3U);
  EXPECT_EQ(widest("abcd", 0), 1U) << "no slot idles beside a wide array";
}

TEST_F(CommandExecutorTest, TellsWhoWorks) {
  Workforce told;
  auto chosen = settings(1);
  chosen.on_workforce = [&](const Workforce& workforce) { told = workforce; };
  CommandExecutor executor(measurement_, chosen);
  submit(executor, "a");
  rest(executor);
  EXPECT_EQ(told.workers, 2);
  EXPECT_EQ(told.slots, 4);
}

TEST_F(CommandExecutorTest, AnEngineThatEndsOrWritesGarbageEndsTheWork) {
  EXPECT_THAT(
      failure("garbage"),
      HasSubstr("wrote what is no line of its protocol: Traceback (most recent call last):"));
  EXPECT_THAT(failure("garbage"), HasSubstr("it said last:\nsomething is wrong here"));
  EXPECT_THAT(failure("unknown"), HasSubstr("wrote kind = what, must be workers, progress"));
  EXPECT_THAT(failure("dies"), HasSubstr("ended (exit code 3); it said last:\nsomething is wrong"));
}

TEST_F(CommandExecutorTest, AnEngineThatIsNotThereIsSaid) {
  auto chosen = settings(1);
  chosen.command = {"no-such-engine"};
  try {
    const CommandExecutor executor(measurement_, chosen);
    FAIL();
  } catch (const MachineError& error) {
    EXPECT_STREQ(error.what(),
                 "the engine cannot be started: no-such-engine: No such file or directory");
  }
}

TEST_F(CommandExecutorTest, WhatWouldBeMeasuredOtherwiseIsRefused) {
  EXPECT_EQ(
      failure("refuses"),
      "a worker would measure otherwise than this run: revision = a, must be b to be measured "
      "here");
  EXPECT_THAT(failure("different"), HasSubstr("has come twice with different results"));
}

TEST_F(CommandExecutorTest, AFleetHasOneModelOfDevice) {
  EXPECT_THAT(failure("device"),
              HasSubstr("the worker b has the device slide rule, must be abacus"));
  EXPECT_THAT(failure("", "slide rule"), HasSubstr("has the device abacus, must be slide rule"));
  EXPECT_EQ(failure("device", "mixed"), "");
  EXPECT_EQ(failure("", "abacus"), "");
}

TEST_F(CommandExecutorTest, WhatIsWithdrawnIsNotWaitedFor) {
  CommandExecutor executor(measurement_, settings(1, "idle"));
  submit(executor, "ab");
  executor.withdraw();
  EXPECT_EQ(executor.next(), std::nullopt);
  submit(executor, "a");
  executor.abandon();
  EXPECT_EQ(executor.next(), std::nullopt);
}

TEST_F(CommandExecutorTest, AStopIsHeardWhereNobodyWorks) {
  int told = 0;
  auto chosen = settings(1, "idle");
  chosen.command = {"sleep", "100"};
  chosen.grace = 0.1;
  chosen.patience = 0.1;
  chosen.on_nobody = [&] { ++told; };
  CommandExecutor executor(measurement_, chosen);
  submit(executor, "a");
  const StopDeadline stop(1.0);
  EXPECT_THROW((void)executor.next(), StopRequested);
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace nas::testing
