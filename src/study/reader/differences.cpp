#include <algorithm>

#include "core/field_differences.hpp"
#include "data/corpus.hpp"
#include "evaluation/settings.hpp"
#include "report/files.hpp"
#include "search/algorithm.hpp"
#include "search/objective.hpp"
#include "search/problem.hpp"
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

/// Adds the defaults of what a section of a configuration lacks.
void complete(nlohmann::json& config, const std::string& section,
              const std::vector<Setting>& settings) {
  const auto found = config.find(section);
  if (found == config.end() || !found->is_object()) return;
  nlohmann::json whole = Parameters(settings);
  whole.update(*found);
  *found = std::move(whole);
}

/// The same for a section that names a plug-in, by the settings of that.
template <class AnyRegistry>
void complete_plugin(nlohmann::json& config, const std::string& section,
                     const AnyRegistry& registry, std::vector<Setting> settings = {}) {
  const auto found = config.find(section);
  if (found == config.end() || !found->is_object()) return;
  const auto key = found->value(plugin_sections().find(section)->second.key, "");
  if (!registry.contains(key)) return;
  const auto& own = registry.at(key).description.settings;
  settings.insert(settings.end(), own.begin(), own.end());
  complete(config, section, settings);
}

/// The same for each objective.
void complete_objectives(nlohmann::json& config) {
  const auto found = config.find("objectives");
  if (found == config.end() || !found->is_array()) return;
  for (auto& objective : *found) {
    if (!objective.is_object()) continue;
    const auto key = objective.value("name", "");
    if (!objectives().contains(key)) continue;
    nlohmann::json whole = Parameters(objectives().at(key).description.settings);
    whole.update(objective);
    objective = std::move(whole);
  }
}

/// A configuration that lacks no setting of today: the record of a run that began before there was
/// one means its default.
nlohmann::json with_defaults(nlohmann::json config) {
  complete(config, "model", model_settings());
  complete(config, "training", training_settings());
  complete(config, "evaluation", evaluation_settings());
  complete(config, "fidelity", fidelity_settings());
  complete_plugin(config, "problem", problems());
  complete_plugin(config, "data", corpora());
  complete_plugin(config, "algorithm", algorithms(), population_settings());
  complete_objectives(config);
  return config;
}

}  // namespace

Experiment recorded_experiment(nlohmann::json resolved, const std::vector<std::string>& overrides,
                               bool load_plugins) {
  const std::string name = kRecordedConfiguration;
  if (!load_plugins) resolved.erase("plugins");
  // Before there was such a setting all had one rate.
  if (resolved.value("/retest/replicates"_json_pointer, 0) > 0) {
    resolved["retest"].emplace("tune", false);
  }
  Diagnostics diagnostics;
  auto experiment =
      read_experiment(read_document(resolved.dump(), name, overrides, plugin_sections()),
                      resolved.value("name", name), diagnostics);
  diagnostics.throw_if_any();
  return experiment;
}

std::vector<std::string> differing_keys(const nlohmann::json& recorded,
                                        const nlohmann::json& given) {
  return differences(without_places(with_defaults(recorded)), without_places(with_defaults(given)),
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
