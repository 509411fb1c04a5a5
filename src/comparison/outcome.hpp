#pragma once

#include "comparison/comparison_store.hpp"
#include "indicators/indicators.hpp"
#include "search/objective_set.hpp"

namespace nas {

/// What searches on a table are worth in truth. Points are in minimisation form, unscaled, and by
/// candidate number.
class Truth {
 public:
  /// @param objectives  with their ranges; outlives the object.
  Truth(const ObjectiveSet& objectives, Points truth);

  /// What a search chose by what it saw, judged by the truth. One objective: the true value of the
  /// best candidate beyond the least true value of all (true regret, in the objective's unit).
  /// Several: the hypervolume of its front's true points, scaled, as a share of that of all
  /// candidates.
  /// @param mean_of_answers  what is believed of a candidate, see Belief.
  [[nodiscard]] double outcome(const Trajectory& trajectory, bool mean_of_answers) const;

  /// Least true value; several objectives: hypervolume of all candidates' true points.
  [[nodiscard]] double best() const { return best_; }

 private:
  [[nodiscard]] bool several() const { return objectives_.objectives.size() > 1; }

  const ObjectiveSet& objectives_;
  Points truth_;
  Points scaled_;
  double best_ = 0.0;
};

}  // namespace nas
