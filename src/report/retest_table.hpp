#pragma once

#include <cstddef>
#include <string>

#include "report/summary.hpp"

namespace nas {

/// The part of the closing table on what came after the search: what tuning found, the re-tested
/// candidates with what the search had seen beside what fresh seeds say, and the verdict. Empty
/// where there was neither.
/// @param width  characters of a line of its tables.
std::string retest_table(const RunSummary& run, std::size_t width);

}  // namespace nas
