#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/corpus.hpp"
#include "evaluation/measurement.hpp"
#include "genotype/architecture.hpp"
#include "nn/transformer.hpp"
#include "report/summary.hpp"
#include "search/problem.hpp"
#include "study/reader/experiment.hpp"

namespace nas {

/// The folder of a run that is named by it, or by its store.sqlite.
std::filesystem::path folder_of_run(const std::filesystem::path& run);

/// @throws InputError where there is no store.
RunSummary read_run(const std::filesystem::path& run);

/// The canonical name of what a command line calls a mechanism: a name, which need not be canonical, a
/// label, as tables have it too, "best" or "baseline"; best is what the search returns, of several
/// objectives the point of its front that is best by the first. @throws InputError saying what there
/// is.
std::string find_mechanism(const RunSummary& run, const std::string& given);

/// A mechanism's name as a folder's: letters, digits, points and dashes, at most 100.
std::string folder_name(const std::string& mechanism);

/// Which model of a run is wanted.
struct ModelRequest {
  std::filesystem::path run;                ///< a run's folder, or its store.sqlite
  std::string candidate;                    ///< canonical name
  std::filesystem::path folder;             ///< for what is trained again
  std::optional<std::int64_t> replicate{};  ///< empty: one whose weights are kept, else the first
  std::vector<std::string> overrides{};     ///< what is different here: "evaluation.device=cpu"
};

/// A model that a run has trained: with its weights where the run has kept them, or an earlier call
/// in the folder; else the training run is made again, which gives the same model bitwise.
class TrainedModel {
 public:
  /// @param run  outlives this.
  /// @throws InputError where the run trains nothing, no training run of the mechanism came to an
  /// end, another program measured them (AskAndTell), or this program would train it otherwise.
  TrainedModel(const RunSummary& run, const ModelRequest& request);
  TrainedModel(const TrainedModel&) = delete;
  TrainedModel& operator=(const TrainedModel&) = delete;

  [[nodiscard]] const Experiment& experiment() const { return experiment_; }
  [[nodiscard]] const Evaluation& evaluation() const { return *evaluation_; }
  [[nodiscard]] const Architecture& architecture() const { return architecture_; }
  /// The corpus that it was trained on.
  [[nodiscard]] Corpus corpus() const;
  /// The model, in numerical mode reference. What is trained again is kept in models/ of the
  /// folder, with what it scores; it can be stopped and continued. Warns, every time, where that is
  /// not what is recorded. @throws InputError where a file of weights is damaged; StopRequested.
  [[nodiscard]] nn::Transformer load();
  /// Where load() had the weights from, behind "weights": "kept by the run" or "trained again",
  /// which goes on with "with validation nll 2.31, not 2.3 as recorded" where that is so.
  [[nodiscard]] const std::string& origin() const { return origin_; }

 private:
  /// @return the mean nll of the validation split.
  double train_again();

  ModelRequest request_;
  Experiment experiment_;  ///< the problem points to its objectives
  std::shared_ptr<Problem> problem_;
  const Evaluation* evaluation_ = nullptr;
  Task task_;
  Architecture architecture_;
  std::string origin_;
};

}  // namespace nas
