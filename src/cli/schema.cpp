#include "cli/schema.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "data/corpus.hpp"
#include "evaluation/settings.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/slots.hpp"
#include "search/algorithm.hpp"
#include "search/gene_place.hpp"
#include "search/objective.hpp"
#include "search/problem.hpp"
#include "study/reader/comparison.hpp"
#include "study/reader/experiment.hpp"
#include "study/reader/objectives.hpp"
#include "study/reader/rules.hpp"
#include "study/reader/space.hpp"

namespace nas {

namespace {

using Json = nlohmann::json;
using Settings = std::vector<Setting>;

/// One of several forms.
Json any_of(Json forms) { return {{"anyOf", std::move(forms)}}; }

/// A value, or a list of such.
Json one_or_list(const Json& item) { return any_of({item, {{"type", "array"}, {"items", item}}}); }

Json described(Json schema, const std::string& text) {
  schema["description"] = text;
  return schema;
}

Json number_schema(const Setting& setting, const char* type) {
  Json schema{{"type", type}};
  if (std::isfinite(setting.min)) {
    schema[setting.min_exclusive ? "exclusiveMinimum" : "minimum"] = setting.min;
  }
  if (std::isfinite(setting.max)) {
    schema[setting.max_exclusive ? "exclusiveMaximum" : "maximum"] = setting.max;
  } else if (schema["type"] == "integer") {
    schema["maximum"] = std::numeric_limits<std::int64_t>::max();
  }
  return schema;
}

/// What is not quoted need not look like text: `workers: 3`.
Json text_schema(const Setting& setting) {
  if (setting.choices.empty()) return {{"type", {"string", "number", "boolean", "null"}}};
  const Json choices{{"enum", setting.choices}};
  if (!setting.names_file) return choices;
  return {{"anyOf", {choices, {{"type", "string"}, {"pattern", "\\.json$"}}}}};
}

struct ValueSchema {
  const Setting& setting;

  Json operator()(bool /*value*/) const { return {{"type", "boolean"}}; }
  Json operator()(std::int64_t /*value*/) const { return number_schema(setting, "integer"); }
  Json operator()(double /*value*/) const { return number_schema(setting, "number"); }
  Json operator()(const std::string& /*value*/) const { return text_schema(setting); }
  Json operator()(const std::vector<std::int64_t>& /*value*/) const {
    return one_or_list(number_schema(setting, "integer"));
  }
  Json operator()(const std::vector<double>& /*value*/) const {
    return one_or_list(number_schema(setting, "number"));
  }
  Json operator()(const std::vector<std::string>& /*value*/) const {
    return one_or_list(text_schema(setting));
  }
};

/// @param path  of the setting.
Json setting_schema(const Setting& setting, const std::string& path) {
  auto schema = described(std::visit(ValueSchema{setting}, setting.default_value), setting.help);
  if (!setting.required) {
    std::visit([&schema](const auto& value) { schema["default"] = value; }, setting.default_value);
  }
  schema["x-effect"] = to_string(setting.effect);
  if (const auto conditions = rules_of(path); !conditions.empty()) {
    schema["x-conditions"] = conditions;
  }
  return schema;
}

/// @param section  of the settings; empty: outside all.
Json properties_of(const Settings& settings, const std::string& section = "") {
  auto properties = Json::object();
  for (const auto& setting : settings) {
    properties[setting.name] =
        setting_schema(setting, section.empty() ? setting.name : section + "." + setting.name);
  }
  return properties;
}

/// A map with these keys and no others. An empty one, as `model:`, leaves what it extends as it is.
Json map_of(Json properties) {
  return {{"type", {"object", "null"}},
          {"properties", std::move(properties)},
          {"additionalProperties", false}};
}

/// A section that names a plug-in: its key alone, or a map with the settings of that plug-in; where
/// the file that is extended names it, with those of any.
/// @param common  further properties of such a map.
template <class AnyRegistry>
Json plugin_section(const std::string& section, const AnyRegistry& registry, const Json& common) {
  const auto& key = plugin_sections().find(section)->second.key;
  auto all = common;
  auto forms = Json::array({{{"enum", registry.keys()}}});
  for (const auto& name : registry.keys()) {
    const auto& description = registry.at(name).description;
    auto properties =
        properties_of(section == "algorithm" ? with_effect(Effect::search, description.settings)
                                             : description.settings);
    for (const auto& [setting, schema] : properties.items()) {
      if (all.contains(setting) && all[setting] != schema) {
        all[setting] = any_of({all[setting], schema});
      } else {
        all[setting] = schema;
      }
    }
    properties.update(common);
    properties[key] = described({{"const", name}}, description.summary);
    auto form = map_of(std::move(properties));
    form["required"] = {key};
    forms.push_back(std::move(form));
  }
  forms.push_back(map_of(std::move(all)));
  return any_of(std::move(forms));
}

/// Options as they may be written: what looks like an integer is one.
Json option_schema(const Slot& slot) {
  if (is_text(slot)) return {{"type", "string"}};
  auto listed = Json::array();
  for (const auto& option : options(slot)) {
    listed.push_back(option);
    const bool integer =
        !option.empty() && option.find_first_not_of("0123456789") == std::string::npos;
    if (integer) listed.push_back(std::stoll(option));
  }
  return {{"enum", std::move(listed)}};
}

Json gene_schema(const Slot& slot) {
  if (slot.is_flag()) {
    return one_or_list(any_of({{{"type", "boolean"}}, {{"enum", {"none"}}}}));
  }
  if (!slot.is_number() && !slot.is_integer()) return one_or_list(option_schema(slot));
  Json number{{"type", slot.is_integer() ? "integer" : "number"}, {"minimum", slot.min}};
  if (slot.is_bounded()) {
    number[slot.max_exclusive ? "exclusiveMaximum" : "maximum"] = slot.max;
  }
  if (slot.is_integer()) return one_or_list(number);
  return any_of({number, map_of({{"min", number},
                                 {"max", number},
                                 {"decimals", {{"type", "integer"}}},
                                 {"log", {{"type", "boolean"}}},
                                 {"digits", {{"type", "integer"}}}})});
}

Json space_schema() {
  auto genes = Json::object();
  for (const auto& slot : slots()) {
    if (has_effect(slot)) genes[slot.name] = described(gene_schema(slot), slot.help);
  }
  genes["stack"] =
      described({{"enum", {"uniform", "cycle", "free"}}},
                "whether all layers have the same genes, take `period` slots in turn, or "
                "have each genes of their own");
  genes["period"] = described({{"type", "integer"}, {"minimum", 2}, {"maximum", 16}},
                              "slots that layers take in turn");
  genes.update(properties_of(space_settings()));
  return described(map_of(std::move(genes)), "the options of each gene that are searched");
}

Json objectives_schema() {
  // A problem may have objectives of its own.
  const Json name = any_of({{{"enum", objectives().keys()}}, {{"type", "string"}}});
  auto properties = properties_of(objective_settings());
  properties["name"] = name;
  for (const auto& key : objectives().keys()) {
    properties.update(
        properties_of(with_effect(Effect::search, objectives().at(key).description.settings)));
  }
  auto map = map_of(std::move(properties));
  map["required"] = {"name"};
  return described(one_or_list(any_of({name, std::move(map)})), "what is searched for");
}

Json baseline_schema() {
  return any_of({{{"type", "string"}}, map_of(properties_of(baseline_settings()))});
}

/// What nas-compare reads in place of `algorithm`.
Json contenders_schema() {
  auto common = properties_of(population_settings(), "algorithm");
  common.update(properties_of(contender_settings()));
  auto own = evaluation_settings();
  std::erase_if(own, [](const Setting& setting) {
    const auto& names = contender_evaluation();
    return std::find(names.begin(), names.end(), setting.name) == names.end();
  });
  common["evaluation"] = map_of(properties_of(own, "evaluation"));
  common["fidelity"] = map_of(properties_of(fidelity_settings(), "fidelity"));
  return described(one_or_list(plugin_section("algorithm", algorithms(), common)),
                   "of nas-compare: the algorithms that are compared");
}

}  // namespace

Json schema_json() {
  auto properties = properties_of(experiment_settings());
  properties.update(properties_of(comparison_settings()));
  properties["seeds"]["description"] =
      "of nas-compare: " + properties["seeds"]["description"].get<std::string>();
  properties["algorithms"] = contenders_schema();
  properties["extends"] =
      described(one_or_list({{"type", "string"}}),
                "files that this one extends: beside it, in the current folder, or installed");
  properties["problem"] = plugin_section("problem", problems(), Json::object());
  properties["data"] = plugin_section("data", corpora(), Json::object());
  properties["algorithm"] =
      plugin_section("algorithm", algorithms(), properties_of(population_settings(), "algorithm"));
  properties["baseline"] = baseline_schema();
  properties["objectives"] = objectives_schema();
  properties["constraints"] =
      described(any_of({one_or_list({{"type", "string"}}), {{"type", "null"}}}),
                "\"NAME <= NUMBER\" or \"NAME >= NUMBER\", of objectives");
  properties["space"] = space_schema();
  for (const auto& [section, settings] : setting_sections()) {
    if (section.empty() || properties.contains(section)) continue;
    properties[section] = map_of(properties_of(settings, section));
  }
  auto schema = map_of(std::move(properties));
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "configuration of attnas";
  return schema;
}

}  // namespace nas
