#include "study/reader/resolved.hpp"

#include <algorithm>

#include "core/format.hpp"
#include "core/plugin.hpp"
#include "data/text.hpp"
#include "evaluation/frame.hpp"
#include "evaluation/settings.hpp"
#include "study/reader/engines.hpp"
#include "study/reader/objectives.hpp"
#include "study/reader/space.hpp"

namespace nas {

std::vector<std::string> sections_of_search() {
  std::vector<std::string> sections;
  for (const auto& section : setting_sections()) {
    const auto of_search = [](const Setting& setting) {
      return setting.effect == Effect::search || setting.effect == Effect::limit;
    };
    if (std::all_of(section.settings.begin(), section.settings.end(), of_search)) {
      sections.push_back(section.path);
    }
  }
  return sections;
}

Architecture frame_of(const Experiment& experiment) {
  return frame_of(experiment.model, experiment.semantics, experiment.match_parameters,
                  experiment.section);
}

nlohmann::json resolved_configuration(const Experiment& experiment,
                                      const std::vector<std::string>& sections) {
  const auto reads = [&sections](const char* section) {
    return std::find(sections.begin(), sections.end(), section) != sections.end();
  };
  const auto plugin = [](const char* section, const std::string& key,
                         const Parameters& parameters) {
    nlohmann::json json = parameters;
    json[plugin_sections().find(section)->second.key] = key;
    return json;
  };
  nlohmann::json json = {
      {"name", experiment.name},
      {"seed", experiment.seed},
      {"problem", plugin("problem", experiment.problem, experiment.problem_settings)},
      {"objectives", resolved_objectives(experiment.objectives)},
      {"constraints", resolved_constraints(experiment.objectives)},
      {"evaluation", experiment.evaluation},
      {"budget", experiment.budget},
      {"retest", experiment.retest},
      {"algorithm", plugin("algorithm", experiment.algorithm, experiment.algorithm_settings)}};
  for (const auto& loaded : loaded_plugins()) json["plugins"].push_back(loaded.file);
  // Only where it says something, as records were before there was such a setting.
  if (experiment.retest.get<double>("until") == 0.0) json["retest"].erase("until");
  if (!experiment.retest.get<bool>("anyway")) json["retest"].erase("anyway");
  if (experiment.retest.get<std::int64_t>("first_seed") == 0) json["retest"].erase("first_seed");
  if (experiment.retest.get<std::int64_t>("replicates") == 0) json["retest"].erase("tune");
  // Only where there is one, as records were before there was such a section.
  if (has_cluster(experiment)) json["cluster"] = experiment.cluster;
  if (experiment.fidelity) json["fidelity"] = *experiment.fidelity;
  if (reads("semantics")) json["semantics"] = to_string(experiment.semantics);
  if (reads("baseline")) json["baseline"] = {{"mechanism", experiment.baseline}};
  if (reads("space")) json["space"] = space_json(experiment.space);
  if (reads("model")) json["model"] = experiment.model;
  if (reads("data")) {
    json["data"] = recorded_settings(experiment.data);
    json["data"][plugin_sections().find("data")->second.key] = experiment.corpus;
  }
  if (reads("training")) {
    json["training"] = experiment.training;
    json["controls"] = experiment.controls;
    for (const auto& [name, rate] : experiment.rates) {
      json["rates"].push_back(name + ' ' + shortest(rate));
    }
  }
  if (!experiment.mechanisms.empty()) {
    json["mechanisms"] = experiment.mechanisms;
    json.erase("space");
    for (const auto& section : sections_of_search()) json.erase(section);
    for (const auto& setting : names_of(evaluation_settings(), Effect::search)) {
      json["evaluation"].erase(setting);
    }
  }
  // Of listed mechanisms, too: it decides what models they are.
  if (experiment.match_parameters) json["space"]["match_parameters"] = true;
  // Only where a name may say it, as records were before there was such a setting.
  const auto said = join(experiment.mechanisms) + experiment.baseline +
                    json.value("space", nlohmann::json()).dump();
  if (experiment.section != ModelGenes{} &&
      (said.find("optimizer=") != said.npos || said.find("training.") != said.npos))
    json["space"]["merge_section"] = true;
  return json;
}

}  // namespace nas
