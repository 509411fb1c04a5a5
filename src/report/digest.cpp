#include "report/digest.hpp"

#include <algorithm>
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

/// What the front and all other lists of candidates say of one.
Json short_candidate_json(const RunSummary& run, const RankedCandidate& candidate) {
  const auto id = [](const auto* evaluation) { return evaluation->id; };
  return {{"mechanism", candidate.label},
          {"candidate", candidate.candidate},
          {"values", by_objective(run, candidate.values)},
          {"standard_errors", by_objective(run, candidate.standard_errors)},
          {"n", candidate.n},
          {"stopped_at", candidate.stopped_at ? Json(*candidate.stopped_at) : Json()},
          {"evaluations", list_of(candidate.evaluations, id)}};
}

Json candidate_json(const RunSummary& run, const RankedCandidate& candidate) {
  const auto* usable = candidate.usable_evaluation();
  auto json = short_candidate_json(run, candidate);
  json.update({{"on_front", candidate.on_front},
               {"replicates", candidate.wanted},
               {"first_ask", candidate.first_ask},
               {"times_asked", candidate.times_asked},
               {"facts", usable != nullptr ? quantities_json(*usable) : Json::object()}});
  return json;
}

/// A list of the digest, record by record.
struct Records {
  std::size_t size;
  std::function<Json(std::size_t place)> at;  ///< to be called in order, once
};

Json front_json(const RunSummary& run) {
  return list_of(run.front, [&run](std::size_t i) {
    auto json = short_candidate_json(run, run.ranking[i]);
    json["knee"] = run.knee == i;
    return json;
  });
}

Json controls_json(const RunSummary& run) {
  return list_of(run.controls, [&run](const ControlSummary& control) {
    auto json = candidate_json(run, control.measured);
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

Json failures_json(const RunSummary& run, const Effort& effort) {
  return list_of(effort.failures, [&run](const Evaluation* evaluation) -> Json {
    return {{"mechanism", run.label(evaluation->candidate)},
            {"status", to_string(evaluation->status)},
            {"reason", evaluation->reason},
            {"evaluation", evaluation->id}};
  });
}

Json rejected_json(const RejectedCandidate& one) {
  return {{"mechanism", one.label},
          {"candidate", one.candidate},
          {"reason", one.reason},
          {"trained", one.trained}};
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

/// Identities without what every evaluation has of its own, each once.
class Identities {
 public:
  explicit Identities(const RunSummary& run) {
    std::map<std::string, std::size_t> known;
    for (const auto* some : {&run.evaluations, &run.paused}) {
      for (const auto& evaluation : *some) {
        auto identity = evaluation.identity;
        if (identity.is_object()) {
          for (const auto* own : {"candidate", "replicate"}) identity.erase(own);
        }
        const auto [found, added] = known.try_emplace(identity.dump(), all_.size());
        if (added) all_.push_back(std::move(identity));
        places_.push_back(found->second);
      }
    }
  }
  [[nodiscard]] const Json& all() const { return all_; }
  /// Where that of the n-th evaluation is among them; those that are paused come last.
  [[nodiscard]] std::size_t place(std::size_t n) const { return places_[n]; }

 private:
  Json all_ = Json::array();
  std::vector<std::size_t> places_;
};

Json evaluation_json(const RunSummary& run, const Evaluation& evaluation, std::size_t identity) {
  auto objectives = Json::object();
  for (std::size_t i = 0; i < run.objectives.size(); ++i) {
    objectives[run.objectives[i].name] = json_number(run.value(evaluation, i));
  }
  const bool stopped = evaluation.status == Status::stopped_early && !evaluation.curve.empty();
  return {{"id", evaluation.id},
          {"candidate", evaluation.candidate},
          {"replicate", evaluation.replicate},
          {"status", to_string(evaluation.status)},
          {"usable", is_usable(evaluation)},
          {"reason", evaluation.reason},
          {"identity", identity},
          {"stopped_at", stopped ? Json(evaluation.curve.back().step) : nullptr},
          {"objectives", objectives},
          {"values", quantities_json(evaluation)},
          {"measured", evaluation.measured},
          {"curve", curve_json(evaluation)}};
}

/// What asks of both kinds say.
Json ask_json(const AnsweredAsk& ask) {
  return {{"number", ask.number},
          {"batch", ask.batch},
          {"genotype", ask.genotype},
          {"candidate", ask.candidate},
          {"fitness", point_json(ask.fitness)},
          {"trained", ask.trainings},
          {"seconds", ask.seconds}};
}

Records asks_records(const RunSummary& run) {
  return {run.asks.size(), [&run](std::size_t i) {
            const auto& ask = run.asks[i];
            auto json = ask_json(ask);
            json.update({{"evaluations", ask.evaluations},
                         {"reused", ask.reused},
                         {"status", to_string(ask.status)},
                         {"usable", is_usable(ask.status)},
                         {"reason", ask.reason},
                         {"believed", ask.believed.empty() ? Json() : point_json(ask.believed)}});
            return json;
          }};
}

Records rung_asks_records(const RunSummary& run) {
  return {run.rung_asks.size(), [&run](std::size_t i) {
            const auto& ask = run.rung_asks[i];
            auto json = ask_json(ask);
            json.update({{"evaluation", ask.evaluations.front()}, {"step", ask.until}});
            return json;
          }};
}

Json rung_json(const RungSummary& rung) {
  return {{"step", rung.step}, {"reached", rung.reached}, {"went_on", rung.went_on}};
}

Json searched_gene_json(const Gene& gene) {
  if (gene.categorical()) return {{"name", gene.name}, {"options", gene.options}};
  return {{"name", gene.name}, {"min", gene.min}, {"max", gene.max}};
}

/// What names of many genes say, in a form that needs no reader of names; null in other runs.
Json models_json(const RunSummary& run) {
  if (!has_long_names(run)) return nullptr;
  const auto genes = gene_names(run);
  Json json{{"genes", genes}, {"choices", Json::object()}, {"differences", Json::object()}};
  for (const auto& evaluation : run.evaluations) {
    const auto& name = evaluation.candidate;
    if (json["differences"].contains(name)) continue;
    json["differences"][name] = short_label(run, name);
    if (auto choices = choices_json(run, name, genes); !choices.is_null()) {
      json["choices"][name] = std::move(choices);
    }
  }
  return json;
}

/// What of the digest does not grow with the number of candidates.
Json short_parts(const RunSummary& run, const Identities& identities) {
  Json json{{"objectives", list_of(run.objectives, objective_json)},
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
              {"failures", failures_json(run, run.outside)},
              {"train_seconds", run.outside.train_seconds}}},
            {"ended_by", run.ended_by.empty() ? Json() : Json(run.ended_by)},
            {"baseline", run.baseline ? candidate_json(run, *run.baseline) : Json()},
            {"controls", controls_json(run)},
            {"warnings", warnings(run)},
            {"batches", list_of(run.batches, batch_json)},
            {"retest", run.retest},
            {"tuning", run.tuning},
            {"config", run.config},
            {"facts", run.facts},
            {"environment",
             run.sessions.empty() ? Json::object() : run.sessions.back().at("environment")},
            {"sessions", run.sessions},
            {"record_schema", run.schema},
            {"genes", list_of(recorded_genes(run), searched_gene_json)},
            {"identities", identities.all()}};
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

/// Its long lists.
std::map<std::string, Records> long_lists(const RunSummary& run, const Identities& identities) {
  const auto evaluations = [&](const std::vector<Evaluation>& some, std::size_t before) {
    return Records{some.size(), [&run, &identities, &some, before](std::size_t i) {
                     return evaluation_json(run, some[i], identities.place(before + i));
                   }};
  };
  std::map<std::string, Records> lists{
      {"ranking",
       {run.ranking.size(), [&run](std::size_t i) { return candidate_json(run, run.ranking[i]); }}},
      {"evaluations", evaluations(run.evaluations, 0)},
      {"asks", asks_records(run)}};
  if (run.rung_asks.empty()) return lists;
  lists["rung_asks"] = rung_asks_records(run);
  lists["paused"] = evaluations(run.paused, run.evaluations.size());
  return lists;
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

/// Where candidates and evaluations stand in the lists of the file: what names them is a number there.
/// Names are those of the run, not copies.
class Places {
 public:
  explicit Places(const RunSummary& run) {
    std::size_t number = 0;
    for (const auto* some : {&run.evaluations, &run.paused}) {
      for (const auto& evaluation : *some) {
        add(evaluation.candidate);
        evaluations_.try_emplace(evaluation.id, number++);
      }
    }
    for (const auto& [name, label] : run.labels.items()) add(name);
    each_at_work(run, [this](const auto& name) { add(name); });
    const auto truth = run.further.find("truth");
    if (truth == run.further.end() || !truth->is_object()) return;
    for (const auto& [name, values] : truth->items()) add(name);
  }
  [[nodiscard]] const std::vector<std::string_view>& names() const { return names_; }
  [[nodiscard]] std::size_t candidate(std::string_view name) const { return candidates_.at(name); }
  [[nodiscard]] std::size_t evaluation(std::string_view id) const { return evaluations_.at(id); }

  /// Puts numbers in the place of names, and takes out what the list of candidates says.
  void refer(Json& record) const {
    record.erase("mechanism");
    auto& candidate = record.at("candidate");
    candidate = this->candidate(candidate.get_ref<const std::string&>());
    const auto number = [this](Json& id) { id = evaluation(id.get_ref<const std::string&>()); };
    if (auto some = record.find("evaluations"); some != record.end()) {
      for (auto& id : *some) number(id);
    }
    if (auto one = record.find("evaluation"); one != record.end()) number(*one);
  }

 private:
  void add(std::string_view name) {
    if (candidates_.try_emplace(name, names_.size()).second) names_.push_back(name);
  }
  std::vector<std::string_view> names_;
  std::unordered_map<std::string_view, std::size_t> candidates_;
  std::unordered_map<std::string_view, std::size_t> evaluations_;
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

/// The long lists as they are in the file, where each candidate's name is once.
std::map<std::string, Records> lists_of_places(const RunSummary& run, const Identities& identities,
                                               const Places& places) {
  auto lists = long_lists(run, identities);
  lists["rejected"] = {run.rejected.size(),
                       [&run](std::size_t i) { return rejected_json(run.rejected[i]); }};
  for (auto& [key, records] : lists) {
    records.at = [&places, make = std::move(records.at)](std::size_t i) {
      auto record = make(i);
      places.refer(record);
      const auto asked = record.find("genotype");
      if (asked != record.end() &&
          *asked == places.names()[record.at("candidate").get<std::size_t>()]) {
        *asked = nullptr;
      }
      return record;
    };
  }
  lists["candidates"] = candidates_records(run, places);
  return lists;
}

/// Lists that are numbers in the file, and what goes with them.
Json short_lists(const RunSummary& run, const Places& places) {
  const auto number = [&places](const Evaluation* one) { return places.evaluation(one->id); };
  return {{"schema", 4},
          {"front", run.front},
          {"knee", run.knee ? Json(*run.knee) : Json()},
          {"failures", list_of(run.search.failures, number)},
          {"models", has_long_names(run) ? Json{{"genes", gene_names(run)}} : Json()}};
}

}  // namespace

nlohmann::json results_json(const RunSummary& run) {
  const Identities identities(run);
  auto json = short_parts(run, identities);
  json.update({{"schema", 3},
               {"front", front_json(run)},
               {"failures", failures_json(run, run.search)},
               {"rejected", list_of(run.rejected, rejected_json)},
               {"labels", run.labels},
               {"models", models_json(run)}});
  if (const auto truth = run.further.find("truth"); truth != run.further.end()) {
    json["truth"] = *truth;
  }
  for (const auto& [key, records] : long_lists(run, identities)) {
    auto& list = json[key] = Json::array();
    for (std::size_t i = 0; i < records.size; ++i) list.push_back(records.at(i));
  }
  return json;
}

void write_digest(const RunSummary& run, std::ostream& out) {
  const Identities identities(run);
  const Places places(run);
  const auto lists = lists_of_places(run, identities, places);
  const char* before = "{\n";
  const auto begin = [&](const std::string& key) -> std::ostream& {
    out << std::exchange(before, ",\n") << Json(key) << ": ";
    return out;
  };
  auto facts = short_parts(run, identities);
  facts.update(short_lists(run, places));
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
  for (const auto& [key, records] : lists) {
    begin(key) << '[' << (records.size == 0 ? "" : "\n");
    write_blocks(out, records.size, records.at);
    out << (records.size == 0 ? "]" : "\n]");
  }
  out << "\n}\n";
}

}  // namespace nas
