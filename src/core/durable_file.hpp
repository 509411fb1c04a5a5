#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace nas {

/// Creates or replaces a file of these bytes, with its folder, but not that folder's parents: by
/// way of FILE.HOST.PROCESS.tmp, so that a killed process or a power cut leaves the old file or the new one,
/// whole, also where several machines write it at once. On disk when it returns.
/// @throws MachineError that names the file, or its folder where no space is left or the folder
/// cannot be made; the old file stays.
void write_durably(const std::filesystem::path& file, std::string_view bytes);

/// Removes what processes that were killed have left of writing a file durably.
void remove_unfinished(const std::filesystem::path& file);

/// @return a file's bytes. @throws MachineError that names it if it cannot be read.
std::string read_bytes(const std::filesystem::path& file);

/// Removes a file; one that is not there is no error. @throws MachineError that names it.
void remove_file(const std::filesystem::path& file);

}  // namespace nas
