#pragma once

#include <csignal>
#include <numeric>

#include "core/error.hpp"
#include "evaluation/command_executor.hpp"
#include "places.hpp"
#include "prelude.hpp"
#include "unit/evaluator_fixture.hpp"

namespace nas::testing {

/// As fake_engine.py computes it.
inline double value_of(const std::string& candidate, std::int64_t replicate) {
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

}  // namespace nas::testing
