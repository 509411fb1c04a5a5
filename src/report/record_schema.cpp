#include "report/record_schema.hpp"

#include <set>
#include <string>

#include "genotype/component.hpp"
#include "search/objective.hpp"
#include "search/search.hpp"
#include "store/evaluation.hpp"

namespace nas {

namespace {

using Json = nlohmann::json;

Json component_gene(const std::string& gene, Semantics semantics) {
  auto options = Json::array();
  for (const auto& key : components().keys(gene)) {
    options.push_back({{"key", key},
                       {"label", component_label(semantics, gene, key)},
                       {"voids", components().at(gene, key).voids}});
  }
  std::set<std::string> vanilla;
  for (const auto either : {Semantics::corrected, Semantics::published}) {
    vanilla.insert(vanilla_mechanism(either).component(gene));
  }
  return {{"name", gene}, {"options", std::move(options)}, {"vanilla", vanilla}};
}

Json genes_json(Semantics semantics) {
  auto genes = Json::array();
  for (const auto gene : kComponentGenes) {
    genes.push_back(component_gene(std::string(gene), semantics));
  }
  const auto plain = [](const char* key) {
    return Json{{"key", key}, {"label", key}, {"voids", Json::array()}};
  };
  genes.push_back({{"name", "bias"},
                   {"options", {plain("bias"), plain("no_bias")}},
                   {"vanilla", {vanilla_mechanism(semantics).bias ? "bias" : "no_bias"}}});
  genes.push_back({{"name", "attention_dropout"}});
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
