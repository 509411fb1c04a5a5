#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/visibility.hpp"
#include "evaluation/recording_evaluator.hpp"
#include "search/problem.hpp"
#include "study/reader/experiment.hpp"

namespace NAS_PUBLIC nas {

/// What a search will ask for, found by running its real algorithm on made-up fitness values.
struct Rehearsal {
  std::int64_t asked = 0;    ///< asks; exact for algorithms whose number of asks is fixed
  std::int64_t trained = 0;  ///< evaluations that they cause; an estimate, without those of races
  std::int64_t steps = 0;    ///< of training that these take, to the rungs that they come to
  std::int64_t batches = 0;  ///< batches of asks: generations, for generational algorithms
  std::vector<Candidate> candidates{};  ///< in order of the first ask
  bool whole = true;  ///< false: the search asks for more than was tried, or so it seems

  /// Mechanisms that the search comes to, at most: one a training run, where these are known.
  [[nodiscard]] std::int64_t found() const {
    return whole ? trained : std::numeric_limits<std::int64_t>::max();
  }
};

/// Cost: milliseconds; as much as the search itself where nothing is trained, at most some 5 s of
/// the processor. Nothing is kept.
Rehearsal rehearse(const Experiment& experiment, const std::shared_ptr<Problem>& problem);

}  // namespace nas
