#include "cli/describe.hpp"

#include <algorithm>
#include <functional>
#include <sstream>

#include "core/error.hpp"
#include "core/format.hpp"
#include "data/corpus.hpp"
#include "evaluation/settings.hpp"
#include "genotype/component.hpp"
#include "genotype/mechanism.hpp"
#include "search/algorithm.hpp"
#include "search/objective.hpp"
#include "search/problem.hpp"

namespace nas {

namespace {

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

/// One kind of plug-in behind its registry, without the registry's type.
struct PluginKind {
  std::string heading;
  std::vector<PluginDescription> plugins;
};

template <class AnyRegistry>
PluginKind plugin_kind(std::string heading, const AnyRegistry& registry) {
  PluginKind kind{std::move(heading), {}};
  for (const auto& key : registry.keys()) kind.plugins.push_back(registry.at(key).description);
  return kind;
}

std::vector<PluginKind> plugin_kinds() {
  return {plugin_kind("algorithms", algorithms()), plugin_kind("problems", problems()),
          plugin_kind("objectives", objectives()), plugin_kind("data", corpora())};
}

const std::vector<std::pair<std::string, std::function<std::vector<Setting>()>>>& sections() {
  static const std::vector<std::pair<std::string, std::function<std::vector<Setting>()>>> kSections{
      {"model", model_settings},
      {"training", training_settings},
      {"evaluation", evaluation_settings}};
  return kSections;
}

std::string settings_text(const std::vector<Setting>& settings) {
  if (settings.empty()) return "  no settings\n";
  std::ostringstream text;
  for (const auto& setting : settings) {
    const auto value = to_text(setting.default_value);
    text << "  " << padded(setting.name, 22) << setting.help << "\n"
         << std::string(24, ' ') << setting.type_name() << ", " << setting.allowed() << ", default "
         << (value.empty() ? "''" : value) << '\n';
  }
  return text.str();
}

std::string labels_text(const Component& component) {
  std::vector<std::string> meanings;
  for (const auto semantics : {Semantics::corrected, Semantics::published}) {
    const auto label = component_label(semantics, component.gene, component.key);
    const auto& labels = paper_labels(component.gene);
    if (std::find(labels.begin(), labels.end(), label) != labels.end()) {
      meanings.push_back("the paper's '" + label + "' under " + std::string(to_string(semantics)));
    }
  }
  return meanings.empty() ? "no label of the paper" : join(meanings);
}

std::string component_text(const Component& component) {
  const AttentionShape shape;
  std::ostringstream text;
  text << component.gene << " '" << component.key << "': " << component.summary << '\n'
       << "  label        " << labels_text(component) << '\n'
       << "  voids        " << (component.voids.empty() ? "nothing" : join(component.voids)) << '\n'
       << "  causal       " << (component.causal ? "yes" : "no: sees later tokens") << '\n'
       << "  prefixes     "
       << (component.prefix_consistent ? "consistent" : "change when tokens are appended") << '\n'
       << "  per layer    " << component.parameters(shape) << " parameters, "
       << human_count(component.flops(shape)) << " FLOPs a sequence, "
       << component.state_bytes(shape) << " bytes of state a token (width " << shape.width << ", "
       << shape.heads << " heads, " << shape.context << " tokens)\n";
  return text.str();
}

bool bears(const Component& component, const std::string& name) {
  if (component.key == name) return true;
  return component_key(Semantics::corrected, component.gene, name) == component.key ||
         component_key(Semantics::published, component.gene, name) == component.key;
}

}  // namespace

std::string list_text(const std::string& kind) {
  std::vector<std::string> known;
  std::ostringstream text;
  const auto heading = [&](const std::string& name) {
    known.push_back(name);
    if (!kind.empty() && kind != name) return false;
    if (kind.empty()) text << name << '\n';
    return true;
  };
  for (const auto& plugins : plugin_kinds()) {
    if (!heading(plugins.heading)) continue;
    for (const auto& plugin : plugins.plugins) {
      text << "  " << padded(plugin.key, 22) << plugin.summary << '\n';
    }
  }
  if (heading("components")) {
    for (const auto gene : kComponentGenes) {
      text << "  " << gene << '\n';
      for (const auto& key : components().keys(gene)) {
        text << "    " << padded(key, 20) << components().at(gene, key).summary << '\n';
      }
    }
  }
  if (text.str().empty()) {
    throw InputError("nas-run list: unknown kind '" + kind + "', must be one of " + join(known));
  }
  return text.str();
}

std::string describe_text(const std::string& name) {
  std::vector<std::string> known;
  std::ostringstream text;
  for (const auto& kind : plugin_kinds()) {
    for (const auto& plugin : kind.plugins) {
      known.push_back(plugin.key);
      if (plugin.key != name) continue;
      text << plugin.key << " (" << kind.heading << "): " << plugin.summary << '\n'
           << settings_text(plugin.settings);
    }
  }
  for (const auto gene : kComponentGenes) {
    const auto& labels = paper_labels(gene);
    known.insert(known.end(), labels.begin(), labels.end());
    for (const auto& key : components().keys(gene)) {
      known.push_back(key);
      const auto& component = components().at(gene, key);
      if (bears(component, name)) text << component_text(component);
    }
  }
  for (const auto& [section, settings] : sections()) {
    known.push_back(section);
    if (section == name) text << "section " << section << '\n' << settings_text(settings());
  }
  if (text.str().empty()) {
    const auto guess = nearest(name, known);
    throw InputError(
        "nas-run describe: nothing is called '" + name + "'" +
        (guess.empty() ? "; nas-run list shows what there is" : "; did you mean " + guess + "?"));
  }
  return text.str();
}

}  // namespace nas
