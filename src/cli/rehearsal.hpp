#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/experiment.hpp"
#include "evaluation/recording_evaluator.hpp"
#include "search/problem.hpp"

namespace nas {

/// What a search will ask for, found by running its real algorithm on made-up fitness values.
struct Rehearsal {
  std::int64_t asked = 0;    ///< asks; exact for algorithms whose number of asks is fixed
  std::int64_t trained = 0;  ///< evaluations that they cause; an estimate, without those of races
  std::int64_t batches = 0;  ///< batches of asks: generations, for generational algorithms
  std::vector<std::string> candidates{};  ///< canonical names, in order of the first ask
  bool whole = true;  ///< false: the search asks for more than was tried, or so it seems
};

/// Cost: milliseconds; as much as the search itself where nothing is trained. Nothing is kept.
Rehearsal rehearse(const Experiment& experiment, const std::shared_ptr<Problem>& problem);

/// Builds an experiment's problem.
/// @param objectives  the experiment's; outlives the problem.
/// @param folder      of the run; empty: nothing is written.
std::shared_ptr<Problem> make_problem(const Experiment& experiment, const ObjectiveSet& objectives,
                                      const std::filesystem::path& folder);

/// How an experiment answers asks, its workers and its display left out.
RecordingEvaluator::Options evaluator_options(const Experiment& experiment);

/// Runs an experiment's search to its end: its algorithm from its seed, its initial population (a
/// share of known-good genotypes first).
/// @param objectives    the experiment's, with their ranges.
/// @param on_indicator  see SearchSettings; may be empty.
/// @throws StopRequested as run_search does.
SearchResult search(const Experiment& experiment, const ObjectiveSet& objectives,
                    const std::shared_ptr<Evaluator>& evaluator,
                    std::function<void(const Indicator&)> on_indicator);

}  // namespace nas
