#include "report/summary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "indicators/archive.hpp"
#include "search/belief.hpp"
#include "search/search.hpp"
#include "statistics/statistics.hpp"

namespace nas {

double measured_number(const Evaluation& evaluation, const char* name) {
  const auto found = evaluation.measured.find(name);
  return found != evaluation.measured.end() && found->is_number() ? found->get<double>() : 0.0;
}

double ObjectiveRecord::scaled(double fitness) const {
  return (natural(fitness) - best) / (worst - best);
}

std::string ObjectiveRecord::title() const {
  std::string inside = unit == "1" ? "" : unit;
  if (maximise) inside += inside.empty() ? "max" : ", max";
  return inside.empty() ? name : name + " (" + inside + ")";
}

const Evaluation* RankedCandidate::usable_evaluation() const {
  const auto found = std::find_if(evaluations.begin(), evaluations.end(),
                                  [](const auto* evaluation) { return is_usable(*evaluation); });
  return found == evaluations.end() ? nullptr : *found;
}

void Effort::add(const Evaluation& evaluation) {
  ++evaluations;
  train_seconds += measured_number(evaluation, "train_seconds");
  if (!is_usable(evaluation)) failures.push_back(&evaluation);
}

namespace {

std::vector<ObjectiveRecord> read_objectives(const std::optional<nlohmann::json>& recorded) {
  std::vector<ObjectiveRecord> objectives;
  const auto number = [](const nlohmann::json& json, const char* name, double otherwise) {
    const auto found = json.find(name);
    return found != json.end() && found->is_number() ? found->get<double>() : otherwise;
  };
  for (const auto& json : recorded.value_or(nlohmann::json::array())) {
    const auto name = json.at("name").get<std::string>();
    objectives.push_back({.name = name,
                          .key = json.value("key", name),
                          .unit = json.value("unit", "1"),
                          .maximise = json.value("maximise", false),
                          .best = number(json, "best", 0.0),
                          .worst = number(json, "worst", 1.0)});
  }
  // A run that ended before it began: its tables still have a column.
  if (objectives.empty()) objectives.push_back({.name = "objective", .key = "", .unit = "1"});
  return objectives;
}

/// The asks before the first that needs more than so many evaluations in all.
std::vector<Ask> asks_within(std::vector<Ask> asks, std::int64_t trainings) {
  std::set<std::string> trained;
  const auto beyond = std::find_if(asks.begin(), asks.end(), [&](const Ask& ask) {
    trained.insert(ask.evaluations.begin(), ask.evaluations.end());
    return std::ssize(trained) > trainings;
  });
  asks.erase(beyond, asks.end());
  return asks;
}

}  // namespace

RunSummary::RunSummary(const Store& store, std::int64_t trainings)
    : asks(asks_within(store.asks(), trainings)),
      evaluations(store.evaluations()),
      indicators(store.indicators()) {
  read_meta(store);
  for (const auto& evaluation : evaluations) by_id[evaluation.id] = &evaluation;
  digest_asks();
  digest_efforts();
  digest_batches();
  find_front();
  find_baseline(store.meta("baseline"));
}

void RunSummary::read_meta(const Store& store) {
  config = store.meta("config").value_or(nlohmann::json::object());
  facts = store.meta("facts").value_or(nlohmann::json::object());
  schema = store.meta("schema").value_or(nlohmann::json());
  sessions = store.sessions();
  labels_ = store.meta("labels").value_or(nlohmann::json::object());
  objectives = read_objectives(store.meta("objectives"));
  const auto ended = store.meta("ended_by").value_or(nlohmann::json());
  if (ended.is_string()) ended_by = ended.get<std::string>();
  const auto population = store.meta("last_population").value_or(nlohmann::json());
  if (population.is_array()) last_population = population.get<Points>();
  retest = store.meta("retest").value_or(nlohmann::json());
  tuning = store.meta("tuning").value_or(nlohmann::json());
}

std::string RunSummary::label(const std::string& candidate) const {
  return labels_.is_object() ? labels_.value(candidate, candidate) : candidate;
}

bool RunSummary::answered_by_means() const {
  const auto table = facts.find("table");
  return table != facts.end() && table->value("mode", "") == "mean";
}

const std::string& RunSummary::candidate(const Ask& ask) const {
  return by_id.at(ask.evaluations.at(0))->candidate;
}

bool RunSummary::usable(const Ask& ask) const {
  return ask.fitness.size() == objectives.size() &&
         std::all_of(ask.fitness.begin(), ask.fitness.end(),
                     [](double value) { return std::isfinite(value); }) &&
         std::any_of(ask.evaluations.begin(), ask.evaluations.end(),
                     [this](const auto& id) { return is_usable(*by_id.at(id)); });
}

std::vector<double> RunSummary::natural(const std::vector<double>& fitness) const {
  std::vector<double> values;
  for (std::size_t i = 0; i < fitness.size(); ++i) {
    values.push_back(objectives.at(i).natural(fitness[i]));
  }
  return values;
}

void RunSummary::digest_asks() {
  const auto section = config.find("evaluation");
  const bool mean = section != config.end() && section->value("repeated", "") == "retrain";
  std::map<std::string, RankedCandidate> candidates;
  std::map<std::string, Belief> beliefs;  // by candidate
  std::set<std::string> seen;
  for (const auto& ask : asks) {
    auto& candidate = candidates[this->candidate(ask)];
    if (candidate.first_ask < 0) candidate.first_ask = ask.number;
    ++candidate.times_asked;
    reused += ask.reused ? 1 : 0;
    for (const auto& id : ask.evaluations) {
      if (!seen.insert(id).second) continue;
      candidate.evaluations.push_back(by_id.at(id));
      candidate.n += is_usable(*by_id.at(id)) ? 1 : 0;
    }
    if (!usable(ask)) continue;
    if (ask.evaluations.size() == 1) answered_alone_[ask.evaluations[0]] = &ask;
    auto& belief = beliefs[this->candidate(ask)];
    belief.add(ask.fitness, mean);
    candidate.fitness = belief.point;
  }
  for (auto& [name, candidate] : candidates) {
    candidate.candidate = name;
    complete(candidate);
    if (!candidate.fitness.empty()) ranking.push_back(std::move(candidate));
  }
}

void RunSummary::digest_efforts() {
  std::set<std::string> asked;
  for (const auto& ask : asks) asked.insert(ask.evaluations.begin(), ask.evaluations.end());
  for (const auto& evaluation : evaluations) {
    (asked.contains(evaluation.id) ? search : outside).add(evaluation);
  }
}

/// Fills in what follows from a candidate's name, fitness and evaluations.
void RunSummary::complete(RankedCandidate& candidate) const {
  candidate.label = label(candidate.candidate);
  candidate.values = natural(candidate.fitness);
  for (std::size_t i = 0; i < candidate.values.size(); ++i) {
    candidate.standard_errors.push_back(standard_error(candidate, i));
  }
}

std::optional<double> RunSummary::standard_error(const RankedCandidate& candidate,
                                                 std::size_t objective) const {
  std::vector<double> values;
  for (const auto* evaluation : candidate.evaluations) {
    if (!is_usable(*evaluation)) continue;
    const auto one = value(*evaluation, objective);
    if (!one) return std::nullopt;
    values.push_back(*one);
  }
  if (values.size() < 2) return std::nullopt;
  return estimate(values).standard_error;
}

void RunSummary::digest_batches() {
  const auto& first = objectives.front();
  const double none = first.natural(std::numeric_limits<double>::infinity());
  const auto better = [&first](double a, double b) {
    return first.maximise ? std::max(a, b) : std::min(a, b);
  };
  for (const auto& ask : asks) {
    if (batches.empty() || batches.back().batch != ask.batch) {
      batches.push_back({.batch = ask.batch,
                         .best = none,
                         .best_so_far = batches.empty() ? none : batches.back().best_so_far});
    }
    auto& batch = batches.back();
    ++batch.asked;
    if (!usable(ask)) {
      ++batch.failures;
      continue;
    }
    const double value = first.natural(ask.fitness.front());
    batch.best = better(batch.best, value);
    batch.best_so_far = better(batch.best_so_far, value);
    batch.mean += (value - batch.mean) / static_cast<double>(batch.asked - batch.failures);
  }
}

void RunSummary::find_front() {
  std::stable_sort(ranking.begin(), ranking.end(),
                   [](const auto& a, const auto& b) { return a.first_ask < b.first_ask; });
  Archive archive;  // in the order of the asks, as the search's own
  for (const auto& candidate : ranking) archive.insert(candidate.candidate, candidate.fitness);
  std::set<std::string> members;
  for (const auto& [name, point] : archive.front()) members.insert(name);
  for (auto& candidate : ranking) candidate.on_front = members.contains(candidate.candidate);
  std::stable_sort(ranking.begin(), ranking.end(), [](const auto& a, const auto& b) {
    return a.on_front != b.on_front ? a.on_front : a.fitness.front() < b.fitness.front();
  });
  Points points;
  for (std::size_t i = 0; i < ranking.size() && ranking[i].on_front; ++i) {
    front.push_back(i);
    points.push_back(ranking[i].fitness);
  }
  if (several() && front.size() >= 3) knee = nas::knee(points);
}

void RunSummary::find_baseline(const std::optional<nlohmann::json>& record) {
  if (!record || !record->is_object()) return;
  RankedCandidate found;
  for (const auto& id : record->at("evaluations")) {
    const auto evaluation = by_id.find(id.get<std::string>());
    if (evaluation == by_id.end()) continue;
    found.evaluations.push_back(evaluation->second);
    found.n += is_usable(*evaluation->second) ? 1 : 0;
  }
  if (found.n == 0) return;
  found.candidate = found.evaluations.front()->candidate;
  for (const auto& value : record->at("fitness")) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) return;
    found.fitness.push_back(value.get<double>());
  }
  if (found.fitness.size() != objectives.size()) return;
  complete(found);
  for (const auto& candidate : ranking) {
    if (candidate.candidate != found.candidate) continue;
    found.first_ask = candidate.first_ask;
    found.times_asked = candidate.times_asked;
    found.on_front = candidate.on_front;
  }
  baseline = std::move(found);
}

std::optional<double> RunSummary::value(const Evaluation& evaluation, std::size_t objective) const {
  const auto& name = objectives.at(objective).name;
  const auto measured = evaluation.measured.find(name);
  const bool is_measured = measured != evaluation.measured.end();
  // First, since an objective may have been given the name of another quantity.
  if (is_measured && measured->is_object() && measured->contains("value") &&
      measured->at("value").is_number()) {
    return measured->at("value").get<double>();
  }
  if (const auto found = evaluation.values.find(name); found != evaluation.values.end()) {
    return found->second;
  }
  if (is_measured && measured->is_number()) return measured->get<double>();
  if (const auto found = answered_alone_.find(evaluation.id); found != answered_alone_.end()) {
    return objectives[objective].natural(found->second->fitness[objective]);
  }
  return std::nullopt;
}

double RunSummary::scaled_hypervolume(const Points& fitness) const {
  Points scaled;
  for (const auto& point : fitness) {
    scaled.emplace_back();
    for (std::size_t i = 0; i < objectives.size(); ++i) {
      scaled.back().push_back(objectives[i].scaled(point.at(i)));
    }
  }
  return hypervolume(scaled, Point(objectives.size(), kReferencePoint));
}

}  // namespace nas
