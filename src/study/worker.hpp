#pragma once

#include <memory>

#include <nlohmann/json.hpp>

#include "core/visibility.hpp"
#include "study/experiment.hpp"

namespace NAS_PUBLIC nas {

class Problem;

/// Measures the orders of a study in another process: the problem is built again from the study's
/// configuration, and a task whose identity it does not reproduce (another corpus, another results
/// version, another mode) is refused. What it measures is bitwise what the study itself would have
/// measured on the same kind of device.
class Worker {
 public:
  /// @param experiment  the study's, for example by recorded_experiment(). Nothing is written.
  /// @throws InputError where its problem cannot be built here.
  explicit Worker(Experiment experiment);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Measures one order, see order_json().
  /// @return the evaluation, to be told to the study.
  /// @throws InputError where the task would be measured otherwise here (see read_task);
  /// StopRequested; MachineError where the fault is not the candidate's.
  nlohmann::json measure(const nlohmann::json& order);

 private:
  std::unique_ptr<const Experiment> experiment_;  ///< the problem points to its objectives
  std::shared_ptr<Problem> problem_;
};

}  // namespace nas
