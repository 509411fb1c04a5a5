#pragma once

#include <filesystem>

namespace nas {

/// Unpacks the regular files of an archive (zip; tar, also compressed by gzip, bzip2, xz or zstd)
/// into an existing folder; links and special files are left out.
/// @throws InputError "FILE: ..." if it is not a readable archive, an entry leads out of the
/// folder, or the files are a hundred times as long as the archive (and 64 MiB).
void unpack(const std::filesystem::path& archive, const std::filesystem::path& folder);

}  // namespace nas
