#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/document.hpp"
#include "core/parameters.hpp"
#include "core/visibility.hpp"
#include "genotype/search_space.hpp"
#include "genotype/semantics.hpp"
#include "search/algorithm.hpp"
#include "search/objective_set.hpp"
#include "search/search.hpp"

namespace NAS_PUBLIC nas {

/// One experiment, read from YAML, complete (defaults filled in) and validated against the registries.
struct Experiment {
  std::string name;  ///< default: the file's stem
  std::uint64_t seed = 42;
  Semantics semantics = Semantics::corrected;
  SearchSpace space;              ///< options as the user wrote them (labels or component keys)
  bool match_parameters = false;  ///< of the section `space`: Architecture::match_parameters
  ModelGenes section;             ///< Architecture::section; of its rate where rates are searched
  std::string problem;            ///< key
  Parameters problem_settings;
  ObjectiveSet objectives;  ///< ranges only where the configuration gives them
  Parameters model, training, evaluation, budget, cluster;
  std::string corpus;                          ///< key
  Parameters data;                             ///< settings of the corpus
  std::string algorithm;                       ///< key
  Parameters algorithm_settings;               ///< fitted to the search
  SearchFacts search_facts;                    ///< what they are fitted to
  std::int64_t population = 12;                ///< algorithm.population, fitted
  std::optional<Decomposition> decomposition;  ///< algorithm.decomposition, unless none
  std::vector<std::string> informed;  ///< algorithm.informed: known-good mechanisms, by name
  double informed_share = 0.0;        ///< algorithm.informed_share of the initial population
  std::string baseline;  ///< mechanism trained beside the search; empty where the problem has none
  bool controls = true;  ///< see study/stages/controls.hpp; read by problems that train
  std::optional<Parameters> fidelity;   ///< empty: all candidates are trained to the end
  Parameters retest;                    ///< replicates = 0: none
  std::map<std::string, double> rates;  ///< by "baseline", name of a control, canonical name
  /// Trained in place of a search, by canonical name, and compared with the baseline as a re-test
  /// compares; empty: a search, whose space, algorithm and budget count only then.
  std::vector<std::string> mechanisms;
  nlohmann::json resolved;         ///< all of the above: the run's recorded configuration
  std::vector<std::string> notes;  ///< what was made to fit, for the user
};

/// The frame of its models, with the genes of the paper.
Architecture frame_of(const Experiment& experiment);

/// Reads a configuration: `extends:` chains (relative to the file), then overrides `key.path=value`
/// in order. Validation steps after the last training step are dropped and a warm-up that exceeds
/// an override of the steps is shortened, so that a shorter training run is one override.
/// Plug-ins (`plugins`) are loaded first, and stay; a run records all that its process has loaded.
/// @throws InputError with every mistake of the file, one per line: "file:line:column: key = value,
/// must be ...; did you mean ...?" (overrides: "command line: key.path = ...").
Experiment load_experiment(const std::filesystem::path& file,
                           const std::vector<std::string>& overrides);
/// The same; mistakes go to `mistakes`, and with one the experiment is not to be used.
Experiment load_experiment(const std::filesystem::path& file,
                           const std::vector<std::string>& overrides, Diagnostics& mistakes);

/// The same from a document that is read already; mistakes go to `diagnostics`, and with one the experiment is not to be used.
/// @param file  names the experiment where the document does not.
/// @throws InputError where plug-ins cannot be loaded: what else is there cannot be judged then.
Experiment read_experiment(const DocumentNode& document, const std::filesystem::path& file,
                           Diagnostics& diagnostics);

/// Reads a configuration again as a run recorded it (Experiment::resolved). Plug-ins that it names are not loaded: a record may
/// be somebody else's, and whoever reads it has not asked for them; see check_plugins().
/// @param overrides  what is different here: "evaluation.device=cuda".
/// @param load_plugins  for a process that works for that very run: its plug-ins, too.
/// @throws InputError where this version reads it otherwise.
Experiment recorded_experiment(nlohmann::json resolved,
                               const std::vector<std::string>& overrides = {},
                               bool load_plugins = false);

/// Sections of an experiment that name plug-ins, for load_document.
const PluginSections& plugin_sections();

/// Dotted keys at which two resolved configurations differ, each "key: old -> new" ("absent" where one has no such key). Left
/// out are settings_without_effect(); plugins, since those that were used are recorded apart; and listed mechanisms that come
/// to those of the record.
std::vector<std::string> differing_keys(const nlohmann::json& recorded,
                                        const nlohmann::json& given);

/// @param place  the record, as the message names it.
/// @throws InputError naming the differing_keys() of what is to be made again, if there are any.
void require_same_results(const nlohmann::json& recorded, const Experiment& again,
                          const std::string& place);

}  // namespace nas
