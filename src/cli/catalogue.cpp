#include "cli/catalogue.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "cli/folder_format.hpp"
#include "core/words_only.hpp"
#include "data/corpus.hpp"
#include "genotype/component.hpp"
#include "genotype/mixer_kind.hpp"
#include "genotype/slots.hpp"
#include "search/objective.hpp"
#include "search/problem.hpp"

namespace nas {

namespace {

using Json = nlohmann::json;

// ---- settings. Structured bindings: a new field does not compile until it is in the catalogue.

/// An infinite bound is null.
Json bound_json(double bound) {
  return std::numeric_limits<double>::infinity() == std::abs(bound) ? Json() : Json(bound);
}
double bound_of(const Json& json, double infinite) {
  return json.is_null() ? infinite : json.get<double>();
}

template <std::size_t Type = 0>
Value value_of(std::size_t type, const Json& json) {
  if constexpr (Type < std::variant_size_v<Value>) {
    if (type != Type) return value_of<Type + 1>(type, json);
    return json.get<std::variant_alternative_t<Type, Value>>();
  }
  throw std::logic_error("a catalogue has a value of an unknown type");
}

Json setting_json(const Setting& setting) {
  const auto& [name, value, help, min, max, min_exclusive, max_exclusive, choices, required, effect,
               needs, names_file] = setting;
  const auto& [needed, above] = needs;
  return {name,
          value.index(),
          std::visit([](const auto& held) { return Json(held); }, value),
          help,
          bound_json(min),
          bound_json(max),
          min_exclusive,
          max_exclusive,
          choices,
          required,
          static_cast<int>(effect),
          needed,
          above,
          names_file};
}

Setting setting_of(const Json& json) {
  constexpr auto kInfinity = std::numeric_limits<double>::infinity();
  return {.name = json.at(0),
          .default_value = value_of(json.at(1), json.at(2)),
          .help = json.at(3),
          .min = bound_of(json.at(4), -kInfinity),
          .max = bound_of(json.at(5), kInfinity),
          .min_exclusive = json.at(6),
          .max_exclusive = json.at(7),
          .choices = json.at(8),
          .required = json.at(9),
          .effect = static_cast<Effect>(json.at(10).get<int>()),
          .needs = {.setting = json.at(11), .above = json.at(12)},
          .names_file = json.at(13)};
}

Json description_json(const PluginDescription& description) {
  const auto& [key, summary, settings, file] = description;
  Json all = Json::array();
  for (const auto& setting : settings) all.push_back(setting_json(setting));
  return {{"key", key}, {"summary", summary}, {"settings", all}, {"file", file}};
}

PluginDescription description_of(const Json& json) {
  PluginDescription description{
      .key = json.at("key"), .summary = json.at("summary"), .file = json.at("file")};
  for (const auto& setting : json.at("settings")) {
    description.settings.push_back(setting_of(setting));
  }
  return description;
}

template <class Result, class... Args>
Json registry_json(const Registry<Result(Args...)>& registry) {
  Json all = Json::array();
  for (const auto& key : registry.keys()) {
    all.push_back(description_json(registry.at(key).description));
  }
  return all;
}

template <class Result, class... Args>
void add_missing(Registry<Result(Args...)>& registry, const Json& all) {
  for (const auto& json : all) {
    if (registry.contains(json.at("key").get<std::string>())) continue;
    registry.add(description_of(json), beyond_words<Result, Args...>);
  }
}

// ---- problems

Json problem_json(const std::string& key) {
  const auto& entry = problems().at(key);
  const auto kind = entry.make();
  const auto& [sections, semantics, space, objectives, make] = kind;
  auto json = description_json(entry.description);
  json["sections"] = sections;
  json["decides"] = {semantics != nullptr, space != nullptr, objectives != nullptr};
  return json;
}

void add_problem(const Json& json) {
  if (problems().contains(json.at("key").get<std::string>())) return;
  ProblemKind kind{.sections = json.at("sections"),
                   .make = beyond_words<std::shared_ptr<Problem>, const ProblemInputs&>};
  const auto& decides = json.at("decides");
  if (decides.at(0).get<bool>()) kind.semantics = beyond_words<Semantics, const Parameters&>;
  if (decides.at(1).get<bool>()) kind.space = beyond_words<SearchSpace, const Parameters&>;
  if (decides.at(2).get<bool>())
    kind.objectives = beyond_words<std::vector<ChosenObjective>, const Parameters&>;
  problems().add(description_of(json), [kind] { return kind; });
}

// ---- components

Json component_json(const Component& component) {
  const auto& [gene, key, summary, mixer, voids, parameters, flops, state_bytes, features, causal,
               fused, gates_input, batch_invariant, prefix_consistent] = component;
  const AttentionShape shape;
  return {gene,
          key,
          summary,
          mixer,
          voids,
          parameters(shape),
          flops(shape),
          state_bytes(shape),
          features(shape),
          causal,
          fused,
          gates_input,
          batch_invariant,
          prefix_consistent};
}

auto fields(const AttentionShape& shape) {
  const auto& [width, heads, context, kv_heads, seen, repeats, cap, maps, hidden, sizes] = shape;
  return std::tie(width, heads, context, kv_heads, seen, repeats, cap, maps, hidden, sizes);
}

/// What the catalogue knows for one shape alone.
template <class Number>
std::function<Number(const AttentionShape&)> known(Number number) {
  return [number](const AttentionShape& shape) {
    const AttentionShape same;
    return fields(shape) == fields(same) ? number : beyond_words<Number>();
  };
}

Component component_of(const Json& json) {
  return {.gene = json.at(0),
          .key = json.at(1),
          .summary = json.at(2),
          .mixer = json.at(3),
          .voids = json.at(4),
          .parameters = known(json.at(5).get<std::int64_t>()),
          .flops = known(json.at(6).get<double>()),
          .state_bytes = known(json.at(7).get<std::int64_t>()),
          .features = known(json.at(8).get<std::int64_t>()),
          .causal = json.at(9),
          .fused = json.at(10),
          .gates_input = json.at(11),
          .batch_invariant = json.at(12),
          .prefix_consistent = json.at(13)};
}

Json components_json() {
  auto mixers = mixer_kinds().keys();
  mixers.insert(mixers.begin(), "");
  Json all = Json::array();
  for (const auto& slot : slots()) {
    if (!slot.is_component()) continue;
    for (const auto& mixer : mixers) {
      for (const auto& key : components().keys(slot.name, mixer)) {
        all.push_back(component_json(components().at(slot.name, key)));
      }
    }
  }
  return all;
}

}  // namespace

Json catalogue() {
  Json all{{"components", components_json()},
           {"objectives", registry_json(objectives())},
           {"tasks", registry_json(tasks())},
           {"folder_formats", registry_json(folder_formats())}};
  for (const auto& key : problems().keys()) all["problems"].push_back(problem_json(key));
  return all;
}

void register_catalogue(const Json& catalogue) {
  for (const auto& json : catalogue.at("components")) {
    auto component = component_of(json);
    if (components().contains(component.gene, component.key)) continue;
    components().add(std::move(component));
  }
  add_missing(objectives(), catalogue.at("objectives"));
  add_missing(tasks(), catalogue.at("tasks"));
  add_missing(folder_formats(), catalogue.at("folder_formats"));
  for (const auto& json : catalogue.at("problems")) add_problem(json);
}

}  // namespace nas
