#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/visibility.hpp"
#include "report/summary.hpp"
#include "study/reader/experiment.hpp"
#include "study/session/feasibility.hpp"
#include "study/session/observer.hpp"
#include "study/session/rehearsal.hpp"
#include "study/stages/further_trainings.hpp"
#include "study/stages/retest.hpp"

namespace NAS_PUBLIC nas {

/// What a study is going to do.
struct Plan {
  ObjectiveSet objectives;                   ///< with their ranges, as far as known beforehand
  std::optional<Feasibility> feasibility{};  ///< where a formula or a rule decides
  nlohmann::json facts{};                    ///< see Problem::facts
  bool trains = false;                       ///< else what follows is empty
  Rehearsal rehearsal{};       ///< where calibrated, as much of it as a budget in seconds allows
  bool ended_by_time = false;  ///< by such a budget; false: not calibrated
  int workers = 1;  ///< of this process; with a cluster one, of whose slots none is known
  std::int64_t array_width = 1;   ///< of training runs that advance together; 1: not calibrated
  double training_seconds = 0.0;  ///< of one training run, a mean; 0: not calibrated
  double seconds = 0.0;           ///< of all, races apart
  Preparation preparation{};      ///< its seconds are among those of all
  RetestPlan retest{};
  std::int64_t controls = 0;  ///< training runs of these
  std::string
      pilot{};  ///< what is trained in place of a search or list, in words; empty: nothing is
  /// Evaluations that the folder holds, which are not made again; nothing where no run is there.
  std::optional<std::int64_t> recorded{};
};

/// An experiment and the folder where it is run: the library's front door.
///
/// ```cpp
/// const nas::Study study("configs/quickstart.yaml", {"training.steps=100"});
/// const auto run = study.run();
/// for (const auto i : run.front) std::cout << run.ranking[i].label << '\n';
/// ```
///
/// Nothing is printed; who wants to watch gives an Observer.
class Study {
 public:
  /// Opens a configuration as nas-run does.
  /// @param overrides  "training.steps=100".
  /// @param folder     of the run; default: runs/NAME, runs/NAME-train where mechanisms are listed.
  /// @throws InputError listing all mistakes of the configuration.
  explicit Study(const std::filesystem::path& configuration,
                 const std::vector<std::string>& overrides = {}, std::filesystem::path folder = {});
  explicit Study(Experiment experiment, std::filesystem::path folder = {});

  [[nodiscard]] const Experiment& experiment() const { return experiment_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

  struct RunSettings {
    bool force_device = false;  ///< continue on another kind of device than recorded
    bool retry_failed = false;  ///< train again what may_be_retried()
    /// What measures; empty: the experiment's cluster, else threads of this process. See study/ask_and_tell.hpp.
    std::shared_ptr<Executor> executor{};
    /// Folder of another run, or a table's file: what that has evaluated under the same identity, failures apart, is taken from
    /// it and recorded here, as if this run had been continued. Empty: none.
    std::filesystem::path reuse{};
    /// What is trained in place of a search or a list, as a pilot does (study/stages/gates.hpp); empty: these.
    Stage pilot{};
  };

  /// What run() would do. Writes nothing.
  /// @param calibrate  time a few steps of some candidates, which takes seconds.
  /// @throws InputError where run() would before it begins.
  [[nodiscard]] Plan plan(bool calibrate, Observer& observer, const RunSettings& settings) const;
  [[nodiscard]] Plan plan(bool calibrate = true) const;

  /// Runs the experiment, or continues it where the folder holds a part of it: the algorithm is
  /// rebuilt from its seed and asks again, recorded evaluations answer at once, and the first
  /// unknown one is trained. Where mechanisms are listed, they and the baseline are trained instead
  /// and compared as by a re-test; the folder's run may be of fewer mechanisms or seeds.
  ///
  /// @return the run, digested from its record (store.sqlite in the folder).
  /// @throws InputError if the folder holds a run that this one cannot continue, see check_continuation(), or if what is to be
  /// reused has other objectives; nothing is written then.
  /// @throws StopRequested when asked to stop (core/stop.hpp); everything finished is stored.
  /// @throws MachineError if the store cannot be written, or is no longer where it was.
  RunSummary run(Observer& observer, const RunSettings& settings) const;
  RunSummary run(Observer& observer) const { return run(observer, {}); }
  [[nodiscard]] RunSummary run() const;

 private:
  Experiment experiment_;
  std::filesystem::path folder_;
};

}  // namespace nas
