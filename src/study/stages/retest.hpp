#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/visibility.hpp"
#include "study/session/rehearsal.hpp"
#include "study/stages/further_trainings.hpp"

namespace NAS_PUBLIC nas {

/// Trains what a search found (its front; with one objective the best few) and the baseline again, each at
/// its own learning rate (rates_of), all on the same seeds that the search has not used, and scores the test split too: what was selected by its score is judged by another one. Recorded as "retest".
/// Seeds that an earlier process has recorded stay, also where the experiment asks for fewer.
/// Nothing where the experiment asks for no re-test or nothing was found; a recorded one then stays
/// if it is of what the search finds now.
void retest(const StageWork& work);

/// Trains the listed mechanisms and the baseline, all on the seeds that a re-test of the same
/// experiment would use, and records what they say as "retest".
/// @return the evaluations of the baseline, one per seed.
std::vector<Evaluation> train_listed(const StageWork& work);

/// For the plan: what is trained again, or of a list.
struct RetestPlan {
  std::string text;            ///< empty: nothing
  std::int64_t trainings = 0;  ///< without the front's, whose size is unknown
};
RetestPlan retest_plan(const Experiment& experiment, const Rehearsal& rehearsal);

}  // namespace nas
