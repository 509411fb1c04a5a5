#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/experiment.hpp"
#include "search/problem.hpp"

namespace nas {

/// What a search will ask for, found by running its real algorithm on made-up fitness values.
struct Rehearsal {
  std::int64_t asked = 0;    ///< asks; exact for algorithms whose number of asks is fixed
  std::int64_t trained = 0;  ///< of them not answered by an earlier evaluation; an estimate
  std::int64_t batches = 0;  ///< batches of asks: generations, for generational algorithms
  std::vector<std::string> candidates;  ///< canonical names, in order of the first ask
};

/// Cost: milliseconds. Nothing is trained and nothing is kept.
Rehearsal rehearse(const Experiment& experiment, const std::shared_ptr<Problem>& problem);

/// Runs an experiment's search to its end: its algorithm from its seed, its initial population (a
/// share of known-good genotypes first). @throws StopRequested as run_search does.
void search(const Experiment& experiment, std::shared_ptr<Evaluator> evaluator);

}  // namespace nas
