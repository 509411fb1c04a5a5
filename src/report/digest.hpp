#pragma once

#include <iosfwd>

#include <nlohmann/json.hpp>

#include "core/visibility.hpp"
#include "report/summary.hpp"

namespace NAS_PUBLIC nas {

/// The complete digest of a run, for programs: its record and what follows from it, so that no
/// reader of a result needs the store. docs/files.md says what each key is. Schema: "schema" = 3.
nlohmann::json results_json(const RunSummary& run);

/// Writes the text of the digest: a line for each key, and for each record of a list. No more than a
/// record of a long list is in memory.
void write_digest(const RunSummary& run, std::ostream& out);

}  // namespace nas
