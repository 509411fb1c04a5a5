#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/visibility.hpp"
#include "store/evaluation.hpp"

namespace NAS_PUBLIC nas {

/// The replicates of a candidate, at least one.
using Replicated = std::span<const Evaluation* const>;

/// Evaluations as Replicated has them, which point into what is given.
std::vector<const Evaluation*> pointers(std::span<const Evaluation> evaluations);

/// The replicate of the worst status, in the order of Status.
const Evaluation& worst_of(Replicated evaluations);
/// A value of theirs for people: twelve significant digits, so that no rounding of a mean shows.
std::string value_text(double value);
bool any_stopped(Replicated evaluations);
/// Why replicates failed, at least one of which did: of a single one its reason, else "2 of 3
/// replicates failed, replicate 1 diverged: training loss is not finite by step 40".
std::string failures_text(Replicated evaluations);
/// Why replicates were stopped early, in the same form.
std::string stops_text(Replicated evaluations);

}  // namespace nas
