#pragma once

#include <filesystem>

namespace nas {

/// Unpacks the regular files of an archive (zip, tar, tar.gz, ...) into an existing folder; links
/// and special files are left out.
/// @throws InputError "FILE: ..." if it is not a readable archive or an entry leads out of the
/// folder.
void unpack(const std::filesystem::path& archive, const std::filesystem::path& folder);

}  // namespace nas
