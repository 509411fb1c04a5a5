#pragma once

#include <filesystem>
#include <string>

#include "cli/experiment.hpp"

namespace nas {

struct RunOptions {
  std::filesystem::path folder;  ///< of the run; created
  bool quiet = false;            ///< no progress, only the result
  bool force_device = false;     ///< continue on another kind of device than recorded
  bool retry_failed = false;     ///< train again what is recorded as failed or out of memory
};

/// Runs an experiment, or continues it where the folder holds a part of it: the algorithm is
/// rebuilt from its seed and asks again, recorded evaluations answer at once, and the first unknown
/// one is trained. Ends with results.json, evaluations.csv and progress.svg in the folder and the
/// closing table on standard output.
///
/// @throws InputError if the folder holds a run that this one cannot continue, see
/// check_continuation(); nothing is written then.
/// @throws StopRequested when asked to stop; everything finished is stored.
/// @throws MachineError if the store cannot be written, or is no longer where it was.
void run_experiment(const Experiment& experiment, const RunOptions& options);

struct PlanOptions {
  bool calibrate = true;  ///< time a few steps of some candidates, which takes seconds
  bool settings = false;  ///< print every setting with its effective value, too
};

/// What run_experiment would do: search space, model, data, number of evaluations, expected time.
/// Writes nothing.
std::string plan_text(const Experiment& experiment, const std::filesystem::path& folder,
                      const PlanOptions& options = {});

/// Program, compiler and library versions, one a line.
std::string version_text();

}  // namespace nas
