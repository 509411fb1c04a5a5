#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "genotype/candidate.hpp"
#include "search/problem.hpp"
#include "study/reader/experiment.hpp"
#include "study/stages/further_trainings.hpp"

namespace nas {

/// A reference model: the baseline with less of what it is about. A claim about attention has to
/// be one against these, too.
struct Control {
  std::string name;  ///< "no mixer", "window 2"
  Candidate candidate;
};

/// Windows, in tokens, of the controls that a run has.
inline constexpr std::int64_t kControlWindows[] = {2, 4, 8};

/// The controls of an experiment: its baseline without any mixer of positions, and its baseline
/// with every layer of attention seeing the newest 2, 4 and 8 tokens only. They keep everything else
/// of the baseline, its number of parameters where the space matches them. Left out are those that
/// the baseline already is, windows that no sequence is longer than, and what is no model.
///
/// @param problem  of the experiment.
/// @param windows  in tokens.
/// @return in the order of how much they see: the least first. Empty without a baseline, where the
/// problem trains nothing, and under semantics `published`, which has neither.
std::vector<Control> controls_of(const Experiment& experiment, const Problem& problem,
                                 const std::vector<std::int64_t>& windows);
/// Those that a run has: of kControlWindows, none where the experiment switches them off.
std::vector<Control> controls_of(const Experiment& experiment, const Problem& problem);

/// Trains the controls of a run on the seeds that the baseline has, at the rates that the configuration gives
/// (`rates`, else training.learning_rate), and records them as "controls":
/// name, candidate, learning rate, evaluations and fitness of each. Nothing where a re-test is asked for, which
/// has them on its own seeds, and where the baseline failed.
void train_controls(const StageWork& work);

/// Records what counts of the training tokens reach (Problem::counts) as "count_models", once, where the
/// experiment has controls. Takes seconds.
void record_counts(const StageWork& work);

/// For the plan: training runs of controls beside those of a re-test or a list.
std::int64_t control_trainings(const Experiment& experiment, const Problem& problem);

}  // namespace nas
