#include "report/digest.hpp"

#include <functional>
#include <map>
#include <ostream>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "indicators/indicators.hpp"
#include "report/column_blocks.hpp"
#include "report/json_number.hpp"
#include "report/recorded_genes.hpp"
#include "report/verdict.hpp"
#include "search/search.hpp"

namespace nas {

namespace {

using Json = nlohmann::json;

constexpr int kDigestVersion = 1;

/// What is made of each item of a list.
template <class Items, class Make>
Json list_of(const Items& items, const Make& make) {
  auto list = Json::array();
  for (const auto& item : items) list.push_back(make(item));
  return list;
}

Json quantities_json(const Evaluation& evaluation) {
  auto json = Json::object();
  for (const auto& [name, value] : evaluation.values) json[name] = json_number(value);
  return json;
}

/// Numbers, one per objective, by its name.
template <class Number>
Json by_objective(const RunSummary& run, const std::vector<Number>& numbers) {
  auto json = Json::object();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    json[run.objectives[i].name] = json_number(numbers[i]);
  }
  return json;
}

/// Calls what is given for each candidate that is being trained.
void each_at_work(const RunSummary& run, const std::function<void(const std::string&)>& call) {
  if (!run.at_work.is_object()) return;
  for (const auto& array : run.at_work.at("arrays")) {
    for (const auto& one : array.at("trainings")) {
      call(one.at("candidate").get_ref<const std::string&>());
    }
  }
}

/// What of a run is named by its place in a list of the file: candidates, evaluations, identities.
/// Names are those of the run, not copies.
class Places {
 public:
  explicit Places(const RunSummary& run) {
    std::map<std::string, std::size_t> known;
    for (const auto* some : {&run.evaluations, &run.paused}) {
      for (const auto& evaluation : *some) {
        add(evaluation.candidate);
        evaluations_.try_emplace(evaluation.id, identity_places_.size());
        auto identity = evaluation.identity;
        if (identity.is_object()) {
          for (const auto* own : {"candidate", "replicate"}) identity.erase(own);
        }
        const auto [found, added] = known.try_emplace(identity.dump(), identities_.size());
        if (added) identities_.push_back(std::move(identity));
        identity_places_.push_back(found->second);
      }
    }
    for (const auto& [name, label] : run.labels.items()) add(name);
    each_at_work(run, [this](const auto& name) { add(name); });
    const auto truth = run.further.find("truth");
    if (truth == run.further.end() || !truth->is_object()) return;
    for (const auto& [name, values] : truth->items()) add(name);
  }

  /// Of all candidates.
  [[nodiscard]] const std::vector<std::string_view>& names() const { return names_; }
  [[nodiscard]] std::size_t candidate(std::string_view name) const { return candidates_.at(name); }
  /// Those that are paused come last.
  [[nodiscard]] std::size_t evaluation(std::string_view id) const { return evaluations_.at(id); }
  [[nodiscard]] std::size_t evaluation(const Evaluation* one) const { return evaluation(one->id); }
  template <class Evaluations>
  [[nodiscard]] Json evaluations(const Evaluations& some) const {
    return list_of(some, [this](const auto& one) { return this->evaluation(one); });
  }
  /// Without what every evaluation has of its own, each once.
  [[nodiscard]] const Json& identities() const { return identities_; }
  [[nodiscard]] std::size_t identity(std::size_t evaluation) const {
    return identity_places_[evaluation];
  }

 private:
  void add(std::string_view name) {
    if (candidates_.try_emplace(name, names_.size()).second) names_.push_back(name);
  }
  std::vector<std::string_view> names_;
  std::unordered_map<std::string_view, std::size_t> candidates_;
  std::unordered_map<std::string_view, std::size_t> evaluations_;
  Json identities_ = Json::array();
  std::vector<std::size_t> identity_places_;
};

Json candidate_json(const RunSummary& run, const Places& places, const RankedCandidate& one) {
  const auto* usable = one.usable_evaluation();
  return {{"candidate", places.candidate(one.candidate)},
          {"values", by_objective(run, one.values)},
          {"standard_errors", by_objective(run, one.standard_errors)},
          {"n", one.n},
          {"stopped_at", one.stopped_at ? Json(*one.stopped_at) : Json()},
          {"evaluations", places.evaluations(one.evaluations)},
          {"on_front", one.on_front},
          {"replicates", one.wanted},
          {"first_ask", one.first_ask},
          {"times_asked", one.times_asked},
          {"facts", usable != nullptr ? quantities_json(*usable) : Json::object()}};
}

Json controls_json(const RunSummary& run, const Places& places) {
  return list_of(run.controls, [&](const ControlSummary& control) {
    auto json = candidate_json(run, places, control.measured);
    json["name"] = control.name;
    return json;
  });
}

Json batch_json(const BatchSummary& batch) {
  return {{"batch", batch.batch},
          {"asked", batch.asked},
          {"failures", batch.failures},
          {"rejected", batch.rejected},
          {"best", json_number(batch.best)},
          {"mean", batch.usable() > 0 ? json_number(batch.mean) : nullptr},
          {"best_so_far", json_number(batch.best_so_far)}};
}

/// How the search came on: the hypervolume, or the best value of the only objective.
Json trace_json(const RunSummary& run) {
  const auto trace = list_of(run.indicators, [&run](const Indicator& indicator) {
    Json json{{"asked", indicator.asked},
              {"evaluated", indicator.evaluated},
              {"value", json_number(indicator.value)}};
    if (run.several()) json["front"] = indicator.front;
    return json;
  });
  Json json{{"value", trace.empty() ? Json() : trace.back().at("value")}, {"trace", trace}};
  if (run.several()) json["reference"] = kReferencePoint;
  return json;
}

Json objective_json(const ObjectiveRecord& objective) {
  return {{"name", objective.name},
          {"key", objective.key},
          {"unit", objective.unit},
          {"maximise", objective.maximise},
          {"source", objective.source.empty() ? Json() : Json(objective.source)},
          {"best", json_number(objective.best)},
          {"worst", json_number(objective.worst)},
          {"penalty", json_number(objective.penalty())}};
}

Json point_json(const std::vector<double>& point) {
  return list_of(point, [](double value) { return json_number(value); });
}

/// A curve in the store's form, but for the texts that stand for what is not finite.
Json curve_json(const Evaluation& evaluation) {
  Json curve = evaluation.curve;
  for (auto& point : curve) {
    for (auto& value : point) {
      if (value.is_string()) value = nullptr;
    }
    for (auto& value : point.at("valid")) {
      if (value.is_string()) value = nullptr;
    }
  }
  return curve;
}

Json evaluation_json(const RunSummary& run, const Places& places, const Evaluation& evaluation,
                     std::size_t number) {
  auto objectives = Json::object();
  for (std::size_t i = 0; i < run.objectives.size(); ++i) {
    objectives[run.objectives[i].name] = json_number(run.value(evaluation, i));
  }
  const bool stopped = evaluation.status == Status::stopped_early && !evaluation.curve.empty();
  return {{"id", evaluation.id},
          {"candidate", places.candidate(evaluation.candidate)},
          {"replicate", evaluation.replicate},
          {"status", to_string(evaluation.status)},
          {"usable", is_usable(evaluation)},
          {"reason", evaluation.reason},
          {"identity", places.identity(number)},
          {"stopped_at", stopped ? Json(evaluation.curve.back().step) : nullptr},
          {"objectives", objectives},
          {"values", quantities_json(evaluation)},
          {"measured", evaluation.measured},
          {"curve", curve_json(evaluation)}};
}

/// What asks of both kinds say.
Json any_ask_json(const Places& places, const AnsweredAsk& ask) {
  return {{"number", ask.number},
          {"batch", ask.batch},
          {"genotype", ask.genotype == ask.candidate ? Json() : Json(ask.genotype)},
          {"candidate", places.candidate(ask.candidate)},
          {"fitness", point_json(ask.fitness)},
          {"trained", ask.trainings},
          {"seconds", ask.seconds}};
}

Json ask_json(const Places& places, const AnsweredAsk& ask) {
  auto json = any_ask_json(places, ask);
  json.update({{"evaluations", places.evaluations(ask.evaluations)},
               {"reused", ask.reused},
               {"status", to_string(ask.status)},
               {"usable", is_usable(ask.status)},
               {"reason", ask.reason},
               {"believed", ask.believed.empty() ? Json() : point_json(ask.believed)}});
  return json;
}

Json rung_ask_json(const Places& places, const AnsweredAsk& ask) {
  auto json = any_ask_json(places, ask);
  json.update({{"evaluation", places.evaluation(ask.evaluations.front())}, {"step", ask.until}});
  return json;
}

Json rung_json(const RungSummary& rung) {
  return {{"step", rung.step}, {"reached", rung.reached}, {"went_on", rung.went_on}};
}

Json searched_gene_json(const Gene& gene) {
  if (gene.categorical()) return {{"name", gene.name}, {"options", gene.options}};
  return {{"name", gene.name}, {"min", gene.min}, {"max", gene.max}};
}

/// What does not grow with the number of candidates.
Json facts_json(const RunSummary& run, const Places& places) {
  Json json{{"schema", kDigestVersion},
            {"objectives", list_of(run.objectives, objective_json)},
            {"counts",
             {{"asked", run.num_asked()},
              {"evaluated", run.search.evaluations},
              {"reused", run.reused},
              {"rejected", run.search.rejected},
              {"stopped_early", run.search.stopped_early},
              {"failures", run.search.failures.size()}}},
            {"train_seconds", run.search.train_seconds},
            {"outside_the_search",
             {{"evaluated", run.outside.evaluations},
              {"rejected", run.outside.rejected},
              {"failures", places.evaluations(run.outside.failures)},
              {"train_seconds", run.outside.train_seconds}}},
            {"failures", places.evaluations(run.search.failures)},
            {"front", run.front},
            {"knee", run.knee ? Json(*run.knee) : Json()},
            {"ended_by", run.ended_by.empty() ? Json() : Json(run.ended_by)},
            {"baseline", run.baseline ? candidate_json(run, places, *run.baseline) : Json()},
            {"controls", controls_json(run, places)},
            {"warnings", warnings(run)},
            {"batches", list_of(run.batches, batch_json)},
            {"retest", run.retest},
            {"config", run.config},
            {"facts", run.facts},
            {"environment",
             run.sessions.empty() ? Json::object() : run.sessions.back().at("environment")},
            {"sessions", run.sessions},
            {"record_schema", run.schema},
            {"genes", list_of(recorded_genes(run), searched_gene_json)},
            {"models", has_long_names(run) ? Json{{"genes", gene_names(run)}} : Json()},
            {"identities", places.identities()}};
  if (!run.rung_asks.empty()) json["rungs"] = list_of(run.rungs, rung_json);
  for (const auto& [key, value] : run.further.items()) {
    if (key != "truth") json[key] = value;
  }
  if (run.at_work.is_object()) {
    json["at_work"] = run.at_work;
    json["asking"] = run.asking;
  }
  json[run.several() ? "hypervolume" : "best"] = trace_json(run);
  if (run.several() && !run.last_population.empty()) {
    json["last_population"] = list_of(run.last_population, point_json);
    json["last_population_hypervolume"] =
        hypervolume(run.last_population, Point(run.objectives.size(), kReferencePoint));
  }
  return json;
}

/// A list of the digest, record by record.
struct Records {
  std::size_t size;
  std::function<Json(std::size_t place)> at;  ///< to be called in order, once
};

/// What is known of each candidate by its name.
Records candidates_records(const RunSummary& run, const Places& places) {
  const auto at = [](const Json& object, const std::string& name) {
    const auto found = object.find(name);
    return found == object.end() ? Json() : *found;
  };
  static const auto kNone = Json::object();
  const auto known = run.further.find("truth");
  const auto& truth = known == run.further.end() || !known->is_object() ? kNone : *known;
  const bool long_names = has_long_names(run);
  const auto genes = long_names ? gene_names(run) : std::vector<std::string>();
  std::unordered_set<std::string_view> evaluated;
  if (long_names) {
    for (const auto& evaluation : run.evaluations) evaluated.insert(evaluation.candidate);
    each_at_work(run, [&evaluated](const auto& name) { evaluated.insert(name); });
  }
  return {places.names().size(), [=, &run, &places, &truth](std::size_t i) {
            const std::string name(places.names()[i]);
            Json json{{"candidate", name},
                      {"mechanism", at(run.labels, name)},
                      {"truth", at(truth, name)}};
            if (!long_names) return json;
            const bool own = evaluated.contains(name);
            json["choices"] = own ? choices_json(run, name, genes) : Json();
            json["difference"] = own ? Json(short_label(run, name)) : Json();
            return json;
          }};
}

std::map<std::string, Records> long_lists(const RunSummary& run, const Places& places) {
  const auto list = [](const auto& some, auto make) {
    return Records{some.size(), [&some, make](std::size_t i) { return make(some[i]); }};
  };
  std::map<std::string, Records> lists{
      {"candidates", candidates_records(run, places)},
      {"evaluations",
       {run.evaluations.size(),
        [&](std::size_t i) { return evaluation_json(run, places, run.evaluations[i], i); }}},
      {"ranking",
       list(run.ranking, [&](const auto& one) { return candidate_json(run, places, one); })},
      {"rejected", list(run.rejected,
                        [&](const RejectedCandidate& one) {
                          return Json{{"candidate", places.candidate(one.candidate)},
                                      {"reason", one.reason},
                                      {"trained", one.trained}};
                        })},
      {"asks", list(run.asks, [&](const auto& ask) { return ask_json(places, ask); })}};
  if (run.rung_asks.empty()) return lists;
  lists["rung_asks"] =
      list(run.rung_asks, [&](const auto& ask) { return rung_ask_json(places, ask); });
  lists["paused"] = {run.paused.size(), [&](std::size_t i) {
                       const auto number = run.evaluations.size() + i;
                       return evaluation_json(run, places, run.paused[i], number);
                     }};
  return lists;
}

}  // namespace

void write_digest(const RunSummary& run, std::ostream& out) {
  const Places places(run);
  const char* before = "{\n";
  const auto begin = [&](const std::string& key) -> std::ostream& {
    return out << std::exchange(before, ",\n") << Json(key) << ": ";
  };
  const auto facts = facts_json(run, places);
  for (const auto& [key, value] : facts.items()) {
    begin(key);
    if (!value.is_array() || value.empty() || !value.front().is_structured()) {
      out << value;
      continue;
    }
    const char* next = "[\n";
    for (const auto& record : value) out << std::exchange(next, ",\n") << record;
    out << "\n]";
  }
  for (const auto& [key, records] : long_lists(run, places)) {
    begin(key) << '[' << (records.size == 0 ? "" : "\n");
    write_blocks(out, records.size, records.at);
    out << (records.size == 0 ? "]" : "\n]");
  }
  out << "\n}\n";
}

}  // namespace nas
