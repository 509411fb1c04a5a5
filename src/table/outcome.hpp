#pragma once

#include <cstdint>

#include "indicators/indicators.hpp"
#include "search/objective_set.hpp"
#include "table/comparison_store.hpp"

namespace nas {

/// What a search on a table believes of a candidate that it asked for several times.
enum class Trust {
  latest,       ///< its latest answer
  mean,         ///< the mean of its answers: each was a training run of its own
  best_answer,  ///< the best of its answers; one objective
};

/// @param settings  of a compared algorithm: `belief` where it is the best answer, `evaluation`.
Trust trust_of(const nlohmann::json& settings);

/// Evaluations of a search that went beyond the replicates which a table has of their mechanism:
/// recorded noise recurs.
/// @param replicates  that answer one after the other.
std::int64_t num_recycled(const Trajectory& trajectory, std::int64_t replicates);

/// What searches on a table are worth in truth. Points are in minimisation form, unscaled, and by
/// candidate number.
///
/// An algorithm is judged by what its searches return, as their own records let them believe:
/// with one objective the candidate that a search believes best (of equal ones that which it asked
/// for first), with several the candidates on the front of what it believes; a failure is no answer
/// (docs/candidates.md), and a search that saw only failures returns one. `everything` is what
/// someone who knows the truth would pick out of a search's candidates: no search gives that. The
/// pages of analysis/compare.py judge by the same two.
class Truth {
 public:
  /// @param objectives  with their ranges; outlives the object.
  Truth(const ObjectiveSet& objectives, Points truth);

  /// What a search returns. One objective: its true value beyond the least true value of all
  /// (true regret, in the objective's unit). Several: the hypervolume of its true points, scaled,
  /// as a share of that of all candidates. NaN of a search that asked for nothing.
  [[nodiscard]] double returned(const Trajectory& trajectory, Trust trust) const;
  /// The same of everything that a search evaluated.
  [[nodiscard]] double everything(const Trajectory& trajectory) const;

  /// Least true value; several objectives: hypervolume of all candidates' true points.
  [[nodiscard]] double best() const { return best_; }

 private:
  [[nodiscard]] bool several() const { return objectives_.objectives.size() > 1; }
  [[nodiscard]] double worth(const std::vector<std::size_t>& candidates) const;

  const ObjectiveSet& objectives_;
  Points truth_;
  Points scaled_;
  double best_ = 0.0;
};

}  // namespace nas
