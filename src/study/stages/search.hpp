#pragma once

#include "search/problem.hpp"
#include "store/store.hpp"
#include "study/reader/experiment.hpp"
#include "study/session/set_up.hpp"
#include "study/stages/further_trainings.hpp"

namespace nas {

/// The search of an experiment, with its baseline before it.
void carry_out_search(const StageWork& work);

/// The mechanisms that an experiment lists in place of a search, and the baseline.
void carry_out_list(const StageWork& work);

/// Records the names of all candidates for people.
void record_labels(const StageWork& work);

/// Whether the search or its baseline, not what follows them, caused an evaluation.
bool of_search(const Evaluation& evaluation, const Problem& problem);

/// Forgets what a search has asked for beyond its budget, as PASHA its answer: whether it asks for
/// that again is seen when it comes there.
void forget_answer(Store& store);

/// Where a run's budget has changed, searches in a copy of its record, as far as that has the
/// answers: what was recorded beyond the search's present end would be of no search at all.
/// @throws InputError saying so; nothing was written then.
void require_all_asked(const Experiment& experiment, StudySetup& setup, Store& store);

}  // namespace nas
