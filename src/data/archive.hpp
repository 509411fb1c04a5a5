#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace nas {

/// Bytes that any archive may unpack to, however small; a downloaded one may itself be so long.
/// The texts of the paper take a fifth of it at most.
inline constexpr std::int64_t kArchiveBytes = std::int64_t{64} << 20;
/// Entries that an archive may hold, of any kind.
inline constexpr std::int64_t kArchiveEntries = 100'000;

/// Unpacks the regular files of an archive (zip; tar, also compressed by gzip, bzip2, xz or zstd; of a
/// package of Debian what it installs) into an existing folder; links and special files are left out.
/// @param always  bytes that it may unpack to, however small it is, > 0.
/// @throws InputError "FILE: ..." if it is not a readable archive, an entry leads out of the
/// folder, there are more than kArchiveEntries of them, or what is unpacked takes more than a
/// hundred times the archive's size (and `always`), each file and each folder counted as a
/// block of 4096 bytes at least; MachineError naming the folder or file where the disk is full or
/// fails; StopRequested when asked to stop. What was unpacked until then stays.
void unpack(const std::filesystem::path& archive, const std::filesystem::path& folder,
            std::int64_t always = kArchiveBytes);

/// The bytes of a file that gzip compressed, also in pieces (dictzip).
/// @throws InputError "FILE: ..." if it is none, or holds more than four times kArchiveBytes.
std::string read_gzip(const std::filesystem::path& file);

}  // namespace nas
