#pragma once

#include <string>
#include <vector>

#include "core/parameters.hpp"
#include "genotype/mechanism.hpp"

namespace nas {

/// Settings at the top of a configuration, outside its sections.
std::vector<Setting> experiment_settings();
/// The one of these that is read before all others.
Setting plugins_setting();
/// Settings of the section `baseline`.
std::vector<Setting> baseline_settings();
/// Settings of the section `algorithm` that belong to the search, whatever the algorithm.
std::vector<Setting> population_settings();
/// The settings of an experiment's sections that belong to no plug-in: model, training and
/// evaluation of one candidate, and the budget of all.
std::vector<Setting> model_settings();
std::vector<Setting> training_settings();
/// The section `training` of a candidate: its genes "training.X" that are not default stand for X.
Parameters with_genes(Parameters training, const ModelGenes& genes);
/// What the section says of these genes. @param rates  of learning_rate, too.
ModelGenes genes_of(const Parameters& training, bool rates);
std::vector<Setting> evaluation_settings();
/// Where a search ends, whatever its algorithm would do.
std::vector<Setting> budget_settings();
/// Of the section `fidelity`: how far which candidates are trained.
std::vector<Setting> fidelity_settings();
/// Of the section `cluster`: whether and how processes on other machines measure.
std::vector<Setting> cluster_settings();
/// Of the section `retest`: how the search's result is trained again.
std::vector<Setting> retest_settings();

struct SettingSection {
  std::string path;  ///< "training"; empty: the top of a configuration
  std::vector<Setting> settings;
};

/// All of the above, each once: those that belong to no plug-in.
std::vector<SettingSection> setting_sections();

/// The settings, each with this effect.
std::vector<Setting> with_effect(Effect effect, std::vector<Setting> settings);

std::vector<std::string> names_of(const std::vector<Setting>& settings);
/// Of those that have this effect alone.
std::vector<std::string> names_of(std::vector<Setting> settings, Effect effect);

}  // namespace nas
