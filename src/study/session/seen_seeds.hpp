#pragma once

#include <filesystem>

#include "store/store.hpp"
#include "study/reader/experiment.hpp"

namespace nas {

/// Which of a comparison's fresh seeds an earlier one on the same task has used: what was chosen by them is
/// judged by them again. Looks once, before the first of them is trained, at the runs beside the
/// folder that have the same data and seed; warns, and keeps the text as "seen_before" for the
/// verdict: "Its seeds 1 to 5 were seen before, by quickstart; retest.first_seed=5 takes others."
void note_seen_seeds(const std::filesystem::path& folder, const Experiment& experiment,
                     Store& store);

}  // namespace nas
