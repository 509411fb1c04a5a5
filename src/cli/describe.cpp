#include "cli/describe.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/installed.hpp"
#include "core/optimizers.hpp"
#include "core/words.hpp"
#include "data/corpus.hpp"
#include "evaluation/settings.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/component.hpp"
#include "genotype/costs.hpp"
#include "genotype/field_words.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/mixer_kind.hpp"
#include "genotype/semantics.hpp"
#include "genotype/shorthand.hpp"
#include "genotype/slots.hpp"
#include "search/algorithm.hpp"
#include "search/gene_place.hpp"
#include "search/objective.hpp"
#include "search/problem.hpp"
#include "study/reader/engines.hpp"
#include "study/reader/experiment.hpp"
#include "study/reader/objectives.hpp"
#include "study/reader/rules.hpp"
#include "study/reader/space.hpp"

namespace nas {

namespace {

using Texts = std::vector<std::string>;

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

/// Lines of cells in columns, two blanks apart and two from the left.
std::string table(const std::vector<Texts>& rows) {
  std::vector<std::size_t> widths(rows.empty() ? 0 : rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) text += "  " + padded(row[i], widths[i]);
    text += "  " + row.back() + "\n";
  }
  return text;
}

/// The plug-ins of one kind, without the registry's type.
struct PluginKind {
  std::string one;   ///< "algorithm"
  std::string many;  ///< as given to list_text: "algorithms"
  std::vector<PluginDescription> plugins;
};

template <class AnyRegistry>
PluginKind plugin_kind(std::string many, const AnyRegistry& registry) {
  PluginKind kind{registry.kind(), std::move(many), {}};
  for (const auto& key : registry.keys()) kind.plugins.push_back(registry.at(key).description);
  return kind;
}

/// The same of what decides about a search alone.
template <class AnyRegistry>
PluginKind search_kind(std::string many, const AnyRegistry& registry) {
  auto kind = plugin_kind(std::move(many), registry);
  for (auto& plugin : kind.plugins) {
    plugin.settings = with_effect(Effect::search, std::move(plugin.settings));
  }
  return kind;
}

std::vector<PluginKind> plugin_kinds() {
  return {search_kind("algorithms", algorithms()), plugin_kind("problems", problems()),
          search_kind("objectives", objectives()), plugin_kind("data", corpora()),
          plugin_kind("tasks", tasks()),           plugin_kind("optimizers", optimizers())};
}

std::string plugin_list(const PluginKind& kind) {
  std::vector<Texts> rows;
  for (const auto& plugin : kind.plugins) rows.push_back({plugin.key, plugin.summary});
  return table(rows);
}

std::string component_list() {
  std::vector<Texts> rows;
  for (const auto& slot : slots()) {
    if (!slot.is_component()) continue;
    for (const auto* component : components().of(slot.name)) {
      const auto& key = component->key;
      const auto label = component_label(Semantics::corrected, slot.name, key);
      rows.push_back({slot.name, key, label == key ? "" : "(" + label + ")", component->summary});
    }
  }
  return table(rows);
}

std::string default_text(const Setting& setting) {
  if (setting.required) return "required";
  const auto text = to_text(setting.default_value);
  return text.empty() ? "(empty)" : text;
}

std::string allowed_text(const Setting& setting) {
  const auto text = setting.allowed();
  return text == "any " + setting.type_name() ? "any" : text;  // the type has its own column
}

std::string settings_text(const std::vector<Setting>& settings) {
  if (settings.empty()) return "  no settings\n";
  std::vector<Texts> rows{{"setting", "type", "default", "allowed", "effect", "meaning"}};
  for (const auto& setting : settings) {
    rows.push_back({setting.name, setting.type_name(), default_text(setting), allowed_text(setting),
                    std::string(to_string(setting.effect)), setting.help});
  }
  return table(rows);
}

/// What settings must be, by their paths, and sections.
std::string conditions_text(const std::set<std::string>& paths) {
  std::vector<Texts> rows;
  for (const auto& path : paths) {
    for (auto& text : rules_of(path)) rows.push_back({path, std::move(text)});
  }
  return rows.empty() ? "" : "conditions\n" + table(rows);
}

/// The row of the capability table.
std::string capabilities_text(const std::string& key) {
  const auto& plugin = algorithms().at(key);
  const auto algorithm = plugin.make();
  using Objectives = Algorithm::Objectives;
  const auto row = [](const char* name, const std::string& value) { return Texts{name, value}; };
  std::string objectives = "any number";
  if (algorithm.objectives == Objectives::one) {
    objectives = "one; several through algorithm.decomposition";
  } else if (algorithm.objectives == Objectives::several) {
    objectives = "two or more";
  }
  std::string encoding = "integers: a categorical gene is an integer";
  if (algorithm.encoding == Encoding::relaxed) {
    encoding = "relaxed: a categorical gene is a real, which puts its options in an order";
  } else if (algorithm.encoding == Encoding::scores) {
    encoding = "scores: a categorical gene is one real per option, the largest of which decides";
  }
  auto population = "at least " + std::to_string(algorithm.min_population);
  if (algorithm.population_multiple > 1) {
    population += ", a multiple of " + std::to_string(algorithm.population_multiple);
  }
  population += algorithm.fitted_population
                    ? "; by default fitted to the search"
                    : "; by default " + std::to_string(algorithm.default_population);
  std::string asks =
      "one candidate at a time: a single worker is busy after the initial population";
  if (algorithm.batches) asks = "whole generations, which several workers share";
  for (const auto& setting : plugin.description.settings) {
    if (setting.name != "in_flight") continue;
    const bool never = std::get<std::int64_t>(setting.default_value) > 1;
    asks = never ? "in_flight candidates at once, and waits for no generation"
                 : asks + "; with in_flight > 1 so many candidates at once";
  }
  return table({
      row("objectives", objectives),
      row("encoding", encoding),
      row("population", population),
      row("asks", asks),
      row("noise", "keeps the first value of a candidate"),
      row("constraints", "a candidate that violates one is rejected before training"),
      row("resume", "by replay, identical"),
  });
}

/// What a configuration consists of beside the plug-ins' own settings.
struct Section {
  std::string name;
  std::string summary;
  std::vector<Setting> settings{};
};

/// What the section `space` may list of a slot.
std::string offers_text(const Slot& slot) {
  const auto range = slot.is_bounded() ? "in [" + shortest(slot.min) + ", " + shortest(slot.max) +
                                             (slot.max_exclusive ? ")" : "]")
                                       : ">= " + shortest(slot.min);
  if (slot.is_number())
    return "a number " + range + ", or a map of min, max, decimals, log and digits";
  if (slot.is_integer()) return "a list of integers " + range;
  if (slot.is_flag()) return "a list of true, false, none and qkv";
  if (is_text(slot)) return "layers as names of models write them, in a list";
  return "a list of " + join(options(slot));
}

/// What a slot is where it is not listed, and where it has an effect at all.
std::string condition_text(const Slot& slot) {
  const auto* number = std::get_if<double>(&slot.default_value);
  std::string text =
      "unless listed: " + (number != nullptr ? shortest(*number) : nas::text(slot, Mechanism{}));
  if (slot.model) return text + "; of the whole model";
  if (!slot.owner.empty()) return text + "; of " + slot.owner + " " + join(slot.owner_options);
  Texts mixers;
  for (const auto& [mixer, options] : mixers_of(slot)) {
    mixers.push_back(options.empty() ? mixer : mixer + " (" + join(options) + ")");
  }
  return mixers.empty() ? text : text + "; of mixer " + join(mixers, ", ");
}

std::vector<Texts> gene_rows(const Slot& slot) {
  std::vector<Texts> rows{{slot.name, slot.help}, {"", offers_text(slot)}};
  if (!slot.paper) rows.push_back({"", condition_text(slot)});
  return rows;
}

std::string space_table() {
  std::vector<Texts> rows;
  for (const auto& slot : slots()) {
    if (!has_effect(slot)) continue;
    for (auto& row : gene_rows(slot)) rows.push_back(std::move(row));
  }
  rows.push_back({"stack",
                  "uniform: all layers have the same genes; cycle: `period` slots that "
                  "layers take in turn, each with genes of its own; free: a slot for each layer"});
  rows.push_back({"period", "an integer from 2 to model.layers, where stack is cycle"});
  auto text = table(rows);
  text.pop_back();
  return text;
}

std::vector<Section> sections() {
  const auto of = [](const Texts& keys) { return "; further settings: those of " + join(keys); };
  return {
      {"experiment", "the top of a configuration", experiment_settings()},
      {"model", "the language model around the attention mechanism", model_settings()},
      {"training", "how one candidate is trained", training_settings()},
      {"evaluation", "where and how candidates are evaluated", evaluation_settings()},
      {"budget", "limits at which a search ends, whatever its algorithm would do",
       budget_settings()},
      {"fidelity", "training by rungs: which candidates are trained on is decided on the way",
       fidelity_settings()},
      {"cluster", "processes on other machines that measure (docs/how-to/cluster.md)",
       cluster_settings()},
      {"retest", "trains the search's result again, on fresh seeds and with the test split scored",
       retest_settings()},
      {"baseline", "a mechanism, or a map of this setting", baseline_settings()},
      {"objectives",
       "a list of what is searched for, each a name or a map with its name, settings and these",
       objective_settings()},
      {"algorithm", "the search: algorithm.name" + of(algorithms().keys()), population_settings()},
      {"space",
       "the options of each gene that are searched, or its range; the paper's six genes, and of "
       "the others those that are listed\n" +
           space_table(),
       space_settings()},
      {"constraints",
       "a list of conditions, each NAME <= NUMBER or NAME >= NUMBER of an objective; a "
       "candidate that violates one is rejected, before training where that can be known"},
      {"problem", "what is searched: problem.type" + of(problems().keys())},
      {"data", "what models are trained on: data.corpus" + of(corpora().keys())},
  };
}

std::string section_list() {
  std::vector<Texts> rows;
  for (const auto& section : sections()) {
    rows.push_back({section.name, section.summary.substr(0, section.summary.find('\n'))});
  }
  return table(rows);
}

std::string engine_list() {
  std::vector<Texts> rows;
  for (const auto& engine : engines()) rows.push_back({engine.key, engine.summary});
  return table(rows);
}

/// The first sentence of the comment that a configuration begins with.
std::string purpose_of(const std::filesystem::path& configuration) {
  std::ifstream file(configuration);
  std::string text;
  for (std::string line; std::getline(file, line) && line.starts_with("# ");) {
    text += (text.empty() ? "" : " ") + line.substr(2);
  }
  for (std::size_t end = text.find_first_of(".?"); end != std::string::npos;
       end = text.find_first_of(".?", end + 1)) {
    const auto rest = std::string_view(text).substr(end + 1);
    const bool ends = rest.empty() || (rest.size() > 1 && rest[0] == ' ' && rest[1] >= 'A' &&
                                       rest[1] <= 'Z');  // not so "et al. 2019"
    if (ends) return text.substr(0, text[end] == '?' ? end + 1 : end);
  }
  return text;
}

std::string configuration_list() {
  std::vector<Texts> rows;
  for (const auto& file : installed_configurations()) {
    rows.push_back({file.stem().string(), purpose_of(file)});
  }
  return table(rows);
}

/// The labels of the paper that stand for a component, with the semantics under which they do.
std::string labels_text(const Component& component) {
  Texts meanings;
  if (!slot(component.gene).paper) return "none: not in the paper";
  for (const auto semantics : {Semantics::corrected, Semantics::published}) {
    for (const auto& label : paper_labels(component.gene)) {
      if (component_key(semantics, component.gene, label) == component.key) {
        meanings.push_back(label + " (" + std::string(to_string(semantics)) + ")");
      }
    }
  }
  return meanings.empty() ? "none: not in the paper" : join(meanings);
}

std::string component_text(const Component& component) {
  if (!component.mixer.empty()) {  // whose costs depend on the layer's other genes
    return component.gene + " " + component.key + ": " + component.summary + "\n" +
           table({{"mixer", component.mixer}});
  }
  const AttentionShape shape;  // the paper's
  const std::set<std::string> of_kernel{"similarity", "normalization", "position", "pattern",
                                        "decay"};
  const bool in_kernel = of_kernel.contains(component.gene);
  const auto row = [](const char* name, const std::string& value) { return Texts{name, value}; };
  std::ostringstream at;
  at << " (width " << shape.width << ", " << shape.heads << " heads, " << shape.context
     << " tokens)";
  std::vector<Texts> rows{
      row("paper's label", labels_text(component)),
      row("voids", component.voids.empty() ? "nothing" : join(component.voids))};
  if (component.gene == "mixer" || component.gene == "ffn") {
    rows.push_back(row(
        "costs", "of a layer, by its other genes, too: objectives parameters, flops, state_bytes"));
  } else {
    rows.push_back(
        row("parameters", std::to_string(component.parameters(shape)) + " per layer" + at.str()));
    rows.push_back(
        row("cost", human_count(component.flops(shape)) + " FLOPs per layer and sequence"));
    rows.push_back(row("state", std::to_string(component.state_bytes(shape)) +
                                    " bytes per layer and sequence, beside keys and values"));
  }
  rows.push_back(row("fused", !in_kernel ? "computed outside the attention kernel"
                              : component.fused
                                  ? "yes, in every numerical mode but reference; of more than 512 "
                                    "tokens no map is kept"
                                  : "no: attention with it is computed by LibTorch's operations in "
                                    "every numerical mode, from the whole map"));
  rows.push_back(row("causal", component.causal ? "yes" : "no: it sees later tokens"));
  rows.push_back(row("prefixes", component.prefix_consistent
                                     ? "do not change when tokens are appended"
                                     : "change when tokens are appended"));
  return component.gene + " " + component.key + ": " + component.summary + "\n" + table(rows);
}

}  // namespace

std::string list_text(const std::string& kind) {
  std::vector<std::pair<std::string, std::string>> lists;
  for (const auto& plugins : plugin_kinds()) lists.emplace_back(plugins.many, plugin_list(plugins));
  lists.insert(lists.begin() + 3, {"components", component_list()});
  lists.emplace_back("sections", section_list());
  lists.emplace_back("engines", engine_list());
  lists.emplace_back("configurations", configuration_list());
  std::string all;
  Texts known;
  for (const auto& [name, text] : lists) {
    if (name == kind) return text;
    all += name + "\n" + text;
    known.push_back(name);
  }
  if (kind.empty()) return all;
  throw InputError("list: unknown kind '" + kind + "'" + known_text(kind, known));
}

namespace {

/// Settings that bear a name, begin with it or have it as their path, with what they belong to, one
/// line each.
std::string settings_named(const std::string& name) {
  std::vector<Texts> rows;
  std::set<std::string> found;
  const auto search = [&](const std::string& owner, const Texts& paths,
                          const std::vector<Setting>& settings) {
    for (const auto& setting : settings) {
      const bool has_path = std::any_of(paths.begin(), paths.end(), [&](const auto& path) {
        return path + "." + setting.name == name;
      });
      if (!has_path && setting.name != name && !setting.name.starts_with(name + "_")) continue;
      found.insert(paths.front().empty() ? setting.name : paths.front() + "." + setting.name);
      rows.push_back({owner, setting.name, setting.type_name(), default_text(setting),
                      allowed_text(setting), std::string(to_string(setting.effect)), setting.help});
    }
  };
  for (const auto& section : sections()) {
    const bool top = section.name == "experiment";
    search("section " + section.name, {top ? "" : section.name, section.name}, section.settings);
  }
  for (const auto& kind : plugin_kinds()) {
    for (const auto& plugin : kind.plugins) {
      search(kind.one + " " + plugin.key,
             {kind.one, kind.many, plugin.key, kind.many + "." + plugin.key}, plugin.settings);
    }
  }
  if (rows.empty()) return {};
  rows.insert(rows.begin(), {"of", "setting", "type", "default", "allowed", "effect", "meaning"});
  return "settings\n" + table(rows) + conditions_text(found);
}

}  // namespace

Texts setting_names() {
  Texts names;
  const auto add = [&names](const std::string& path, const std::vector<Setting>& settings) {
    for (const auto& setting : settings) {
      names.push_back(setting.name);
      names.push_back(path + "." + setting.name);
    }
  };
  for (const auto& section : sections()) add(section.name, section.settings);
  for (const auto& kind : plugin_kinds()) {
    for (const auto& plugin : kind.plugins) add(plugin.key, plugin.settings);
  }
  return names;
}

namespace {

/// Something that has names, and what is said of it.
struct Entry {
  Texts names;
  std::function<std::string()> text;
  bool offered = true;  ///< to who mistypes a name
};
using Entries = std::vector<Entry>;

void add_plugins(Entries& entries) {
  for (const auto& kind : plugin_kinds()) {
    const bool searches = kind.one == algorithms().kind();
    for (const auto& plugin : kind.plugins) {
      entries.push_back({{plugin.key}, [=, one = kind.one] {
                           return one + " " + plugin.key + ": " + plugin.summary + "\n" +
                                  (searches ? capabilities_text(plugin.key) : "") +
                                  settings_text(plugin.settings);
                         }});
    }
  }
}

/// Genes, and their components by key and, under either semantics, label.
void add_genes(Entries& entries) {
  for (const auto& slot : slots()) {
    entries.push_back({{"space." + slot.name, slot.name},
                       [&slot] { return "gene of the section space\n" + table(gene_rows(slot)); }});
    if (!slot.is_component()) continue;
    for (const auto* component : components().of(slot.name)) {
      const auto& key = component->key;
      entries.push_back({{key, component_label(Semantics::corrected, slot.name, key),
                          component_label(Semantics::published, slot.name, key)},
                         [component] { return component_text(*component); }});
    }
  }
}

/// What words of models' names mean that are no registered components.
void add_words(Entries& entries) {
  const std::string unbuilt = ": named by the space, but not built: no module computes it\n";
  for (const auto& slot : slots()) {
    for (const auto& word : slot.choices) {
      const bool built = is_built(slot, word);
      if (built && (!slot.is_word() || word == "0" || word == "1")) continue;
      const auto text = built ? "option " + word + " of gene " + slot.name + ", " + slot.help + "\n"
                              : slot.name + " " + word + unbuilt;
      entries.push_back({{word}, [text] { return text; }, false});
    }
  }
  for (const auto& alias : aliases()) {
    const auto text =
        "layer " + alias.name + ": " + alias.mixer + braces(alias.genes) +
        (is_built(alias) ? "\n" : unbuilt) +
        (alias.differs.empty() ? "" : "  the published layer " + alias.differs + "\n");
    entries.push_back({{alias.name}, [text] { return text; }, false});
  }
}

void add_sections(Entries& entries) {
  for (const auto& section : sections()) {
    entries.push_back({{section.name}, [section] {
                         return "section " + section.name + ": " + section.summary + "\n" +
                                (section.settings.empty() ? "" : settings_text(section.settings)) +
                                conditions_text({section.name});
                       }});
  }
  for (const auto& engine : engines()) {
    entries.push_back({{engine.key}, [engine] {
                         return "engine " + engine.key + ": " + engine.summary + "\n" + engine.text;
                       }});
  }
}

/// A mechanism that is named by more than a word; empty: it is none.
std::string model_text(const std::string& name) {
  if (name.find_first_of("+=|{*@") == std::string::npos) return {};
  const Architecture frame{};
  const auto model = canonical(named_model(name, frame));
  const auto layers = std::to_string(model.layers);
  return "mechanism " + name + ": " + to_string(model) +
         (is_shorthand(name, frame) ? ", vanilla attention so changed, in " + layers + " layers\n"
                                    : "\n");
}

}  // namespace

std::string describe_text(const std::string& name) {
  Entries entries;
  for (const auto add : {add_plugins, add_genes, add_words, add_sections}) add(entries);
  Texts found, known;
  for (const auto& entry : entries) {
    if (holds(entry.names, name)) found.push_back(entry.text());
    if (entry.offered) known.insert(known.end(), entry.names.begin(), entry.names.end());
  }
  // Of a name of more than a word nothing else is found.
  for (const auto read : {settings_named, model_text}) {
    if (read == model_text && !found.empty()) break;
    if (auto text = read(name); !text.empty()) found.push_back(std::move(text));
  }
  if (!found.empty()) return join(found, "\n");
  if (const auto text = field_word(name); !text.empty()) return text + "\n";
  if (name.ends_with(".so")) {
    throw InputError("describe: " + name + " is a file of plug-ins; with --plugin " + name +
                     " list names what it registers, and describe KEY describes it");
  }
  const auto names = setting_names();
  known.insert(known.end(), names.begin(), names.end());
  const auto hint = did_you_mean(name, known);
  throw InputError("describe: nothing is called '" + name + "'" +
                   (hint.empty() ? ", list shows what there is" : hint));
}

}  // namespace nas
