#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "evaluation/engine_lines.hpp"
#include "evaluation/executor.hpp"
#include "evaluation/workforce.hpp"

namespace nas {

/// Measures by a program that places orders on workers: an engine. It reads orders from its standard
/// input and writes results to its standard output, a JSON object a line (docs/how-to/cluster.md). Results
/// are those of any other executor on the same kind of device, whichever of them dies.
///
/// What the engine gives up on is ordered again: one task at a time where a worker died that had begun
/// it, as often as Settings::retries says, then the task has failed; as it is where the machine is to
/// blame. A result that comes twice must be bitwise the same.
///
/// Nothing that a worker says is believed (read_engine_line): what cannot be the result of its order
/// is discarded, with a warning that names the worker, and the order is given again. An engine that
/// writes faster than it is heard waits once 64 MiB of its lines do.
class CommandExecutor final : public Executor {
 public:
  struct Settings {
    std::vector<std::string> command;  ///< of the engine
    nlohmann::json run;                ///< its first line, but for "kind" and "protocol"
    std::filesystem::path log;         ///< emptied, then receives the engine's standard error
    /// Model of device that results must come from; "auto": that of the first one, "mixed": any.
    std::string device = "auto";
    /// Most tasks of an order; 0: what the first worker times (Measurement::array_width).
    std::size_t array = 1;
    int retries = 2;      ///< of a task whose worker died
    double grace = 25.0;  ///< seconds that the engine has to end
    /// Called from the thread that waits, at each change; may be empty.
    std::function<void(const Workforce&)> on_workforce{};
    /// Called once if there is no worker after `patience` seconds; may be empty.
    std::function<void()> on_nobody{};
    double patience = 60.0;
  };

  /// Starts the engine.
  /// @param measurement  outlives it; says which tasks are measured together.
  /// @throws MachineError where the program cannot be started; InputError where Settings::log cannot
  /// be written, is a link or has another name.
  CommandExecutor(Measurement& measurement, Settings settings);
  /// Ends the engine.
  ~CommandExecutor() override;

  void submit(Task task, Evaluation begun) override;
  void withdraw() override;
  /// @throws MachineError also where the engine ends, whatever it leaves running, or writes what
  /// is no line of the protocol (with the last lines of it and its exit code), where a worker would measure
  /// otherwise or on another model of device (with both), where two results of one task differ, and
  /// where a worker gives three times in a row what cannot be a result.
  std::optional<Event> next() override;
  void abandon() override;
  [[nodiscard]] int workers() const override;

  /// What a worker measures of a task before it is trained, and while it trains nothing; no task may
  /// be out. @param what  an objective that is measured (Objective::measured), or kArrayWidth.
  /// @return its status, `ok` or what became of it, and measured[what].
  Evaluation inspect(const Task& task, const std::string& what);

 private:
  class Engine;
  class Orders;
  std::unique_ptr<Orders> orders_;
};

}  // namespace nas
