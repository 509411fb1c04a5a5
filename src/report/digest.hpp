#pragma once

#include <iosfwd>

#include <nlohmann/json.hpp>

#include "core/visibility.hpp"
#include "report/summary.hpp"

namespace NAS_PUBLIC nas {

/// The complete digest of a run, for programs: its record and what follows from it, so that no
/// reader of a result needs the store. docs/files.md says what each key is. As readers see it, and
/// as version 3 of the file had it: each record with the names of what it is about.
nlohmann::json results_json(const RunSummary& run);

/// Writes the digest as version 4 of the file has it: each candidate's name once, long lists in
/// blocks of columns; a line for each key, and for each block or record of a list. No more than a
/// block of a long list is in memory.
void write_digest(const RunSummary& run, std::ostream& out);

}  // namespace nas
