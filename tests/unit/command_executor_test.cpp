// Engines that are late, forgetful and repeat themselves change no result.

#include "evaluation/command_executor.hpp"

#include <chrono>
#include <thread>

#include <sys/stat.h>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/stop.hpp"
#include "core/warning.hpp"
#include "prelude.hpp"
#include "unit/command_executor_fixture.hpp"
#include "unit/stepping_measurement.hpp"

namespace nas::testing {
namespace {

TEST_F(CommandExecutorTest, NoHistoryOfWorkersChangesASearch) {
  const auto alone = searched("alone", nullptr);
  for (int seed = 0; seed < 8; ++seed) {
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

TEST_F(CommandExecutorTest, ABrokenMachineIsNoFaultOfAMechanism) {
  Texts warnings;
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
  for (int seed = 0; seed < 2; ++seed) {
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

TEST_F(CommandExecutorTest, AnEngineThatEndsOrWritesGarbageEndsTheWork) {
  EXPECT_THAT(
      failure("garbage"),
      HasSubstr("wrote what is no line of its protocol: Traceback (most recent call last):"));
  EXPECT_THAT(failure("garbage"), HasSubstr("it said last:\nsomething is wrong here"));
  EXPECT_THAT(failure("unknown"), HasSubstr("(kind = \"what\", must be workers, progress"));
  EXPECT_THAT(failure("dies"), HasSubstr("ended (exit code 3); it said last:\nsomething is wrong"));
}

TEST_F(CommandExecutorTest, AnEngineThatIsNotThereIsSaid) {
  auto chosen = settings(1);
  chosen.command = {"no-such-engine"};
  EXPECT_EQ(message_of<MachineError>([&] { const CommandExecutor executor(measurement_, chosen); }),
            "the engine cannot be started: no-such-engine: No such file or directory");
}

TEST_F(CommandExecutorTest, OnlyWhatThisEngineSaidIsSaidOfIt) {
  temporary_.write("engine.log", std::string(500, 'x') + "\nof yesterday\n");
  EXPECT_THAT(failure("dies"), EndsWith("it said last:\nsomething is wrong here"));
  EXPECT_EQ(read_bytes(folder_ / "engine.log"), "something is wrong here\n");
}

TEST_F(CommandExecutorTest, ItsLogIsWrittenThroughNoLink) {
  const auto chosen = settings(1);
  const auto refusal = [&] {
    return message_of<InputError>([&] { const CommandExecutor executor(measurement_, chosen); });
  };
  const auto expected =
      chosen.log.string() + ": is a link or no regular file, must be a file without other names";
  const auto victim = temporary_.write("victim", "of somebody");
  fs::create_symlink(victim, chosen.log);
  EXPECT_EQ(refusal(), expected);
  fs::remove(chosen.log);
  fs::create_hard_link(victim, chosen.log);
  EXPECT_EQ(refusal(), expected);
  EXPECT_EQ(read_bytes(victim), "of somebody");
  fs::remove(chosen.log);
  ASSERT_EQ(mkfifo(chosen.log.c_str(), 0600), 0);
  EXPECT_EQ(refusal(), expected) << "nobody reads it";
  fs::remove(chosen.log);
  fs::create_directory(chosen.log);
  EXPECT_EQ(refusal(), chosen.log.string() + ": cannot be written: Is a directory");
}

TEST_F(CommandExecutorTest, TheEndOfAnEngineIsSeenThoughWhatItStartedHoldsItsPipes) {
  for (const auto* script : {"sleep 20 & exit 3", "setsid sleep 20 & exit 3",
                             "exec 3<&0; setsid sleep 20 <&3 & exit 3"}) {
    auto chosen = settings(1);
    chosen.command = {"sh", "-c", script};
    chosen.run = {{"more", std::string(500'000, 'x')}};  // than the pipe to it takes
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_THAT(message_of<MachineError>([&] {
                  CommandExecutor executor(measurement_, chosen);
                  submit(executor, "a");
                  rest(executor);
                }),
                EndsWith(" ended (exit code 3)"));
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10)) << script;
  }
}

TEST_F(CommandExecutorTest, WhatComesAMomentAfterItsEndIsHeard) {
  auto chosen = settings(1);
  chosen.command = {
      "sh", "-c",
      R"((sleep 0.3; echo '{"kind": "refused", "reason": "it is late"}'; exec sleep 20) & exit 3)"};
  EXPECT_EQ(message_of<MachineError>([&] {
              CommandExecutor executor(measurement_, chosen);
              submit(executor, "a");
              rest(executor);
            }),
            "a worker would measure otherwise than this run: it is late");
}

TEST_F(CommandExecutorTest, WhatAnEngineLeavesRunningDelaysNoEnd) {
  const auto begun = std::chrono::steady_clock::now();
  {
    auto chosen = settings(1);
    chosen.command.insert(chosen.command.begin(),
                          {"sh", "-c", R"(setsid sleep 20 & exec "$@")", "sh"});
    CommandExecutor executor(measurement_, chosen);
    submit(executor, "a");
    EXPECT_EQ(rest(executor).size(), 1U);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
}

/// An engine that writes 200 lines of 1 MiB, says after each how many, and reads nothing meanwhile.
class FloodTest : public CommandExecutorTest {
 protected:
  FloodTest() {
    const auto flood = temporary_.write("flood.py", R"(
import os, sys

for i in range(110):
    left = b'{"kind": "workers", "count": 1, "more": "' + b"x" * 2**20 + b'"}\n'
    while left:
        left = left[os.write(1, left):]
    with open(sys.argv[1], "a") as written:
        written.write("x")
os.execvp(sys.argv[2], sys.argv[2:])
)");
    chosen_.command.insert(chosen_.command.begin(), {"python3", flood, written_.string()});
  }
  /// Waits until it writes no more.
  [[nodiscard]] std::size_t lines_written() const {
    for (std::size_t before = 0;;) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      const auto now = read_bytes(written_).size();
      if (now == before) return now;
      before = now;
    }
  }

  fs::path written_ = temporary_.write("written", "");
  CommandExecutor::Settings chosen_ = settings(1);
};

TEST_F(FloodTest, LinesThatNobodyReadsWaitWithTheEngine) {
  // It reads no order before it has written all: who waits for that would wait for ever.
  chosen_.run = {{"more", std::string(500'000, 'x')}};
  CommandExecutor executor(measurement_, chosen_);
  submit(executor, "abc");
  const auto written = lines_written();
  EXPECT_GE(written, 60U);
  EXPECT_LT(written, 100U);
  EXPECT_EQ(rest(executor).size(), 3U) << "it goes on where it is heard";
  EXPECT_EQ(read_bytes(written_).size(), 110U);
}

TEST_F(FloodTest, AnEngineThatWaitsToBeHeardEndsInOrder) {
  {
    const CommandExecutor executor(measurement_, chosen_);
    EXPECT_LT(lines_written(), 100U);
  }
  EXPECT_EQ(read_bytes(written_).size(), 110U) << "it was killed";
}

TEST_F(CommandExecutorTest, WhatIsNoTextIsWrittenAllTheSame) {
  auto chosen = settings(1);
  chosen.run = {{"name", "caf\xe9"}};
  CommandExecutor executor(measurement_, chosen);
  submit(executor, "a");
  EXPECT_EQ(rest(executor).size(), 1U);
}

TEST_F(CommandExecutorTest, WhatWouldBeMeasuredOtherwiseIsRefused) {
  EXPECT_EQ(
      failure("refuses"),
      "a worker would measure otherwise than this run: revision = a, must be b to be measured "
      "here");
  EXPECT_THAT(failure("different"), HasSubstr("has come twice with different results"));
}

TEST_F(CommandExecutorTest, ATrainingRunGoesOnFromRungToRung) {
  for (int seed = 0; seed < 3; ++seed) {
    SteppingMeasurement measurement;
    CommandExecutor executor(measurement, settings(seed, "trained"));
    for (const std::int64_t until : {10, 20, 0}) {
      for (const auto* name : {"a|a|a|0.5", "b|a|a|0.5"}) {
        auto task = make_task(measurement, {name}, 0);
        task.until = until;
        auto begun = unmeasured(task);
        executor.submit(std::move(task), std::move(begun));
      }
      const auto finished = rest(executor);
      ASSERT_EQ(finished.size(), 2U) << "seed " << seed;
      for (const auto& [name, evaluation] : finished) {
        EXPECT_EQ(evaluation.status, until > 0 ? Status::paused : Status::ok);
        EXPECT_EQ(evaluation.curve.back().step, until > 0 ? until : 40) << "seed " << seed;
      }
    }
  }
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

TEST_F(CommandExecutorTest, WhatHasComeBeforeAStopIsTold) {
  CommandExecutor executor(measurement_, settings(1, "certain"));
  submit(executor, "abc");
  std::size_t finished = 0;
  const auto hear = [&] {
    const auto event = executor.next();
    if (event) finished += event->evaluations.size();
    return event.has_value();
  };
  ASSERT_TRUE(hear());  // the orders are out
  std::this_thread::sleep_for(std::chrono::seconds(2));
  request_stop();
  try {
    while (hear()) {
    }
  } catch (const StopRequested&) {
  }
  EXPECT_EQ(finished, 3U);
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
