#include <utility>

#include "config/document.hpp"
#include "core/error.hpp"
#include "core/installed.hpp"
#include "store/store.hpp"
#include "study/session/continuing.hpp"
#include "study/study.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

fs::path default_folder(const Experiment& experiment) {
  return fs::path("runs") / (experiment.name + (experiment.mechanisms.empty() ? "" : "-train"));
}

/// Reads a configuration. Where a run lies in its folder, mistakes may come of plug-ins that it had.
Experiment opened(const fs::path& configuration, const std::vector<std::string>& overrides,
                  const fs::path& folder) {
  Diagnostics mistakes;
  auto experiment = load_experiment(configuration, overrides, mistakes);
  if (mistakes.size() == 0) return experiment;
  const auto of_run = folder.empty() ? default_folder(experiment) : folder;
  if (const auto file = of_run / "store.sqlite"; fs::exists(file)) {
    const Store store(file, Store::Mode::read_only);
    const auto missing = missing_plugins(store.environments(), of_run);
    if (!missing.empty()) throw InputError(missing);
  }
  mistakes.throw_if_any();
  return experiment;
}

}  // namespace

Study::Study(const fs::path& configuration, const std::vector<std::string>& overrides,
             fs::path folder)
    : Study(opened(configuration, overrides, at_home(folder.string())), folder) {}

Study::Study(Experiment experiment, fs::path folder)
    : experiment_(std::move(experiment)),
      folder_(!folder.empty() ? fs::path(at_home(folder.string())) : default_folder(experiment_)) {}

}  // namespace nas
