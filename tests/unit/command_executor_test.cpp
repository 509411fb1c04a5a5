// Engines that are late, forgetful and repeat themselves change no result.

#include "evaluation/command_executor.hpp"

#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/stop.hpp"
#include "core/warning.hpp"
#include "places.hpp"
#include "unit/evaluator_fixture.hpp"
#include "unit/message_of.hpp"
#include "unit/stepping_measurement.hpp"

namespace nas::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

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
      auto begun = unmeasured(task);
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
  std::filesystem::create_symlink(victim, chosen.log);
  EXPECT_EQ(refusal(), expected);
  std::filesystem::remove(chosen.log);
  std::filesystem::create_hard_link(victim, chosen.log);
  EXPECT_EQ(refusal(), expected);
  EXPECT_EQ(read_bytes(victim), "of somebody");
  std::filesystem::remove(chosen.log);
  ASSERT_EQ(mkfifo(chosen.log.c_str(), 0600), 0);
  EXPECT_EQ(refusal(), expected) << "nobody reads it";
  std::filesystem::remove(chosen.log);
  std::filesystem::create_directory(chosen.log);
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

  std::filesystem::path written_ = temporary_.write("written", "");
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

/// Workers that answer what a merge patch makes of an honest answer (fake_engine.py).
class LyingWorkerTest : public CommandExecutorTest {
 protected:
  using Json = nlohmann::json;

  /// @param line, evaluation  patches of an answer and of its first evaluation.
  CommandExecutor::Settings lying(const Json& line, const Json& evaluation,
                                  const std::string& kind = "lie") const {
    const auto file = folder_ / "lie.json";
    std::ofstream(file) << Json{{"line", line}, {"evaluation", evaluation}};
    auto chosen = settings(1, kind);
    chosen.command.push_back(file.string());
    return chosen;
  }
  /// Has a training run made of which something is known beforehand.
  void submit_known(Executor& executor, std::int64_t until) const {
    auto task = make_task(stepping_, {"a|a|a|0.5"}, 0);
    task.until = until;
    auto begun = unmeasured(task);
    begun.values["flops"] = 5.0;
    begun.measured["latency"] = {{"value", 2.5}};
    executor.submit(std::move(task), std::move(begun));
  }
  /// What ends a run whose only worker lies.
  std::string refusal(const Json& line, const Json& evaluation, std::int64_t until = 0) {
    CommandExecutor executor(stepping_, lying(line, evaluation));
    submit_known(executor, until);
    return message_of<MachineError>([&] { rest(executor); });
  }

  SteppingMeasurement stepping_;
};

/// The beginning of what is said of each lie.
constexpr const char* kThrice =
    "the worker node1:7 has answered what cannot be true 3 times in a row, nothing of which is "
    "recorded, the last time: ";

/// A point of a curve, as JSON. @param tokens, train_nll, seconds  as they are written.
std::string point(int step, const std::string& tokens = "3", const std::string& train_nll = "0.5",
                  const std::string& seconds = "1.5") {
  return R"({"step": )" + std::to_string(step) + R"(, "train_nll": )" + train_nll +
         R"(, "seconds": )" + seconds + R"(, "valid": {"nll": 1.5, "tokens": )" + tokens +
         R"(, "correct": 0, "pad_nll": 0.0, "pad_tokens": 0, "unknown_nll": 0.0,)" +
         R"("unknown_tokens": 0, "batch_mean_nll": 0.5, "batches": 1}})";
}
std::string curve(const std::string& points, const std::string& status = "ok") {
  return R"({"status": ")" + status + R"(", "curve": [)" + points + "]}";
}

TEST_F(LyingWorkerTest, AWorkerThatLiesIsRefusedAndNamed) {
  struct Lie {
    std::string evaluation;
    std::string why;
    std::int64_t until = 0;
  };
  const std::string amount = "must be a number of at least 0";
  const std::vector<Lie> lies{
      // Of another task.
      {R"({"id": "0"})", R"(id = "0", must be ")"},
      {R"({"id": null})", "id is missing"},
      {R"({"id": 7})", "id = 7, must be a text"},
      {R"({"candidate": "d|d|d|0"})", R"(candidate = "d|d|d|0", must be "a|a|a|0.5")"},
      {R"({"replicate": 1})", "replicate = 1, must be 0"},
      {R"({"replicate": -1})", "replicate = -1, must be a whole number from 0 to"},
      {R"({"identity": {"fake": 2}})", "identity.fake = 2, must be 1"},
      {R"({"identity": {"more": true}})", "identity.more = true, must be null"},
      {R"({"identity": "mine"})", R"(identity = "mine", must be an object)"},
      // Values of a wrong type, or none.
      {R"({"status": "splendid"})", "unknown status 'splendid', known: ok, stopped_early, "},
      {R"({"status": 0})", "status = 0, must be a text"},
      {R"({"reason": false})", "reason = false, must be a text"},
      {R"({"values": null})", "values is missing"},
      {R"({"values": [1.0]})", "values = [1.0], must be an object"},
      {R"({"values": {"perplexity": null}})", "values.perplexity is missing"},
      {R"({"values": {"perplexity": "good"}})", R"(values.perplexity = "good", must be a number)"},
      {R"({"values": {"perplexity": true}})", "values.perplexity = true, must be a number"},
      {R"({"values": {"flops": 4}})", "values.flops = 4.0, must be 5.0, as it was known before"},
      {R"({"values": {"flops": null}})", "values.flops = null, must be 5.0"},
      {R"({"measured": [1.0]})", "measured = [1.0], must be an object"},
      {R"({"measured": {"train_seconds": null}})", "measured.train_seconds is missing"},
      {R"({"measured": {"train_seconds": "x"}})", R"(measured.train_seconds = "x", )" + amount},
      {R"({"measured": {"train_seconds": -1.0}})", "measured.train_seconds = -1.0, " + amount},
      {R"({"measured": {"failed_seconds": -1.0}})", "measured.failed_seconds = -1.0, " + amount},
      {R"({"measured": {"cpu_seconds": true}})", "measured.cpu_seconds = true, " + amount},
      {R"({"measured": {"array": 0}})", "measured.array = 0, must be a whole number from 1 to"},
      {R"({"measured": {"started": 12}})", "measured.started = 12, must be a text"},
      {R"({"measured": {"latency": {"value": 1.0}}})",
       R"(measured.latency = {"value":1.0}, must be {"value":2.5}, as it was measured before)"},
      {R"({"measured": {"latency": null}})", R"(measured.latency = null, must be {"value":2.5})"},
      // Curves that no training run has.
      {R"({"curve": {}})", "curve = {}, must be a list"},
      {curve("7"), "step is missing"},
      {curve(""), "curve = [], must be that of a training run, not empty"},
      {curve("", "stopped_early"),
       "curve = [], must be that of a training run which is stopped_early, not empty"},
      {curve("", "paused"),
       "curve = [], must be that of a training run which is paused, not empty"},
      {curve(point(20) + "," + point(20)), "curve[1].step = 20, must be more than 20"},
      {curve(point(-1)), "curve[0].step = -1, must be a whole number from 0 to"},
      {curve(point(40, "3", R"("nan")")),
       "curve[0] is not finite, must be in a training run which"},
      {curve(point(1, "1e300")), "curve[0].valid.tokens = 1e+300, must be a whole number from -1"},
      {curve(point(1, "18446744073709551615")),
       "curve[0].valid.tokens = 18446744073709551615, must"},
      {curve(point(1, "true")), "curve[0].valid.tokens = true, must be a whole number from -1 to"},
      {curve(point(1, "3", "[]")), "curve[0].train_nll = [], must be a number"},
      {curve(point(1, "3", "0.5", "-1")), "curve[0].seconds = -1, " + amount},
      {curve(point(7) + "," + point(40)), "curve[0].step = 7, must be a validation step"},
      {curve(point(20)), "the last step of its curve = 20, must be 40, at which a training run"},
      {R"({"values": {"perplexity": -5.0}})", "values.perplexity = -5.0, must be 1.648"},
      // Paused where it was to end, or too soon.
      {R"({"status": "paused"})", R"(status = "paused", must be that of an end)"},
      {curve(point(10), "paused"), "the last step of its curve = 10, must be at least 20", 20},
      // Too long, and too deep.
      {R"({"reason": ")" + std::string(2'000'000, 'x') + R"("})", "bytes, must have at most "},
      {R"({"more": ")" + std::string(2'000'000, 'x') + R"("})", "bytes, must have at most "},
      {R"({"measured": {"deep": )" + std::string(200, '[') + std::string(200, ']') + "}}",
       "its JSON is nested more than 100 deep"},
  };
  EXPECT_EQ(refusal({}, {}), "nothing was thrown") << "that was the truth";
  EXPECT_EQ(refusal({}, {}, 20), "nothing was thrown");
  for (const auto& lie : lies) {
    const auto said = refusal({}, Json::parse(lie.evaluation), lie.until);
    EXPECT_THAT(said, StartsWith(kThrice)) << lie.why;
    EXPECT_THAT(said, HasSubstr(" of a|a|a|0.5, replicate 0: ")) << lie.why;
    EXPECT_THAT(said, HasSubstr(lie.why));
  }
}

TEST_F(LyingWorkerTest, AnAnswerThatIsNoneIsRefusedToo) {
  const auto refused = [this](const char* line) {
    const auto said = refusal(Json::parse(line), {});
    EXPECT_THAT(said, StartsWith(std::string(kThrice) + "order of a|a|a|0.5, replicate 0: "));
    return said;
  };
  EXPECT_THAT(refused(R"({"evaluations": []})"),
              HasSubstr("0 evaluations, must be 1: one of each"));
  EXPECT_THAT(refused(R"({"evaluations": null})"), HasSubstr("evaluations is missing"));
  EXPECT_THAT(refused(R"({"evaluations": 7})"), HasSubstr("evaluations = 7, must be a list"));
  EXPECT_THAT(refused(R"({"device": 7})"), HasSubstr("device = 7, must be a text"));
  EXPECT_THAT(refused(R"({"measure": "latency"})"),
              HasSubstr(R"(measure = "latency", must be left out: its order is trained)"));
  EXPECT_THAT(refused(R"({"kind": "progress"})"), HasSubstr("step is missing"));
  EXPECT_THAT(refused(R"({"kind": "progress", "step": "x"})"), HasSubstr(R"(step = "x", must be)"));
  EXPECT_THAT(refused(R"({"kind": "progress", "step": 1, "steps": -1})"), HasSubstr("steps = -1"));
  EXPECT_THAT(refused(R"({"kind": "progress", "step": 4000000, "steps": 100})"),
              HasSubstr("steps = 100, must be a whole number from 4000000 to "));
  EXPECT_THAT(refused(R"({"kind": "progress", "step": 1, "loss": "small"})"),
              HasSubstr(R"(loss = "small", must be a number)"));
  EXPECT_THAT(refusal(Json::parse(R"({"worker": null, "evaluations": []})"), {}),
              StartsWith("the worker without a name has answered what cannot be true"));
  EXPECT_THAT(refusal(Json::parse(R"({"order": null})"), {}),
              HasSubstr("wrote what is no line of its protocol"))
      << "it is nobody's";
}

TEST_F(LyingWorkerTest, WhatIsMeasuredBeforeATrainingRunIsNotBelievedEither) {
  const auto refused = [this](const std::string& what, const char* line, const char* evaluation) {
    CommandExecutor executor(stepping_, lying(Json::parse(line), Json::parse(evaluation)));
    const auto task = make_task(stepping_, {"a|a|a|0.5"}, 0);
    const auto said = message_of<MachineError>([&] { (void)executor.inspect(task, what); });
    EXPECT_TRUE(said == "nothing was thrown" || said.starts_with(kThrice)) << said;
    return said;
  };
  EXPECT_EQ(refused("latency", "{}", "{}"), "nothing was thrown");
  EXPECT_EQ(refused("latency", "{}", R"({"status": "failed"})"), "nothing was thrown");
  EXPECT_THAT(refused("latency", R"({"evaluations": []})", "{}"), HasSubstr("0 evaluations"));
  EXPECT_THAT(refused("latency", R"({"measure": null})", "{}"),
              HasSubstr(R"(measure = "", must be latency)"));
  EXPECT_THAT(refused("latency", R"({"measure": "energy"})", "{}"),
              HasSubstr(R"(measure = "energy", must be latency)"));
  EXPECT_THAT(refused("latency", "{}", R"({"replicate": 1})"),
              HasSubstr("replicate = 1, must be 0"));
  EXPECT_THAT(refused("latency", "{}", R"({"status": "stopped_early"})"), HasSubstr("must be"));
  EXPECT_THAT(refused("latency", "{}", R"({"measured": {"latency": null}})"),
              HasSubstr("measured.latency is missing"));
  EXPECT_THAT(refused("latency", "{}", R"({"measured": {"latency": 3}})"),
              HasSubstr("measured.latency = 3, must be an object"));
  EXPECT_THAT(refused("latency", "{}", R"({"measured": {"latency": {"value": "low"}}})"),
              HasSubstr(R"(measured.latency.value = "low", must be a number)"));
  for (const auto* width : {"0", "1e6", "true", "-1"}) {
    const auto evaluation =
        R"({"measured": {"array_width": {"value": )" + std::string(width) + "}}}";
    EXPECT_THAT(refused(kArrayWidth, "{}", evaluation.c_str()),
                HasSubstr("measured.array_width.value = "));
  }
}

TEST_F(LyingWorkerTest, WhatAWorkerLiedAboutIsMeasuredAgain) {
  std::vector<std::string> warnings;
  const WarningListener listener([&](const std::string& text) { warnings.push_back(text); });
  auto chosen = lying({}, {{"replicate", 1}}, "lie once");
  chosen.array = 3;
  CommandExecutor executor(stepping_, chosen);
  submit(executor, "abc");
  const auto finished = rest(executor);
  ASSERT_EQ(finished.size(), 3U);
  for (const auto& [name, evaluation] : finished) {
    EXPECT_EQ(evaluation.status, Status::ok);
    EXPECT_EQ(evaluation.replicate, 0);
    EXPECT_EQ(evaluation.values.at("value"), value_of(name, 0));
  }
  EXPECT_THAT(warnings, ElementsAre(MatchesRegex(
                            "the worker node1:7 has answered what cannot be true, which is not "
                            "recorded: evaluation of [abc].a.a.0.5, replicate 0: replicate = 1, "
                            "must be 0")));
}

TEST_F(LyingWorkerTest, NothingOfALieIsRecordedThoughOnlyTheJudgeSeesIt) {
  const auto executor = std::make_shared<CommandExecutor>(
      measurement_, lying({}, {{"values", {{"value", nullptr}}}}));
  const Run run(folder_ / "s.sqlite", {.executor = executor});
  EXPECT_THAT(
      message_of<MachineError>([&] {
        run.ask({{0.5, 0, 0, 0}});
      }),
      MatchesRegex("evaluation [0-9a-f]+ of a.a.a.0.5, replicate 0, is ok, but nothing that "
                   "value is computed from was recorded of a.a.a.0.5; it is not recorded"));
  EXPECT_TRUE(run.store.evaluations().empty());
  // Nor before the search, where nobody judges yet.
  Store store(folder_ / "before.sqlite");
  RecordingEvaluator evaluator(
      std::shared_ptr<Measurement>(&measurement_, [](auto*) {}), store,
      [](Objective::Evaluations) { return Judgement(); },
      {.executor = executor, .compute = [](Objective::Evaluations evaluations) {
         for (const auto& one : fake_objectives().objectives) (void)one.value(evaluations);
       }});
  EXPECT_THAT(message_of<MachineError>(
                  [&] { (void)evaluator.evaluate({make_task(measurement_, {"a|a|a|0.5"}, 0)}); }),
              HasSubstr("nothing that value is computed from was recorded"));
  EXPECT_TRUE(store.evaluations().empty());
}

TEST_F(CommandExecutorTest, ATrainingRunGoesOnFromRungToRung) {
  for (int seed = 0; seed < 10; ++seed) {
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

TEST(EngineLineTest, WhatIsNoLineOfTheProtocolIsSaid) {
  const auto refusal = [](const std::string& text) {
    return message_of<InputError>([&] { (void)read_engine_line(text, {}); });
  };
  EXPECT_THAT(refusal("Traceback"), StartsWith("it is no JSON: "));
  EXPECT_THAT(refusal(""), StartsWith("it is no JSON: "));
  EXPECT_THAT(refusal("\"\xff\""), StartsWith("it is no JSON: "));
  EXPECT_THAT(refusal(std::string(100'000, '[')), StartsWith("its JSON is nested more than 100"));
  EXPECT_EQ(refusal("[]"), "must be an object");
  EXPECT_EQ(refusal("{}"), "kind is missing");
  EXPECT_EQ(refusal(R"({"kind": 7})"), "kind = 7, must be a text");
  EXPECT_EQ(refusal(R"({"kind": "what"})"),
            R"(kind = "what", must be workers, progress, finished, lost, aside or refused)");
  EXPECT_EQ(refusal(R"({"kind": "workers"})"), "count is missing");
  for (const auto* count : {"-1", "1e300", "18446744073709551615", "true", "\"2\"", "1.0"}) {
    EXPECT_THAT(refusal(R"({"kind": "workers", "count": )" + std::string(count) + "}"),
                StartsWith("count = "));
  }
  EXPECT_THAT(refusal(R"({"kind": "workers", "count": 1, "slots": -1})"), StartsWith("slots = -1"));
  for (const auto* kind : {"finished", "progress", "lost"}) {
    EXPECT_EQ(refusal(R"({"kind": ")" + std::string(kind) + R"("})"), "order is missing");
    EXPECT_THAT(refusal(R"({"kind": ")" + std::string(kind) + R"(", "order": "x"})"),
                StartsWith(R"(order = "x", must be a whole number from 0 to)"));
  }
  EXPECT_EQ(refusal(R"({"kind": "lost", "order": 1, "machine": 1})"),
            "machine = 1, must be true or false");
  EXPECT_EQ(refusal(R"({"kind": "lost", "order": 1, "reason": 1})"), "reason = 1, must be a text");
  EXPECT_EQ(refusal(R"({"kind": "aside", "worker": "a"})"), "reason is missing");
  EXPECT_EQ(refusal(R"({"kind": "aside", "reason": "a"})"), "worker is missing");
  EXPECT_EQ(refusal(R"({"kind": "refused"})"), "reason is missing");
}

TEST(EngineLineTest, ALongReasonIsCutBetweenCharacters) {
  std::string reason = "x";
  for (int i = 0; i < 5000; ++i) reason += "\u00e9";
  const nlohmann::json line{{"kind", "lost"}, {"order", 1}, {"reason", reason}};
  const auto said = std::get<engine_line::Lost>(read_engine_line(line.dump(), {}));
  EXPECT_EQ(said.reason.size(), 1999U + 3U);
  EXPECT_NO_THROW((void)nlohmann::json(said.reason).dump());
}

TEST(EngineLineTest, WhatComesLateIsAskedOnlyWhereItsTaskIsOut) {
  const SteppingMeasurement measurement;
  auto out = Outstanding::of(measurement);
  EXPECT_EQ(out.steps, measurement.rungs());
  auto task = make_task(measurement, {"a|a|a|0.5"}, 0);
  task.until = 20;
  const auto begun = unmeasured(task);
  auto record = nlohmann::json(begun);
  record.merge_patch(nlohmann::json::parse(curve(point(20), "paused")));
  record.merge_patch(
      {{"values", {{"perplexity", std::exp(0.5)}}}, {"measured", {{"train_seconds", 1.0}}}});
  out.number_of[task.id] = 8;
  out.orders[8].members.push_back({task, begun});
  const auto read = [&](const nlohmann::json& evaluation) {
    const nlohmann::json line{
        {"kind", "finished"}, {"order", 5}, {"worker", "w"}, {"evaluations", {evaluation}}};
    return read_engine_line(line.dump(), out);
  };
  EXPECT_EQ(std::get<engine_line::Finished>(read(record)).evaluations.size(), 1U);
  auto other = record;
  other["replicate"] = 1;
  EXPECT_EQ(std::get<engine_line::Unsound>(read(other)).why,
            "evaluation of a|a|a|0.5, replicate 0: replicate = 1, must be 0");
  other["id"] = "of nobody";
  EXPECT_EQ(std::get<engine_line::Finished>(read(other)).evaluations.size(), 1U);
  // As it was at an earlier rung, told again.
  auto earlier = record;
  earlier["curve"][0]["step"] = 10;
  const auto told = std::get<engine_line::Finished>(read(earlier)).evaluations.at(0);
  EXPECT_FALSE(is_result_of(told, task));
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
