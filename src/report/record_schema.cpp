#include "report/record_schema.hpp"

#include <set>
#include <string>
#include <variant>

#include "genotype/component.hpp"
#include "genotype/slots.hpp"
#include "search/objective.hpp"
#include "search/search.hpp"
#include "store/evaluation.hpp"

namespace nas {

namespace {

using Json = nlohmann::json;

Json options_json(const Slot& slot, Semantics semantics) {
  auto options = Json::array();
  if (!slot.is_component()) {
    for (const auto& word : slot.words) {
      options.push_back({{"key", word}, {"label", word}, {"voids", Json::array()}});
    }
    return options;
  }
  for (const auto& key : components().keys(slot.name)) {
    options.push_back({{"key", key},
                       {"label", component_label(semantics, slot.name, key)},
                       {"voids", components().at(slot.name, key).voids}});
  }
  return options;
}

/// What the vanilla transformer has: a component key, a word or a number.
Json default_json(const Slot& slot, Semantics semantics) {
  if (slot.is_number()) return std::get<double>(slot.vanilla);
  return text(slot, vanilla_mechanism(semantics));
}

Json genes_json(Semantics semantics) {
  auto genes = Json::array();
  for (const auto& slot : slots()) {
    auto& gene = genes.emplace_back(Json{{"name", slot.name},
                                         {"summary", slot.summary},
                                         {"kind", slot.is_component() ? "component"
                                                  : slot.is_number()  ? "number"
                                                                      : "word"},
                                         {"default", default_json(slot, semantics)},
                                         {"voided_by", Json(voided_by(slot))}});
    if (slot.is_number()) {
      gene["bounds"] = {{"min", 0.0}, {"max", slot.upper}, {"max_exclusive", true}};
      gene["scale"] = "linear";
      continue;
    }
    gene["options"] = options_json(slot, semantics);
    std::set<std::string> vanilla;
    for (const auto either : {Semantics::corrected, Semantics::published}) {
      vanilla.insert(text(slot, vanilla_mechanism(either)));
    }
    gene["vanilla"] = vanilla;
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
  for (const auto status : {Status::ok, Status::stopped_early, Status::diverged,
                            Status::out_of_memory, Status::rejected, Status::failed}) {
    Evaluation evaluation;
    evaluation.status = status;
    json.push_back({{"name", to_string(status)}, {"usable", is_usable(evaluation)}});
  }
  return json;
}

}  // namespace

Json record_schema(Semantics semantics) {
  return {{"genes", genes_json(semantics)},
          {"objectives", objectives_json()},
          {"statuses", statuses_json()},
          {"reference_point", kReferencePoint}};
}

}  // namespace nas
