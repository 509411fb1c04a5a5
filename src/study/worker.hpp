#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/visibility.hpp"
#include "evaluation/measurement.hpp"
#include "study/reader/experiment.hpp"

namespace NAS_PUBLIC nas {

class Problem;

/// Measures the orders of a study in another process: the problem is built again from the study's configuration, and a task
/// whose identity it does not reproduce (another corpus, another results version, another mode) is refused. What it measures is
/// bitwise what the study itself would have measured on the same kind of device.
class Worker {
 public:
  /// @param experiment  the study's, for example by recorded_experiment().
  /// @param folder      for checkpoints of unfinished training runs, in its folder checkpoints/;
  /// that of the study, if machines share it. Empty: none is written.
  /// @throws InputError where its problem cannot be built here.
  explicit Worker(Experiment experiment, std::filesystem::path folder = {});
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Measures one order, see order_json().
  /// @return the evaluation, to be told to the study.
  /// @throws InputError where the task would be measured otherwise here (see read_task);
  /// StopRequested; MachineError where the fault is not the candidate's.
  nlohmann::json measure(const nlohmann::json& order);
  /// The same for orders that are measured together, where that is faster.
  /// @param listener  is told about once per second how far they are; may be empty.
  /// @return the evaluations, in their order.
  std::vector<nlohmann::json> measure_all(const std::vector<nlohmann::json>& orders,
                                          const std::function<void(const Advance&)>& listener = {});

  /// Measures of an order what is known before the training, while nothing else is at work.
  /// @param what  an objective that is measured, or kArrayWidth (evaluation/command_executor.hpp).
  /// @return the evaluation with measured[what], or with why there is none.
  /// @throws InputError also where the study has no such objective.
  nlohmann::json inspect(const nlohmann::json& order, const std::string& what);

  /// Refuses a study whose tasks would be measured otherwise here.
  /// @param identity  of the study's problem.
  /// @throws InputError with both values of what differs.
  void require_identity(const nlohmann::json& identity) const;
  /// The model of the device that it measures on, which rounds in its own way: "NVIDIA H100", or the processor.
  [[nodiscard]] std::string device() const;

 private:
  [[nodiscard]] nlohmann::json signed_here(const nlohmann::json& evaluation) const;

  std::unique_ptr<const Experiment> experiment_;  ///< the problem points to its objectives
  std::shared_ptr<Problem> problem_;
};

}  // namespace nas
