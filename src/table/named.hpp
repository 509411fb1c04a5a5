#pragma once

#include <filesystem>

namespace nas {

/// The store of the run that a word of a command line names: its folder, or the store itself.
/// @throws InputError if there is none, or a table.
std::filesystem::path store_named(const std::filesystem::path& word);

/// Whether a file is a table.
bool is_table(const std::filesystem::path& file);

}  // namespace nas
