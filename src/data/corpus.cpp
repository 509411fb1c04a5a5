#include "data/corpus.hpp"

#include <cstdlib>
#include <system_error>

#include "core/define_registry.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

/// A folder that the environment names; empty where it names none.
fs::path folder_of(const char* variable) {
  const char* folder = std::getenv(variable);
  return folder == nullptr ? fs::path() : fs::path(folder);
}

}  // namespace

DataLocation default_data_location() {
  if (const auto folder = folder_of("NAS_DATA_DIR"); !folder.empty()) return {.folder = folder};
  std::error_code unknown;
  if (fs::is_directory("data", unknown)) return {};
  // By the XDG Base Directory Specification a relative path counts as none.
  if (const auto cache = folder_of("XDG_CACHE_HOME"); cache.is_absolute()) {
    return {.folder = cache / "attnas"};
  }
  const auto home = folder_of("HOME");
  return home.is_absolute() ? DataLocation{home / ".cache" / "attnas"} : DataLocation{};
}

NAS_DEFINE_REGISTRY(TaskRegistry, tasks, "task")
NAS_DEFINE_REGISTRY(CorpusRegistry, corpora, "corpus")

}  // namespace nas
