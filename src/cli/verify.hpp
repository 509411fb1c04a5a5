#pragma once

#include <filesystem>
#include <iosfwd>

namespace nas {

/// Checks the record of a run as a whole: the file's structure, every record against its SHA-256,
/// and the weights that the run has kept in models/ against theirs. What it finds goes to `out`, one
/// line each.
/// @param run     the run's folder, or its store.
/// @param remove  whether to remove damaged records, which the command of the run makes again, and
/// damaged weights.
/// @return whether nothing is damaged, or nothing is any longer.
/// @throws InputError if there is no store, it cannot be opened, or (to remove) is being written.
bool verify_run(const std::filesystem::path& run, bool remove, std::ostream& out);

}  // namespace nas
