#include "core/installed.hpp"

#include <system_error>

namespace nas {

namespace fs = std::filesystem;

std::vector<fs::path> shared_folders() {
  std::error_code unknown;
  const auto program = fs::read_symlink("/proc/self/exe", unknown);
  return {program.parent_path().parent_path() / NAS_SHARE_FOLDER, fs::path(NAS_SOURCE_FOLDER)};
}

std::string located_file(const std::string& name, const fs::path& named_in) {
  if (name.empty() || fs::path(name).is_absolute()) return name;
  auto folders = shared_folders();
  folders.insert(folders.begin(), {named_in.parent_path(), fs::path()});
  if (named_in.empty()) folders.erase(folders.begin());
  std::error_code unknown;
  for (const auto& folder : folders) {
    const auto file = folder / name;
    if (!fs::exists(file, unknown)) continue;
    // What lies in the current folder is recorded as it was written.
    if (fs::equivalent(file, name, unknown)) return name;
    return fs::absolute(file).lexically_normal().string();
  }
  return name;
}

}  // namespace nas
