#pragma once

#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "core/visibility.hpp"
#include "evaluation/measurement.hpp"
#include "study/study.hpp"

namespace NAS_PUBLIC nas {

/// Something to measure: a task, and what is known of its evaluation beforehand.
struct Order {
  Task task;
  Evaluation evaluation;  ///< to be completed: status, reason, curve, values, measured
};

/// An order as it passes to another process: "task" (see task_json) and "evaluation".
nlohmann::json order_json(const Order& order);

/// A study whose candidates are measured by the caller, in its own loop:
///
/// ```cpp
/// nas::AskAndTell study(nas::Study("configs/ga_baseline.yaml"));
/// while (auto order = study.ask()) {
///   order->evaluation.status = nas::Status::ok;
///   order->evaluation.values["perplexity"] = my_training(order->task.candidate);
///   study.tell(order->evaluation);
/// }
/// std::cout << study.result().ranking.front().label << '\n';
/// ```
///
/// The study runs on a thread of its own, where its algorithm waits for the answers. Everything else
/// is as in Study::run(): screening, budget, replicates, tuning and re-test, the record, and going on
/// with a run whose folder holds a part of it. Orders come in the same sequence however many are out
/// at once, and the result does not depend on the order in which they are told.
///
/// All functions may be called from several threads.
class AskAndTell {
 public:
  /// Starts the study. What measures is this object, whatever the settings say.
  explicit AskAndTell(Study study, const Study::RunSettings& settings = {});
  /// @param observer  hears what happens, from the study's thread; outlives this object.
  AskAndTell(Study study, Observer& observer, const Study::RunSettings& settings = {});
  /// Leaves a study that has not ended, as a stop does: what was told is stored, and the same command goes on with it.
  ~AskAndTell();
  AskAndTell(const AskAndTell&) = delete;
  AskAndTell& operator=(const AskAndTell&) = delete;

  /// The next order. Waits while the algorithm is at work, not for what is out: nothing is returned
  /// where the study has ended, or goes on only once something that is out is told.
  std::optional<Order> ask();
  /// What an order came to.
  /// @param evaluation  that of the order, completed.
  /// @throws InputError where no such order is out, an objective has no value of an evaluation that is ok or stopped_early, or
  /// it is paused where its task was to go on (Task::until), too soon or without a curve; the order is out as before.
  void tell(Evaluation evaluation);
  /// Puts an order back, to be asked for again: its worker is gone.
  /// @throws InputError where no such order is out.
  void put_back(const std::string& id);
  /// Whether the study has ended, and nothing is to be asked for.
  [[nodiscard]] bool ended() const;

  /// The run, digested, once the study has ended; waits for that.
  /// @throws what Study::run() throws.
  [[nodiscard]] const RunSummary& result();

 private:
  class Desk;
  std::unique_ptr<Desk> desk_;
};

}  // namespace nas
