#pragma once

#include "study/stages/further_trainings.hpp"

namespace nas {

/// What pruning at rungs has cost: trains the share `fidelity.audit` of the candidates that a search
/// has paused for good to the end, drawn by the run's seed, rounded up, and records as "audit" how
/// many of them would have entered the front, or of one objective the best 3, with the interval of
/// that share, and in words whether the first rung was too early. Nothing of the search changes, and
/// no budget is charged. Does nothing where the share is 0 or none is paused.
/// @throws StopRequested as train_further() does.
void audit(const StageWork& work);

}  // namespace nas
