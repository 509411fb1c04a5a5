#include "data/corpus.hpp"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "data/tokenizer.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

/// A folder that the environment names; empty where it names none.
fs::path folder_of(const char* variable) {
  const char* folder = std::getenv(variable);
  return folder == nullptr ? fs::path() : fs::path(folder);
}

/// Gives a corpus that is text the names and the settings of all tokenizers, in order. Plug-ins
/// register in any order, some while a program runs.
void complete_settings(std::vector<Setting>& settings) {
  const auto find = [&settings](const std::string& name) {
    return std::find_if(settings.begin(), settings.end(),
                        [&name](const Setting& setting) { return setting.name == name; });
  };
  auto keys = tokenizers().keys();
  const auto unit = find("unit");
  if (unit == settings.end() || unit->choices == keys) return;
  unit->choices = keys;
  keys.insert(keys.begin(), "unit");
  if (const auto tokenizer = find("tokenizer"); tokenizer != settings.end()) {
    tokenizer->choices = keys;
  }
  for (auto& setting : tokenizer_settings()) {
    if (find(setting.name) == settings.end()) settings.push_back(std::move(setting));
  }
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

TaskRegistry& tasks() {
  static TaskRegistry registry("task");
  return registry;
}

CorpusRegistry& corpora() {
  static CorpusRegistry registry("corpus");
  for (const auto& key : registry.keys()) {
    // Of a registry that is not constant; what it hands out is.
    auto& description = const_cast<PluginDescription&>(registry.at(key).description);
    complete_settings(description.settings);
  }
  return registry;
}

}  // namespace nas
