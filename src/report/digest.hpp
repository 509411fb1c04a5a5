#pragma once

#include <iosfwd>

#include "core/visibility.hpp"
#include "report/summary.hpp"

namespace NAS_PUBLIC nas {

/// Writes the complete digest of a run, for programs: its record and what follows from it, so that
/// no reader of a result needs the store. docs/files.md says what each key is. A line for each key,
/// and for each block or record of a list; of a long list no more than a block is in memory.
void write_digest(const RunSummary& run, std::ostream& out);

}  // namespace nas
