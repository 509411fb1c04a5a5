#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/visibility.hpp"
#include "report/summary.hpp"
#include "search/problem.hpp"
#include "store/store.hpp"
#include "study/reader/experiment.hpp"
#include "study/session/observer.hpp"

namespace NAS_PUBLIC nas {

/// What a stage after the search trains of one candidate.
struct FurtherTraining {
  std::shared_ptr<Problem> problem;  ///< how: with its section `training`
  Candidate candidate;
  std::vector<std::int64_t> replicates;   ///< decide the seeds
  std::vector<Evaluation> evaluations{};  ///< one per replicate, once they are made
};

/// As many replicates in a row.
std::vector<std::int64_t> replicates_from(std::int64_t first, std::int64_t count);

struct StudySetup;

/// What the stages of a run work on.
struct StageWork {
  const Experiment& experiment;
  StudySetup& setup;           ///< objectives with their ranges, and the search's problem
  const Rehearsal& rehearsal;  ///< what the search is expected to ask for
  Store& store;                ///< that of the run, with what the stages before have recorded
  Observer& observer;
  std::shared_ptr<Executor> executor{};  ///< what measures; empty: threads of this process
  Recall recall{};                       ///< see RecordingEvaluator::Options
};

/// A part of a run. It looks at what the store has of it, trains what that lacks (train_further recalls
/// the rest), and records what all of it says: the same command resumes it, wherever it has ended.
using Stage = std::function<void(const StageWork&)>;

/// Trains what a search has not asked for, of problems that differ in their section `training`
/// only, on the workers and in the arrays of the first one. Each result is durable when it is
/// there, and known ones are recalled: resume is exact, and nothing depends on the number of
/// workers. No budget is charged.
///
/// @param trainings  of which some may be equal; receive their evaluations.
/// @param stage      what they are for, as observers hear it: "re-test".
/// @param by         what measures; empty: the first training's problem.
/// @throws StopRequested when asked to stop; what was finished by then is stored.
void train_further(std::vector<FurtherTraining>& trainings, const StageWork& work,
                   const std::string& stage, const std::shared_ptr<Problem>& by = {});

/// The best candidates of a search, the baseline left out: members of the front first, by the first
/// objective.
/// @param baseline  canonical name; may be empty.
std::vector<const RankedCandidate*> best_candidates(const RunSummary& run, std::size_t count,
                                                    const std::string& baseline);

}  // namespace nas
