#include "report/summary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

#include "core/error.hpp"
#include "core/format.hpp"
#include "indicators/archive.hpp"
#include "report/json_number.hpp"
#include "search/belief.hpp"
#include "search/search.hpp"
#include "statistics/statistics.hpp"
#include "store/replicates.hpp"

namespace nas {

std::optional<double> computed_value(const Evaluation& evaluation, const std::string& name) {
  const auto found = evaluation.values.find(name);
  return found == evaluation.values.end() ? std::nullopt : std::optional(found->second);
}

double measured_number(const Evaluation& evaluation, const char* name) {
  return number_at(evaluation.measured, name).value_or(0.0);
}

double ObjectiveRecord::scaled(double fitness) const {
  return (natural(fitness) - best) / (worst - best);
}

double ObjectiveRecord::penalty() const {
  const auto minimised = [this](double value) { return maximise ? -value : value; };
  return minimised(best) + ObjectiveSet::kFailure * (minimised(worst) - minimised(best));
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

std::optional<Estimate> RankedCandidate::mean(const ValueOf& value_of) const {
  std::vector<double> known;
  for (const auto* evaluation : evaluations) {
    const auto value = is_usable(*evaluation) ? value_of(*evaluation) : std::nullopt;
    if (value) known.push_back(*value);
  }
  if (known.empty()) return std::nullopt;
  return estimate(known);
}

void Effort::add(const Evaluation& evaluation) {
  if (is_screened_out(evaluation)) {
    ++rejected;
    return;
  }
  ++evaluations;
  train_seconds += spent_seconds(evaluation);
  if (evaluation.status == Status::stopped_early) ++stopped_early;
  if (!is_usable(evaluation)) failures.push_back(&evaluation);
}

namespace {

std::vector<ObjectiveRecord> read_objectives(const std::optional<nlohmann::json>& recorded,
                                             const nlohmann::json& schema) {
  std::vector<ObjectiveRecord> objectives;
  const auto known = schema.is_object() ? schema.at("objectives") : nlohmann::json::object();
  for (const auto& json : recorded.value_or(nlohmann::json::array())) {
    const auto key = json.at("key").get<std::string>();
    objectives.push_back({.name = json.at("name"),
                          .key = key,
                          .unit = json.at("unit"),
                          .source = known.contains(key) ? known.at(key).value("source", "") : "",
                          .maximise = json.at("maximise"),
                          .best = number_at(json, "best").value_or(0.0),
                          .worst = number_at(json, "worst").value_or(1.0)});
  }
  // A run that ended before it began: its tables still have a column.
  if (objectives.empty()) objectives.push_back({.name = "objective", .key = "", .unit = "1"});
  return objectives;
}

std::vector<AnsweredAsk> recorded_asks(const Store& store) {
  std::vector<AnsweredAsk> asks;
  for (auto& ask : store.asks()) asks.push_back({std::move(ask)});
  return asks;
}

std::vector<Evaluation> short_evaluations(const Store& store) {
  std::vector<Evaluation> evaluations;
  store.each_evaluation([&evaluations](Evaluation evaluation) {
    shorten_identity(evaluation);
    evaluations.push_back(std::move(evaluation));
  });
  return evaluations;
}

}  // namespace

RunSummary::RunSummary(const Store& store)
    : asks(recorded_asks(store)),
      paused(store.partials()),
      evaluations(short_evaluations(store)),
      indicators(store.indicators()) {
  read_meta(store);
  for (const auto& evaluation : evaluations) by_id[evaluation.id] = &evaluation;
  std::erase_if(paused, [this](const auto& one) { return by_id.contains(one.id); });
  pause_trained_on();
  for (const auto& evaluation : paused) by_id.emplace(evaluation.id, &evaluation);
  digest_spending();
  digest_rungs();
  digest_answers();
  digest_asks();
  digest_efforts();
  digest_batches();
  find_front();
  find_baseline(store.meta("baseline"));
  find_controls(store.meta("controls").value_or(nlohmann::json()));
}

void RunSummary::read_meta(const Store& store) {
  config = store.meta("config").value_or(nlohmann::json::object());
  facts = store.meta("facts").value_or(nlohmann::json::object());
  schema = store.meta("schema").value_or(nlohmann::json());
  sessions = store.sessions();
  labels = store.meta("labels").value_or(nlohmann::json::object());
  if (const auto found = config.find("constraints"); found != config.end() && found->is_array()) {
    constraints_ = found->get<std::vector<std::string>>();
  }
  objectives = read_objectives(store.meta("objectives"), schema);
  for (const auto* key : {"elapsed_seconds", "planned_asks", "planned_trainings", "reference_point",
                          "truth", "truth_splits", "count_models"}) {
    further[key] = store.meta(key).value_or(nlohmann::json());
  }
  if (further["reference_point"].is_null()) further["reference_point"] = kReferencePoint;
  const auto ended = store.meta("ended_by").value_or(nlohmann::json());
  if (ended.is_string()) ended_by = ended.get<std::string>();
  const auto population = store.meta("last_population").value_or(nlohmann::json());
  if (population.is_array()) last_population = population.get<Points>();
  retest = store.meta("retest").value_or(nlohmann::json());
}

std::string RunSummary::label(const std::string& candidate) const {
  return labels.value(candidate, candidate);
}

bool RunSummary::answered_by_means() const {
  const auto table = facts.find("table");
  return table != facts.end() && table->value("mode", "") == "mean";
}

std::map<std::string_view, std::vector<const AnsweredAsk*>> RunSummary::asks_by_id() const {
  std::map<std::string_view, std::vector<const AnsweredAsk*>> answered;
  for (const auto& ask : asks) {
    for (const auto& id : ask.evaluations) answered[id].push_back(&ask);
  }
  return answered;
}

const RankedCandidate* RunSummary::ranked(std::string_view candidate) const {
  const auto found = places_.find(candidate);
  return found == places_.end() ? nullptr : &ranking[found->second];
}

const RankedCandidate* RunSummary::find(std::string_view candidate) const {
  if (const auto* found = ranked(candidate)) return found;
  return baseline && baseline->candidate == candidate ? &*baseline : nullptr;
}

std::vector<const Evaluation*> RunSummary::evaluations_of(const Ask& ask) const {
  std::vector<const Evaluation*> answering;
  for (const auto& id : ask.evaluations) answering.push_back(by_id.at(id));
  return answering;
}

Status RunSummary::status(const Ask& ask) const {
  const auto answering = evaluations_of(ask);
  const auto worst = worst_of(answering).status;
  const bool measured = ask.fitness.size() == objectives.size() &&
                        std::all_of(ask.fitness.begin(), ask.fitness.end(),
                                    [](double value) { return std::isfinite(value); }) &&
                        std::any_of(answering.begin(), answering.end(),
                                    [](const auto* evaluation) { return is_usable(*evaluation); });
  if (!measured) return is_usable(worst) ? Status::failed : worst;
  const bool penalised = std::equal(objectives.begin(), objectives.end(), ask.fitness.begin(),
                                    [](const auto& objective, double value) {
                                      constexpr double kRounding = 1e-12;
                                      return std::abs(value - objective.penalty()) <=
                                             kRounding * std::abs(objective.penalty());
                                    });
  if (penalised && !is_usable(worst)) return worst;
  if (penalised && constrained()) return Status::rejected;
  return any_stopped(answering) ? Status::stopped_early : Status::ok;
}

std::string RunSummary::reason(const AnsweredAsk& ask) const {
  const auto answering = evaluations_of(ask);
  switch (ask.status) {
    case Status::ok:
      return {};
    case Status::stopped_early:
      return stops_text(answering);
    case Status::rejected:
      if (is_usable(worst_of(answering))) return broken_constraint(ask);
      [[fallthrough]];
    default:
      return failures_text(answering);
  }
}

namespace {

/// What a constraint's text consists of: "flops <= 4e+06".
struct ConstraintText {
  std::string name, comparison;
  double bound = 0.0;

  explicit ConstraintText(const std::string& text) {
    std::istringstream words(text);
    words >> name >> comparison >> bound;
  }
  [[nodiscard]] bool broken_by(double value) const {
    return comparison == "<=" ? value > bound : value < bound;
  }
};

/// A quantity of one evaluation, as far as it is recorded.
std::optional<double> recorded_number(const Evaluation& evaluation, const std::string& name) {
  // First, since an objective may have been given the name of another quantity.
  const auto measured = evaluation.measured.find(name);
  if (measured != evaluation.measured.end() && measured->is_object()) {
    if (const auto value = number_at(*measured, "value")) return value;
  }
  if (const auto value = computed_value(evaluation, name)) return value;
  return number_at(evaluation.measured, name);
}

}  // namespace

/// Which constraint the means over an ask's replicates break, as far as they are recorded.
std::string RunSummary::broken_constraint(const Ask& ask) const {
  for (const auto& text : constraints_) {
    const ConstraintText constraint(text);
    std::vector<double> values;
    for (const auto* evaluation : evaluations_of(ask)) {
      if (const auto value = recorded_number(*evaluation, constraint.name))
        values.push_back(*value);
    }
    if (values.size() != ask.evaluations.size()) continue;
    const double mean = estimate(values).mean;
    if (!constraint.broken_by(mean)) continue;
    return constraint.name + " = " + value_text(mean) + ", must be " + constraint.comparison + " " +
           shortest(constraint.bound) +
           (values.size() > 1 ? " (over " + std::to_string(values.size()) + " replicates)" : "");
  }
  return "breaks one of the constraints " + join(constraints_);
}

namespace {

constexpr auto kToTheEnd = std::numeric_limits<std::int64_t>::max();

/// The furthest step to which asks had their first evaluation trained, kToTheEnd: they had it whole.
std::map<std::string, std::int64_t> furthest_steps(const std::vector<AnsweredAsk>& asks) {
  std::map<std::string, std::int64_t> furthest;
  for (const auto& ask : asks) {
    auto& step = furthest[ask.evaluations.front()];
    step = std::max(step, ask.until == 0 ? kToTheEnd : ask.until);
  }
  return furthest;
}

}  // namespace

/// Of the search, what it has paused and others have trained on, the baseline or the run that it
/// reuses, is still paused.
void RunSummary::pause_trained_on() {
  for (const auto& [id, step] : furthest_steps(asks)) {
    const auto ended = by_id.find(id);
    if (ended == by_id.end() || step == kToTheEnd) continue;
    auto before = *ended->second;
    pause_at(before, step, facts.value("bytes_per_token", 0.0));
    // What failed before it had a curve has lost what it had come to.
    if (before.status == Status::paused) paused.push_back(std::move(before));
  }
}

namespace {

/// Seconds that a training run had taken where an ask was answered by it.
double seconds_at(const Evaluation& evaluation, std::int64_t until) {
  const auto seconds = spent_seconds(evaluation);
  for (const auto& point : evaluation.curve) {
    if (point.step != until) continue;
    return seconds - (measured_number(evaluation, "train_seconds") - point.seconds);
  }
  return seconds;
}

}  // namespace

/// Counts up what all asks have trained, in the order of their numbers.
void RunSummary::digest_spending() {
  std::map<std::string_view, double> seconds;  // by evaluation
  std::int64_t trainings = 0;
  double sum = 0.0;
  for (auto& ask : asks) {
    for (const auto* evaluation : evaluations_of(ask)) {
      if (is_screened_out(*evaluation)) continue;
      const auto now = seconds_at(*evaluation, ask.until);
      const auto [before, begun] = seconds.try_emplace(evaluation->id, 0.0);
      trainings += begun ? 1 : 0;
      sum += std::max(0.0, now - before->second);
      before->second = std::max(before->second, now);
    }
    ask.trainings = trainings;
    ask.seconds = sum;
  }
}

/// Takes the asks out that were answered at a rung. What ended before it was answered by its end.
void RunSummary::digest_rungs() {
  const auto at_rung = [this](const AnsweredAsk& ask) {
    if (ask.until == 0) return false;
    const auto& evaluation = *by_id.at(ask.evaluations.front());
    return !evaluation.curve.empty() && evaluation.curve.back().step >= ask.until;
  };
  std::map<std::int64_t, std::set<std::string>> reached;  // evaluations by step
  const auto furthest = furthest_steps(asks);
  for (const auto& ask : asks) {
    if (!at_rung(ask)) continue;
    reached[ask.until].insert(ask.evaluations.front());
    reused += ask.reused ? 1 : 0;
    rung_asks.push_back(ask);
  }
  std::erase_if(asks, at_rung);
  for (const auto& [step, ids] : reached) {
    rungs.push_back({.step = step,
                     .reached = std::ssize(ids),
                     .went_on = std::count_if(ids.begin(), ids.end(), [&, step = step](auto& id) {
                       return furthest.at(id) > step;
                     })});
  }
}

void RunSummary::digest_answers() {
  for (auto* some : {&asks, &rung_asks}) {
    for (auto& ask : *some) ask.candidate = by_id.at(ask.evaluations.front())->candidate;
  }
  for (auto& ask : asks) {
    ask.status = status(ask);
    ask.reason = reason(ask);
  }
}

void RunSummary::digest_asks() {
  const auto section = config.value("evaluation", nlohmann::json::object());
  const bool mean = section.value("repeated", "") == "retrain";
  struct Beliefs {
    Belief whole, stopped;
    const AnsweredAsk* last = nullptr;
  };
  std::map<std::string_view, RankedCandidate> candidates;
  std::map<std::string_view, Beliefs> beliefs;  // by candidate
  std::set<std::string_view> seen;
  for (auto& ask : asks) {
    auto& candidate = candidates[ask.candidate];
    if (candidate.first_ask < 0) candidate.first_ask = ask.number;
    ++candidate.times_asked;
    reused += ask.reused ? 1 : 0;
    for (const auto& id : ask.evaluations) {
      if (!seen.insert(id).second) continue;
      candidate.evaluations.push_back(by_id.at(id));
      candidate.n += is_usable(*by_id.at(id)) ? 1 : 0;
    }
    auto& known = beliefs[ask.candidate];
    if (!mean) known = {};  // the latest answer is the mean over all that is known
    known.last = &ask;
    if (is_usable(ask.status)) {
      if (ask.evaluations.size() == 1) answered_alone_[ask.evaluations[0]] = &ask;
      (ask.status == Status::ok ? known.whole : known.stopped).add(ask.fitness, mean);
    }
    ask.believed = known.whole.point;
  }
  for (auto& [name, candidate] : candidates) {
    const auto& [whole, stopped, last] = beliefs.at(name);
    candidate.candidate = name;
    candidate.fitness = whole.answers > 0 ? whole.point : stopped.point;
    if (whole.answers == 0) note_stop(candidate);
    complete(candidate);
    if (!candidate.fitness.empty()) {
      ranking.push_back(std::move(candidate));
    } else if (last->status == Status::rejected) {
      rejected.push_back({.candidate = std::string(name),
                          .label = std::string(candidate.label),
                          .reason = last->reason,
                          .trained = !is_screened_out(*candidate.evaluations.front()),
                          .first_ask = candidate.first_ask});
    }
  }
  std::ranges::sort(rejected, {}, &RejectedCandidate::first_ask);
}

void RunSummary::note_stop(RankedCandidate& candidate) const {
  for (const auto* evaluation : candidate.evaluations) {
    if (evaluation->status != Status::stopped_early || evaluation->curve.empty()) continue;
    const auto step = evaluation->curve.back().step;
    candidate.stopped_at = std::min(candidate.stopped_at.value_or(step), step);
  }
}

void RunSummary::digest_efforts() {
  std::set<std::string_view> asked;
  for (const auto* some : {&asks, &rung_asks}) {
    for (const auto& ask : *some) asked.insert(ask.evaluations.begin(), ask.evaluations.end());
  }
  for (const auto& evaluation : paused) {
    search.add(evaluation);
    if (by_id.at(evaluation.id) == &evaluation) continue;
    asked.erase(evaluation.id);  // another stage has trained it on
    outside.train_seconds -= spent_seconds(evaluation);
  }
  for (const auto& evaluation : evaluations) {
    (asked.contains(evaluation.id) ? search : outside).add(evaluation);
  }
}

/// Fills in what follows from a candidate's name, fitness and evaluations.
void RunSummary::complete(RankedCandidate& candidate) const {
  candidate.label = candidate.evaluations.front()->candidate;
  if (const auto named = labels.find(candidate.candidate); named != labels.end()) {
    candidate.label = named->get_ref<const std::string&>();
  }
  const auto section = config.value("evaluation", nlohmann::json::object());
  // By rungs only the best are trained with further seeds.
  const auto each =
      config.contains("fidelity") ? std::int64_t{1} : section.value("replicates", std::int64_t{1});
  candidate.wanted = std::max<std::int64_t>(each, std::ssize(candidate.evaluations));
  for (std::size_t i = 0; i < candidate.fitness.size(); ++i) {
    candidate.values.push_back(objectives.at(i).natural(candidate.fitness[i]));
    const auto mean = candidate.mean([&](const auto& one) { return value(one, i); });
    const bool known = mean && mean->n > 1 && mean->n == candidate.n;  // of all of them
    candidate.standard_errors.push_back(known ? std::optional(mean->standard_error) : std::nullopt);
  }
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
    if (!is_usable(ask.status)) {
      ++(ask.status == Status::rejected ? batch.rejected : batch.failures);
      continue;
    }
    const double value = first.natural(ask.fitness.front());
    batch.mean += (value - batch.mean) / static_cast<double>(batch.usable());
    if (ask.status == Status::stopped_early) continue;
    batch.best = better(batch.best, value);
    batch.best_so_far = better(batch.best_so_far, value);
  }
}

void RunSummary::find_front() {
  std::stable_sort(ranking.begin(), ranking.end(),
                   [](const auto& a, const auto& b) { return a.first_ask < b.first_ask; });
  const bool any_whole = std::any_of(ranking.begin(), ranking.end(),
                                     [](const auto& candidate) { return !candidate.stopped_at; });
  Archive archive;  // in the order of the asks, as the search's own; of places in the ranking
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    if (any_whole && ranking[i].stopped_at) continue;
    archive.insert(std::to_string(i), ranking[i].fitness);
  }
  for (const auto& [place, point] : archive.front()) ranking[std::stoul(place)].on_front = true;
  std::stable_sort(ranking.begin(), ranking.end(), [](const auto& a, const auto& b) {
    if (a.on_front != b.on_front) return a.on_front;
    if (a.stopped_at.has_value() != b.stopped_at.has_value()) return !a.stopped_at;
    return a.fitness.front() < b.fitness.front();
  });
  Points points;
  for (std::size_t i = 0; i < ranking.size(); ++i) places_.emplace(ranking[i].candidate, i);
  for (std::size_t i = 0; i < ranking.size() && ranking[i].on_front; ++i) {
    front.push_back(i);
    points.push_back(ranking[i].fitness);
  }
  if (several() && front.size() >= 3) knee = nas::knee(points);
}

/// What was measured beside the search, as the store names its evaluations and their fitness;
/// nothing where none is usable.
std::optional<RankedCandidate> RunSummary::recorded_candidate(const nlohmann::json& record) const {
  RankedCandidate found;
  for (const auto& id : record.at("evaluations")) {
    const auto evaluation = by_id.find(id.get_ref<const std::string&>());
    if (evaluation == by_id.end()) continue;
    found.evaluations.push_back(evaluation->second);
    found.n += is_usable(*evaluation->second) ? 1 : 0;
  }
  if (found.n == 0) return std::nullopt;
  found.candidate = found.evaluations.front()->candidate;
  for (const auto& value : record.at("fitness")) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) return std::nullopt;
    found.fitness.push_back(value.get<double>());
  }
  if (found.fitness.size() != objectives.size()) return std::nullopt;
  complete(found);
  return found;
}

void RunSummary::find_controls(const nlohmann::json& record) {
  if (!record.is_array()) return;
  for (const auto& one : record) {
    auto found = recorded_candidate(one);
    if (found) controls.push_back({one.at("name").get<std::string>(), std::move(*found)});
  }
}

void RunSummary::find_baseline(const std::optional<nlohmann::json>& record) {
  if (!record || !record->is_object()) return;
  auto recorded = recorded_candidate(*record);
  if (!recorded) return;
  auto& found = *recorded;
  if (const auto* candidate = ranked(found.candidate)) {
    // A search that repeats candidates has trained it with further seeds.
    if (candidate->n > found.n && !candidate->stopped_at) {
      found = *candidate;
    } else {
      found.first_ask = candidate->first_ask;
      found.times_asked = candidate->times_asked;
      found.on_front = candidate->on_front;
    }
  }
  baseline = std::move(found);
}

std::optional<double> RunSummary::value(const Evaluation& evaluation, std::size_t objective) const {
  if (auto found = recorded_number(evaluation, objectives.at(objective).name)) return found;
  if (const auto found = answered_alone_.find(evaluation.id); found != answered_alone_.end()) {
    return objectives[objective].natural(found->second->fitness[objective]);
  }
  return std::nullopt;
}

}  // namespace nas
