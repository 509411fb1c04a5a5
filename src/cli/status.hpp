#pragma once

#include <filesystem>
#include <string>

namespace nas {

/// Which process works on what in a run that goes on, and since when; of one that does not, how it
/// ended. Reads a copy of the store, and disturbs nothing.
/// @param run  the run's folder.
/// @throws InputError if there is no store.
std::string status_text(const std::filesystem::path& run);

}  // namespace nas
