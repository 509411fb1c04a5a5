#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/registry.hpp"

namespace nas {

/// What a run is exported from, and where to.
struct FolderExport {
  std::filesystem::path run;             ///< a run's folder, or its store.sqlite
  std::string mechanism;                 ///< see find_mechanism()
  std::vector<std::string> overrides{};  ///< what is different here: "evaluation.device=cpu"
  std::filesystem::path folder;          ///< not there yet, or empty
};

/// Formats of nas-export that are folders, made from what LibTorch reads: they register themselves,
/// since nas-export is built without LibTorch, too. A format writes the folder whole or not at all,
/// and returns what it has written, and where, for people.
using FolderFormats = Registry<std::string(const FolderExport&)>;
FolderFormats& folder_formats();

}  // namespace nas
