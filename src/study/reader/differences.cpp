#include <algorithm>

#include "config/document.hpp"
#include "core/error.hpp"
#include "core/field_differences.hpp"
#include "report/files.hpp"
#include "study/reader/experiment.hpp"
#include "study/reader/space.hpp"

namespace nas {

namespace {

/// Whether a list has all members of another.
bool holds_all(const nlohmann::json& list, const nlohmann::json& members) {
  return std::all_of(members.begin(), members.end(), [&list](const auto& member) {
    return std::find(list.begin(), list.end(), member) != list.end();
  });
}

/// Whether a difference of configurations changes no result that is recorded.
bool is_without_effect(const std::string& path, const nlohmann::json* recorded,
                       const nlohmann::json* given) {
  if (settings_without_effect().contains(path)) return true;
  return path == "mechanisms" && recorded != nullptr && given != nullptr &&
         holds_all(*given, *recorded);
}

}  // namespace

Experiment recorded_experiment(nlohmann::json resolved, const std::vector<std::string>& overrides,
                               bool load_plugins) {
  const std::string name = kRecordedConfiguration;
  if (!load_plugins) resolved.erase("plugins");
  if (resolved.contains("/fidelity/audit"_json_pointer)) {
    resolved["fidelity"].erase("audit");  // of version 0.1.0, without effect
  }
  if (resolved.contains("training") && !resolved["space"].contains("merge_section"))
    resolved["space"]["merge_section"] = false;  // of before this setting
  Diagnostics diagnostics;
  auto experiment =
      read_experiment(read_document(resolved.dump(), name, overrides, plugin_sections()),
                      resolved.value("name", name), diagnostics);
  diagnostics.throw_if_any();
  return experiment;
}

std::vector<std::string> differing_keys(const nlohmann::json& recorded,
                                        const nlohmann::json& given) {
  return differences(without_places(recorded), without_places(given),
                     {.ignores = is_without_effect});
}

void require_same_results(const nlohmann::json& recorded, const Experiment& again,
                          const std::string& place) {
  const auto keys = differing_keys(recorded, again.resolved);
  if (keys.empty()) return;
  throw InputError(place + " must be made again with the recorded settings:\n  " +
                   join(keys, "\n  ") +
                   "\nonly what changes no result may differ, such as evaluation.workers");
}

}  // namespace nas
