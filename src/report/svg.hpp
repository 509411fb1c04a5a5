#pragma once

#include <string>

#include "report/summary.hpp"

namespace nas {

/// The search as a picture. One objective: every ask as a point (objective over ask number, shaded
/// by generation; hollow where an earlier evaluation answered, a cross at the top edge where it
/// failed), the best so far as a step line, the baseline dashed. The vertical axis is logarithmic
/// where minimised values span more than a factor of 4, and outliers on its bad side are clipped.
/// Several objectives: the hypervolume over the asks as a step line, that of the baseline alone
/// dashed.
std::string progress_svg(const RunSummary& run);

/// What the search found in objective space: candidates as pale points, the non-dominated ones
/// strong, with two objectives joined by the boundary of what they attain; knee and baseline
/// marked. Three and more objectives: a panel for each further objective against the first. Axes as
/// in progress_svg.
std::string front_svg(const RunSummary& run);

}  // namespace nas
