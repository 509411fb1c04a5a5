#pragma once

#include <string>

#include "report/summary.hpp"

namespace nas {

/// The search as a picture: every ask as a point (objective over ask number, shaded by generation;
/// hollow where an earlier evaluation answered, a cross at the top edge where it failed), the best
/// so far as a step line, the baseline dashed. The vertical axis is logarithmic where values span
/// more than a factor of 4, and clipped at the 97 % quantile.
std::string progress_svg(const RunSummary& run);

}  // namespace nas
