#include "report/record_schema.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "genotype/component.hpp"
#include "genotype/slots.hpp"
#include "search/gene_place.hpp"
#include "search/objective.hpp"
#include "search/search.hpp"
#include "store/evaluation.hpp"

namespace nas {

namespace {

using Json = nlohmann::json;

/// Names of the genes that have no effect beside an option.
Json voids_json(const Slot& slot, const std::string& key) {
  auto voids = Json::array();
  for (const auto& other : slots()) {
    const auto voiding = voided_by(other);
    const auto own = voiding.find(slot.name);
    if (own != voiding.end() && std::count(own->second.begin(), own->second.end(), key) > 0) {
      voids.push_back(other.name);
    }
  }
  return voids;
}

Json options_json(const Slot& slot, Semantics semantics) {
  auto options = Json::array();
  if (!slot.is_component()) {
    for (const auto& word : nas::options(slot)) {
      options.push_back({{"key", word}, {"label", word}, {"voids", Json::array()}});
    }
    return options;
  }
  for (const auto& key : components().keys(slot.name)) {
    options.push_back({{"key", key},
                       {"label", component_label(semantics, slot.name, key)},
                       {"voids", voids_json(slot, key)}});
  }
  return options;
}

/// What the vanilla transformer has: a component key, a word or a number.
Json default_json(const Slot& slot, Semantics semantics) {
  if (slot.is_number()) return std::get<double>(slot.default_value);
  const auto chosen = text(slot, vanilla_mechanism(semantics));
  return slot.is_integer() ? Json(std::stoll(chosen)) : Json(chosen);
}

const char* kind_of(const Slot& slot) {
  if (slot.is_component()) return "component";
  if (slot.is_integer()) return "integer";
  return slot.is_number() ? "number" : "word";
}

Json gene_json(const Slot& slot, Semantics semantics) {
  Json gene{{"name", slot.name},
            {"summary", slot.help},
            {"kind", kind_of(slot)},
            {"default", default_json(slot, semantics)},
            {"voided_by", Json(voided_by(slot))}};
  if (!slot.paper) {
    gene["paper"] = false;
    gene["model"] = slot.model;
  }
  if (slot.is_number() || slot.is_integer()) {
    gene["bounds"] = {{"min", slot.min},
                      {"max", slot.is_bounded() ? Json(slot.max) : Json()},
                      {"max_exclusive", !slot.is_bounded() || slot.max_exclusive}};
    gene["scale"] = "linear";
    return gene;
  }
  gene["options"] = options_json(slot, semantics);
  std::set<std::string> vanilla;
  for (const auto either : {Semantics::corrected, Semantics::published}) {
    vanilla.insert(text(slot, vanilla_mechanism(either)));
  }
  gene["vanilla"] = vanilla;
  return gene;
}

Json genes_json(Semantics semantics, const SearchSpace& space) {
  std::set<std::string_view> offered;
  for (const auto& gene : space.genes()) offered.insert(place_of(gene.name).slot);
  auto genes = Json::array();
  for (const auto& slot : slots()) {
    if (slot.paper || offered.contains(slot.name)) genes.push_back(gene_json(slot, semantics));
  }
  return genes;
}

Json objectives_json() {
  auto json = Json::object();
  for (const auto& key : objectives().keys()) {
    const auto& entry = objectives().at(key);
    const auto objective = entry.make(Parameters(entry.description.settings));
    json[key] = {{"source", objective.analytic   ? "analytic"
                            : objective.measured ? "measured"
                                                 : "trained"},
                 {"unit", objective.unit},
                 {"maximise", objective.maximise}};
  }
  return json;
}

Json statuses_json() {
  auto json = Json::array();
  for (const auto status : kStatuses) {
    Evaluation evaluation;
    evaluation.status = status;
    json.push_back({{"name", to_string(status)}, {"usable", is_usable(evaluation)}});
  }
  return json;
}

}  // namespace

Json record_schema(Semantics semantics, const SearchSpace& space) {
  return {{"genes", genes_json(semantics, space)},
          {"objectives", objectives_json()},
          {"statuses", statuses_json()},
          {"reference_point", kReferencePoint}};
}

}  // namespace nas
