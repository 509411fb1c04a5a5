#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "data/archive.hpp"

namespace nas {

/// Called now and then during a transfer: bytes received so far, and bytes in all (0 = not known).
using TransferProgress = std::function<void(std::int64_t received, std::int64_t total)>;

/// Fetches what `url` (https, http or file) names into `file`, following redirections. Gives up
/// where no connection stands after 15 s, or less than 100 bytes/s arrive for 30 s.
/// @param max_bytes  the most that is taken, > 0.
/// @throws InputError "URL: reason", also if it is longer than max_bytes; MachineError that names
/// `file`, or its folder, if it cannot be written; StopRequested when asked to stop. `file` may
/// then be incomplete.
void download(const std::string& url, const std::filesystem::path& file,
              const TransferProgress& on_progress = {}, std::int64_t max_bytes = kArchiveBytes);

/// Fetches a package of the npm registry as NAME-VERSION.tgz into `folder`, with the program npm.
/// @param package  "name@version".
/// @return the archive.
/// @throws InputError "npm:PACKAGE: reason", also where npm is not installed.
std::filesystem::path download_npm(const std::string& package, const std::filesystem::path& folder);

}  // namespace nas
