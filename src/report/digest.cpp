#include "report/digest.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <ostream>
#include <string_view>
#include <utility>

#include "indicators/indicators.hpp"
#include "report/json_number.hpp"
#include "report/recorded_genes.hpp"
#include "report/verdict.hpp"
#include "search/search.hpp"

namespace nas {

namespace {

nlohmann::json quantities_json(const Evaluation& evaluation) {
  auto json = nlohmann::json::object();
  for (const auto& [name, value] : evaluation.values) json[name] = json_number(value);
  return json;
}

nlohmann::json ids_json(const RankedCandidate& candidate) {
  auto ids = nlohmann::json::array();
  for (const auto* evaluation : candidate.evaluations) ids.push_back(evaluation->id);
  return ids;
}

nlohmann::json values_json(const RunSummary& run, const std::vector<double>& values) {
  auto json = nlohmann::json::object();
  for (std::size_t i = 0; i < values.size(); ++i) {
    json[run.objectives[i].name] = json_number(values[i]);
  }
  return json;
}

nlohmann::json standard_errors_json(const RunSummary& run, const RankedCandidate& candidate) {
  auto json = nlohmann::json::object();
  for (std::size_t i = 0; i < candidate.standard_errors.size(); ++i) {
    const auto& error = candidate.standard_errors[i];
    json[run.objectives[i].name] = json_number(error);
  }
  return json;
}

nlohmann::json step_json(const std::optional<std::int64_t>& step) {
  return step ? nlohmann::json(*step) : nlohmann::json();
}

nlohmann::json candidate_json(const RunSummary& run, const RankedCandidate& candidate) {
  const auto* usable = candidate.usable_evaluation();
  return {{"mechanism", candidate.label},
          {"candidate", candidate.candidate},
          {"values", values_json(run, candidate.values)},
          {"standard_errors", standard_errors_json(run, candidate)},
          {"on_front", candidate.on_front},
          {"n", candidate.n},
          {"replicates", candidate.wanted},
          {"stopped_at", step_json(candidate.stopped_at)},
          {"first_ask", candidate.first_ask},
          {"times_asked", candidate.times_asked},
          {"facts", usable != nullptr ? quantities_json(*usable) : nlohmann::json::object()},
          {"evaluations", ids_json(candidate)}};
}

/// A list of the digest, record by record.
struct Records {
  std::size_t size;
  std::function<nlohmann::json(std::size_t place)> at;  ///< to be called in order, once
};

nlohmann::json front_json(const RunSummary& run) {
  auto front = nlohmann::json::array();
  for (const auto i : run.front) {
    const auto& candidate = run.ranking[i];
    front.push_back({{"mechanism", candidate.label},
                     {"candidate", candidate.candidate},
                     {"values", values_json(run, candidate.values)},
                     {"standard_errors", standard_errors_json(run, candidate)},
                     {"n", candidate.n},
                     {"stopped_at", step_json(candidate.stopped_at)},
                     {"evaluations", ids_json(candidate)},
                     {"knee", run.knee == i}});
  }
  return front;
}

nlohmann::json controls_json(const RunSummary& run) {
  auto controls = nlohmann::json::array();
  for (const auto& [name, measured] : run.controls) {
    controls.push_back(candidate_json(run, measured));
    controls.back()["name"] = name;
  }
  return controls;
}

nlohmann::json batches_json(const RunSummary& run) {
  auto batches = nlohmann::json::array();
  for (const auto& batch : run.batches) {
    batches.push_back({{"batch", batch.batch},
                       {"asked", batch.asked},
                       {"failures", batch.failures},
                       {"rejected", batch.rejected},
                       {"best", json_number(batch.best)},
                       {"mean", batch.usable() > 0 ? json_number(batch.mean) : nullptr},
                       {"best_so_far", json_number(batch.best_so_far)}});
  }
  return batches;
}

nlohmann::json failures_json(const RunSummary& run, const Effort& effort) {
  auto failures = nlohmann::json::array();
  for (const auto* evaluation : effort.failures) {
    failures.push_back({{"mechanism", run.label(evaluation->candidate)},
                        {"status", to_string(evaluation->status)},
                        {"reason", evaluation->reason},
                        {"evaluation", evaluation->id}});
  }
  return failures;
}

nlohmann::json rejected_json(const RunSummary& run) {
  auto rejected = nlohmann::json::array();
  for (const auto& one : run.rejected) {
    rejected.push_back({{"mechanism", one.label},
                        {"candidate", one.candidate},
                        {"reason", one.reason},
                        {"trained", one.trained}});
  }
  return rejected;
}

/// How the search came on: the hypervolume, or the best value of the only objective.
nlohmann::json trace_json(const RunSummary& run) {
  auto trace = nlohmann::json::array();
  for (const auto& indicator : run.indicators) {
    trace.push_back({{"asked", indicator.asked},
                     {"evaluated", indicator.evaluated},
                     {"value", json_number(indicator.value)}});
    if (run.several()) trace.back()["front"] = indicator.front;
  }
  nlohmann::json json{
      {"value", run.indicators.empty() ? nullptr : json_number(run.indicators.back().value)},
      {"trace", trace}};
  if (run.several()) json["reference"] = kReferencePoint;
  return json;
}

nlohmann::json objectives_json(const RunSummary& run) {
  auto objectives = nlohmann::json::array();
  for (const auto& objective : run.objectives) {
    objectives.push_back(
        {{"name", objective.name},
         {"key", objective.key},
         {"unit", objective.unit},
         {"maximise", objective.maximise},
         {"source", objective.source.empty() ? nlohmann::json() : nlohmann::json(objective.source)},
         {"best", json_number(objective.best)},
         {"worst", json_number(objective.worst)},
         {"penalty", json_number(objective.penalty())}});
  }
  return objectives;
}

nlohmann::json point_json(const std::vector<double>& point) {
  auto json = nlohmann::json::array();
  for (const double value : point) json.push_back(json_number(value));
  return json;
}

/// A curve in the store's form, but for the texts that stand for what is not finite.
nlohmann::json curve_json(const Evaluation& evaluation) {
  nlohmann::json curve = evaluation.curve;
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
  [[nodiscard]] const nlohmann::json& all() const { return all_; }
  /// Where that of the n-th evaluation is among them; those that are paused come last.
  [[nodiscard]] std::size_t place(std::size_t n) const { return places_[n]; }

 private:
  nlohmann::json all_ = nlohmann::json::array();
  std::vector<std::size_t> places_;
};

nlohmann::json evaluation_json(const RunSummary& run, const Evaluation& evaluation,
                               std::size_t identity) {
  auto objectives = nlohmann::json::object();
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
          {"stopped_at", stopped ? nlohmann::json(evaluation.curve.back().step) : nullptr},
          {"objectives", objectives},
          {"values", quantities_json(evaluation)},
          {"measured", evaluation.measured},
          {"curve", curve_json(evaluation)}};
}

/// Seconds that a training run had taken where an ask was answered by it.
double seconds_at(const Evaluation& evaluation, std::int64_t until) {
  const auto seconds = spent_seconds(evaluation);
  for (const auto& point : evaluation.curve) {
    if (point.step != until) continue;
    return seconds - (measured_number(evaluation, "train_seconds") - point.seconds);
  }
  return seconds;
}

/// What a search had trained by an ask, that one and what was paused included.
struct Spent {
  std::size_t trainings = 0;  ///< that were begun
  double seconds = 0.0;
};

/// Counts up what asks have trained, told in the order of their numbers.
class Spending {
 public:
  explicit Spending(const RunSummary& run) : run_(run) {}
  /// All asks up to a number; those of a rung and the others are in lists of their own.
  Spent until(std::int64_t number) {
    for (;;) {
      const auto* ask = next(run_.asks, whole_);
      const auto* at_rung = next(run_.rung_asks, paused_);
      const bool rung = ask == nullptr || (at_rung != nullptr && at_rung->number < ask->number);
      const auto* first = rung ? at_rung : ask;
      if (first == nullptr || first->number > number) return spent_;
      ++(rung ? paused_ : whole_);
      add(*first);
    }
  }

 private:
  static const Ask* next(const std::vector<Ask>& asks, std::size_t place) {
    return place < asks.size() ? &asks[place] : nullptr;
  }
  void add(const Ask& ask) {
    for (const auto& id : ask.evaluations) {
      const auto& evaluation = *run_.by_id.at(id);
      if (is_screened_out(evaluation)) continue;
      const auto now = seconds_at(evaluation, ask.until);
      const auto [before, begun] = seconds_.try_emplace(id, 0.0);
      spent_.trainings += begun ? 1 : 0;
      spent_.seconds += std::max(0.0, now - before->second);
      before->second = std::max(before->second, now);
    }
  }
  const RunSummary& run_;
  std::size_t whole_ = 0;   // of run_.asks, counted
  std::size_t paused_ = 0;  // of run_.rung_asks, counted
  std::map<std::string_view, double> seconds_;
  Spent spent_;
};

Records asks_records(const RunSummary& run) {
  return {run.asks.size(),
          [&run, spending = Spending(run)](std::size_t i) mutable -> nlohmann::json {
            const auto& ask = run.asks[i];
            const auto& believed = run.believed[i];
            const auto status = run.status(ask);
            const auto spent = spending.until(ask.number);
            return {{"number", ask.number},
                    {"batch", ask.batch},
                    {"genotype", ask.genotype},
                    {"candidate", run.candidate(ask)},
                    {"evaluations", ask.evaluations},
                    {"reused", ask.reused},
                    {"fitness", point_json(ask.fitness)},
                    {"status", to_string(status)},
                    {"usable", is_usable(status)},
                    {"reason", run.reason(ask)},
                    {"believed", believed.empty() ? nlohmann::json() : point_json(believed)},
                    {"trained", spent.trainings},
                    {"seconds", spent.seconds}};
          }};
}

nlohmann::json rungs_json(const RunSummary& run) {
  auto rungs = nlohmann::json::array();
  for (const auto& rung : run.rungs) {
    rungs.push_back({{"step", rung.step}, {"reached", rung.reached}, {"went_on", rung.went_on}});
  }
  return rungs;
}

nlohmann::json rung_ask_json(const RunSummary& run, const Ask& ask, const Spent& spent) {
  return {{"number", ask.number},
          {"batch", ask.batch},
          {"genotype", ask.genotype},
          {"candidate", run.candidate(ask)},
          {"evaluation", ask.evaluations.front()},
          {"step", ask.until},
          {"fitness", point_json(ask.fitness)},
          {"trained", spent.trainings},
          {"seconds", spent.seconds}};
}

nlohmann::json genes_json(const RunSummary& run) {
  auto genes = nlohmann::json::array();
  for (const auto& gene : recorded_genes(run)) {
    auto& json = genes.emplace_back(nlohmann::json{{"name", gene.name}});
    if (gene.categorical()) {
      json["options"] = gene.options;
    } else {
      json["min"] = gene.min;
      json["max"] = gene.max;
    }
  }
  return genes;
}

/// What names of many genes say, in a form that needs no reader of names; null in other runs.
nlohmann::json models_json(const RunSummary& run) {
  if (!has_long_names(run)) return nullptr;
  const auto genes = gene_names(run);
  nlohmann::json json{{"genes", genes},
                      {"choices", nlohmann::json::object()},
                      {"differences", nlohmann::json::object()}};
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

/// The digest but for its long lists.
nlohmann::json short_parts(const RunSummary& run, const Identities& identities) {
  nlohmann::json json{
      {"schema", 3},
      {"objectives", objectives_json(run)},
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
      {"ended_by", run.ended_by.empty() ? nlohmann::json() : nlohmann::json(run.ended_by)},
      {"baseline", run.baseline ? candidate_json(run, *run.baseline) : nlohmann::json()},
      {"controls", controls_json(run)},
      {"warnings", warnings(run)},
      {"front", front_json(run)},
      {"batches", batches_json(run)},
      {"failures", failures_json(run, run.search)},
      {"rejected", rejected_json(run)},
      {"retest", run.retest},
      {"tuning", run.tuning},
      {"config", run.config},
      {"facts", run.facts},
      {"environment",
       run.sessions.empty() ? nlohmann::json::object() : run.sessions.back().at("environment")},
      {"sessions", run.sessions},
      {"record_schema", run.schema},
      {"genes", genes_json(run)},
      {"labels", run.labels},
      {"models", models_json(run)},
      {"identities", identities.all()}};
  if (!run.rung_asks.empty()) json["rungs"] = rungs_json(run);
  json.update(run.further);
  if (run.at_work.is_object()) {
    json["at_work"] = run.at_work;
    json["asking"] = run.asking;
  }
  json[run.several() ? "hypervolume" : "best"] = trace_json(run);
  if (run.several() && !run.last_population.empty()) {
    auto points = nlohmann::json::array();
    for (const auto& point : run.last_population) points.push_back(point_json(point));
    json["last_population"] = points;
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
  lists["rung_asks"] = {run.rung_asks.size(),
                        [&run, spending = Spending(run)](std::size_t i) mutable {
                          const auto& ask = run.rung_asks[i];
                          return rung_ask_json(run, ask, spending.until(ask.number));
                        }};
  lists["paused"] = evaluations(run.paused, run.evaluations.size());
  return lists;
}

}  // namespace

nlohmann::json results_json(const RunSummary& run) {
  const Identities identities(run);
  auto json = short_parts(run, identities);
  for (const auto& [key, records] : long_lists(run, identities)) {
    auto& list = json[key] = nlohmann::json::array();
    for (std::size_t i = 0; i < records.size; ++i) list.push_back(records.at(i));
  }
  return json;
}

void write_digest(const RunSummary& run, std::ostream& out) {
  const Identities identities(run);
  auto lists = long_lists(run, identities);
  const char* before = "{\n";
  const auto begin = [&](const std::string& key) -> std::ostream& {
    out << std::exchange(before, ",\n") << nlohmann::json(key) << ": ";
    return out;
  };
  std::map<std::string, nlohmann::json> facts = short_parts(run, identities);
  for (const auto& [key, records] : lists) {
    if (records.size == 0) facts[key] = nlohmann::json::array();
  }
  for (const auto& [key, value] : facts) {
    if (value.is_array() && !value.empty() && value.front().is_structured()) {
      lists[key] = {value.size(), [&value = value](std::size_t i) { return value[i]; }};
    } else {
      begin(key) << value;
    }
  }
  for (const auto& [key, records] : lists) {
    if (records.size == 0) continue;
    begin(key) << '[';
    for (std::size_t i = 0; i < records.size; ++i) {
      out << (i == 0 ? "\n" : ",\n") << records.at(i);
    }
    out << "\n]";
  }
  out << "\n}\n";
}

}  // namespace nas
