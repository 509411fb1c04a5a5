#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace nas {

/// Folders of what comes with the programs (analysis/, configs/, problems/tables/): share/attnas
/// beside the folder of the running program, then the source tree that it was built from.
std::vector<std::filesystem::path> shared_folders();

/// The file that a configuration means by a name.
/// @param named_in  the configuration's file; empty: the name was given elsewhere.
/// @return the name itself if it is absolute, empty, of a file in the current folder or of none
/// that is there; else the absolute path of the file. Looked for in the folder of `named_in`, in
/// the current folder, in shared_folders().
std::string located_file(const std::string& name, const std::filesystem::path& named_in);

}  // namespace nas
