#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "indicators/indicators.hpp"

namespace nas {

/// A trained model, as far as it decides about its weights.
struct ScoredModel {
  bool feasible = true;   ///< whether it satisfies all constraints
  bool baseline = false;  ///< whether it is one of what the search is compared with
  Point values{};         ///< objectives of its training run in order, in minimisation form
};

/// Which models are kept: the feasible ones first; among equals the one that fewer others dominate,
/// then the better one by the first objective. With several objectives the whole front is kept,
/// even where it has more than `most` members: of those that nothing dominates none is the better
/// one. The best model of the baseline is kept in any case.
///
/// Cost: the square of the number of models.
/// @return positions in `models`, the best first.
std::vector<std::size_t> models_to_keep(const std::vector<ScoredModel>& models, std::size_t most);

/// Checkpoints of paused training runs, within a space on the disk: without its own a training run
/// begins again, with the same result. The first to go are those that were paused soonest, of these
/// the worst.
class PausedRuns {
 public:
  struct Run {
    std::filesystem::path checkpoint;
    std::int64_t step;
    ScoredModel model;
  };

  /// @param space  in bytes.
  explicit PausedRuns(std::int64_t space) : space_(space) {}

  /// @param id  of the evaluation.
  void keep(const std::string& id, Run run);
  void forget(const std::string& id) { runs_.erase(id); }

 private:
  [[nodiscard]] std::int64_t bytes() const;
  void drop_least_promising();

  std::int64_t space_;
  std::map<std::string, Run> runs_{};  ///< by id
};

}  // namespace nas
