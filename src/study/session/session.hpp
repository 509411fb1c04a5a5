#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "evaluation/recording_evaluator.hpp"
#include "search/problem.hpp"
#include "search/search.hpp"
#include "study/reader/experiment.hpp"

namespace nas {

/// Builds an experiment's problem.
/// @param objectives  the experiment's; outlives the problem.
/// @param folder      of the run; empty: nothing is written.
std::shared_ptr<Problem> make_problem(const Experiment& experiment, const ObjectiveSet& objectives,
                                      const std::filesystem::path& folder);

/// The mechanisms that an experiment lists in place of a search, then its baseline.
/// @throws InputError naming one that would not be trained: it breaks a constraint by formula.
std::vector<Candidate> listed_candidates(const Experiment& experiment,
                                         const ObjectiveSet& objectives, const Problem& problem);

/// Refuses a budget of steps that no training run fits in: a search would ask for nothing.
/// @throws InputError saying so.
void require_affordable(const Experiment& experiment, const Problem& problem);

/// What of an experiment's training runs is tried again.
Retries retries_of(const Experiment& experiment);

/// The model of device that a cluster's results must come from: cluster.device, but for auto that of
/// the workers' results that the run has.
std::string device_of_workers(const Experiment& experiment, const Store& store);

/// How an experiment answers asks, its workers and observers left out.
RecordingEvaluator::Options evaluator_options(const Experiment& experiment);

/// Runs an experiment's search to its end: its algorithm from its seed, its initial population (a
/// share of known-good genotypes first).
/// @param objectives    the experiment's, with their ranges.
/// @param on_indicator  see SearchSettings; may be empty.
/// @param conditions    see conditions_of(); may be empty.
/// @param fidelity      see fidelity_of().
/// @throws StopRequested as run_search does.
SearchResult search(const Experiment& experiment, const ObjectiveSet& objectives,
                    const std::shared_ptr<Evaluator>& evaluator,
                    std::function<void(const Indicator&)> on_indicator, Conditions conditions,
                    std::optional<Fidelity> fidelity = {});

/// The section `fidelity` of an experiment, with its rungs as validation steps of the problem; empty
/// where there is none.
/// @throws InputError if a rung is no validation step before the last one, or there is none.
std::optional<Fidelity> fidelity_of(const Experiment& experiment, const Problem& problem);

/// Which genes of an experiment's genotypes have an effect, as its problem says; empty for the
/// paper's genes alone, which are all searched as in the paper.
/// @param problem  outlives the result.
Conditions conditions_of(const Experiment& experiment, const Problem& problem);

}  // namespace nas
