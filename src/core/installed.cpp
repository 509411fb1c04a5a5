#include "core/installed.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>
#include <system_error>

#include <dlfcn.h>

#include "core/error.hpp"

namespace nas {

namespace fs = std::filesystem;

namespace {

using Folders = std::vector<fs::path>;

/// The folders in which a name may be meant, in order. An empty one is the current folder.
Folders places(const fs::path& named_in, const Folders& shared) {
  Folders folders{named_in.parent_path()};
  if (!folders.front().empty()) folders.emplace_back();
  folders.insert(folders.end(), shared.begin(), shared.end());
  return folders;
}

Folders shared_places_of_configurations() {
  Folders folders;
  for (const auto& folder : shared_folders()) {
    folders.push_back(folder);
    folders.push_back(folder / "configs");
  }
  return folders;
}

/// Those that are there, each once, as absolute paths.
std::string places_text(const std::string& name, const Folders& folders) {
  if (fs::path(at_home(name)).is_absolute()) return {};
  std::vector<std::string> texts;
  std::error_code unknown;
  const auto here = fs::current_path(unknown);
  for (const auto& folder : folders) {
    const auto text = (here / folder / "").lexically_normal().parent_path().string();
    const bool said = std::find(texts.begin(), texts.end(), text) != texts.end();
    if (!said && fs::is_directory(text, unknown)) texts.push_back(text);
  }
  return " in " + join(texts);
}

/// What is at a place of the installation: of the running program's, and, since that may be Python,
/// of the library's that this lies in.
Folders installed(const char* place) {
  std::error_code unknown;
  const auto program = fs::read_symlink("/proc/self/exe", unknown);
  Folders folders{program.parent_path().parent_path() / place};
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(&shared_folders), &library) != 0) {
    const auto root = fs::absolute(library.dli_fname, unknown).parent_path() / NAS_ABOVE_LIBRARIES;
    const auto folder = (root / place).lexically_normal();
    if (folder != folders.front().lexically_normal()) folders.push_back(folder);
  }
  return folders;
}

std::string located(const std::string& given, const fs::path& named_in, const Folders& shared) {
  const auto name = at_home(given);
  if (name.empty() || fs::path(name).is_absolute()) return name;
  std::error_code unknown;
  for (const auto& folder : places(named_in, shared)) {
    const auto file = folder / name;
    if (!fs::exists(file, unknown)) continue;
    // What lies in the current folder is recorded as it was written.
    if (fs::equivalent(file, name, unknown)) return name;
    return fs::absolute(file).lexically_normal().string();
  }
  return name;
}

}  // namespace

std::string at_home(const std::string& name) {
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return name;
  for (const std::string_view begin : {"~", "$HOME", "${HOME}"}) {
    if (name == begin || name.starts_with(std::string(begin) + '/')) {
      return home + name.substr(begin.size());
    }
  }
  return name;
}

Folders shared_folders() {
  auto folders = installed(NAS_SHARE_FOLDER);
  folders.emplace_back(NAS_SOURCE_FOLDER);
  return folders;
}

fs::path installation() {
  std::error_code unknown;
  for (const auto& prefix : installed("")) {
    if (fs::is_directory(prefix / NAS_SHARE_FOLDER, unknown)) {
      return prefix.lexically_normal().parent_path();
    }
  }
  return {};
}

std::string located_file(const std::string& name, const fs::path& named_in) {
  return located(name, named_in, shared_folders());
}

std::string located_plugin(const std::string& name, const fs::path& named_in) {
  return located(name, named_in, installed(NAS_PLUGIN_FOLDER));
}

std::string places_of_file(const std::string& name, const fs::path& named_in) {
  return places_text(name, places(named_in, shared_folders()));
}

fs::path located_configuration(const std::string& given, const fs::path& named_in) {
  const auto name = at_home(given);
  std::error_code unknown;
  for (const auto& folder : places(named_in, shared_places_of_configurations())) {
    for (const auto* ending : {"", ".yaml"}) {
      const auto file =
          folder.empty() ? fs::path(name + ending) : (folder / (name + ending)).lexically_normal();
      if (fs::exists(file, unknown) && !fs::is_directory(file, unknown)) return file;
    }
  }
  return {};
}

std::string places_of_configuration(const std::string& name, const fs::path& named_in) {
  return places_text(name, places(named_in, shared_places_of_configurations()));
}

fs::path find_configuration(const fs::path& name) {
  auto file = located_configuration(name.string());
  if (!file.empty()) return file;
  if (fs::exists(name / "store.sqlite")) {
    throw InputError(name.string() +
                     ": is a run's folder, must be a YAML file: the run's own configuration, and "
                     "--output " +
                     name.string() + ", or --status with the folder");
  }
  if (fs::is_directory(name)) {
    throw InputError(name.string() + ": is a folder, must be a YAML file");
  }
  std::vector<std::string> installed;
  for (const auto& known : installed_configurations()) installed.push_back(known.stem().string());
  throw InputError(name.string() + ": there is no such configuration" +
                   places_of_configuration(name.string()) +
                   did_you_mean(name.stem().string(), installed));
}

std::vector<fs::path> installed_configurations() {
  std::map<std::string, fs::path> files;
  std::error_code unknown;
  for (const auto& folder : shared_folders()) {
    for (const auto& entry : fs::directory_iterator(folder / "configs", unknown)) {
      if (entry.path().extension() == ".yaml") {
        files.emplace(entry.path().stem().string(), entry.path());
      }
    }
  }
  std::vector<fs::path> found;
  for (auto& [name, file] : files) found.push_back(std::move(file));
  return found;
}

}  // namespace nas
