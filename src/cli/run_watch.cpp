#include "cli/run_watch.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <exception>
#include <iomanip>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/running_trainings.hpp"
#include "evaluation/recall.hpp"
#include "report/json_number.hpp"
#include "report/recorded_genes.hpp"
#include "statistics/statistics.hpp"
#include "table/named.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

/// Without a word from the writer for so long, something is wrong, or a step takes very long.
constexpr double kSilentSeconds = 300.0;
constexpr std::size_t kTop = 3;

nlohmann::json list(const std::vector<double>& values) {
  auto json = nlohmann::json::array();
  for (const double value : values) json.push_back(json_number(value));
  return json;
}

/// Seconds since a time as utc_now() writes it.
double seconds_since(const std::string& time) {
  std::tm parts{};
  std::istringstream(time) >> std::get_time(&parts, "%Y-%m-%dT%H:%M:%SZ");
  return std::max(0.0, std::difftime(std::time(nullptr), timegm(&parts)));
}

/// Validation loss by step, in nats per token.
nlohmann::json curve_json(const std::vector<CurvePoint>& curve) {
  auto json = nlohmann::json::array();
  for (const auto& point : curve) {
    const double loss = point.valid.nll / static_cast<double>(point.valid.tokens);
    if (std::isfinite(loss)) json.push_back({point.step, loss});
  }
  return json;
}

/// Whether what was to follow the search is still missing.
bool lacks_stage(const RunSummary& run) {
  const auto retest = run.config.value("retest", nlohmann::json::object());
  return retest.is_object() && retest.value("replicates", 0) > 0 && run.retest.is_null();
}

/// Mechanisms that are trained in place of a search, in their order.
std::vector<std::string> listed_mechanisms(const RunSummary& run) {
  std::vector<std::string> listed;
  if (!run.listed()) return listed;
  for (const auto& name : run.config.at("mechanisms")) {
    if (name.is_string()) listed.push_back(name);
  }
  return listed;
}

/// Asks that are answered, of how many, or training runs where these are what is known beforehand.
/// @param planned   training runs of listed mechanisms and controls; null: not recorded.
/// @param finished  what was done is then all.
nlohmann::json progress_of(const RunSummary& run, const nlohmann::json& planned, bool finished) {
  if (run.listed()) {
    const auto retest = run.config.value("retest", nlohmann::json::object());
    const std::int64_t done = run.outside.evaluations;
    const auto most = finished              ? done
                      : planned.is_number() ? planned.get<std::int64_t>()
                                            : (std::ssize(run.config.at("mechanisms")) + 1) *
                                                  retest.value("replicates", std::int64_t{0});
    if (most == 0) return {{"done", done}, {"of", nullptr}, {"unit", "training run"}};
    return {{"done", std::min(done, most)},
            {"of", most},
            {"unit", "training run"},
            {"at_most", !finished && retest.contains("until")}};
  }
  // Asks that need no training of their own are free where the budget counts training runs: there
  // may be more than were planned.
  const auto& asks = run.further.at("planned_asks");
  if (asks.is_number() && asks.get<double>() >= static_cast<double>(run.num_asked())) {
    return {{"done", run.num_asked()}, {"of", asks}, {"unit", "ask"}};
  }
  const auto budget = run.config.value("budget", nlohmann::json::object());
  if (const auto most = budget.value("evaluations", std::int64_t{0}); most > 0) {
    return {
        {"done", std::min(run.search.evaluations, most)}, {"of", most}, {"unit", "training run"}};
  }
  return {{"done", run.num_asked()}, {"of", nullptr}, {"unit", "ask"}};
}

/// Asks of the present batch that nothing answers yet.
std::int64_t num_asking(const RunSummary& run) {
  if (!run.asking.is_object() || run.at_work.value("stage", "") != "search") return 0;
  const auto& asks = run.asking.at("asks");
  return std::count_if(asks.begin(), asks.end(), [&run](const auto& ask) {
    const auto& ids = ask.at("evaluations");
    return !std::all_of(ids.begin(), ids.end(), [&run](const auto& id) {
      return run.by_id.contains(id.template get_ref<const std::string&>());
    });
  });
}

/// Seconds of training that the budget allows beyond the evaluations that are told; nothing where it
/// has no such limit.
std::optional<double> seconds_left(const RunSummary& run) {
  const auto budget = run.config.value("budget", nlohmann::json::object());
  std::optional<double> most;
  for (const auto* key : {"train_seconds", "gpu_seconds"}) {
    const auto own = budget.value(key, 0.0);
    if (own > 0.0) most = std::min(own, most.value_or(own));
  }
  if (most) most = std::max(0.0, *most - run.search.train_seconds);
  return most;
}

/// The best value so far, of several objectives the hypervolume, by the run's asks or, where the budget
/// counts them, steps of training: the points where it becomes better, and the last ask.
nlohmann::json best_so_far(const RunSummary& run) {
  const auto budget = run.config.value("budget", nlohmann::json::object());
  const bool by_steps = budget.value("train_steps", 0.0) > 0.0;
  std::map<std::int64_t, std::pair<double, double>> reached;  // by asks: to be minimised, and shown
  if (run.several()) {
    for (const auto& one : run.indicators) reached[one.asked - 1] = {-one.value, one.value};
  } else {
    for (const auto& one : run.ranking) {
      if (one.first_ask < 0 || one.stopped_at) continue;
      reached[one.first_ask] = {one.fitness[0], one.values[0]};
    }
  }
  std::set<std::string_view> trained;
  std::int64_t steps = 0;
  std::int64_t last = 0;
  auto points = nlohmann::json::array();
  auto next = reached.begin();
  double best = std::numeric_limits<double>::infinity();
  for (const auto& ask : run.asks) {
    for (const auto& id : ask.evaluations) {
      const auto one = run.by_id.find(id);
      if (one == run.by_id.end() || !trained.insert(one->first).second) continue;
      steps += steps_of(*one->second);
    }
    last = by_steps ? steps : ask.number + 1;
    for (; next != reached.end() && next->first <= ask.number; ++next) {
      const auto& [fitness, value] = next->second;
      if (fitness >= best) continue;
      best = fitness;
      points.push_back({last, json_number(value)});
    }
  }
  return {{"title", run.several() ? "hypervolume" : run.objectives[0].title()},
          {"by", by_steps ? "training step" : "ask"},
          {"points", points},
          {"last", last}};
}

/// Time left of the search, or of the stage that follows it, as the display of nas-run reckons.
nlohmann::json left_of(const RunSummary& run, const nlohmann::json& progress) {
  if (!run.at_work.is_object()) return nullptr;
  const auto workers = std::max(1, run.at_work.value("workers", 1));
  double trainings = run.at_work.value("waiting", 0.0);
  std::vector<double> seconds;
  std::vector<const Evaluation*> latest;
  for (const auto& evaluation : run.evaluations) {
    if (measured_number(evaluation, "train_seconds") > 0.0) latest.push_back(&evaluation);
  }
  std::sort(latest.begin(), latest.end(), [](const auto* a, const auto* b) {
    return a->measured.value("started", "") < b->measured.value("started", "");
  });
  for (const auto* one : latest) seconds.push_back(measured_number(*one, "train_seconds"));
  double begun = 0.0;
  double running = 0.0;
  double elapsed = 0.0;
  for (const auto& array : run.at_work.at("arrays")) {
    const auto size = static_cast<double>(array.at("trainings").size());
    if (size == 0.0) continue;
    const double done = share_done(array.at("step"), array.at("steps"));
    begun += size;
    running += size * (1.0 - done);
    const auto since = seconds_since(array.at("started"));
    elapsed += since;
    if (done > 0.0) seconds.push_back(since / done / size);
  }
  if (run.listed() && progress.at("of").is_number()) {  // beyond the seeds that are trained now
    const double rest = progress.at("of").get<double>() - progress.at("done").get<double>() - begun;
    trainings = std::max(trainings, rest);
  }
  trainings += running;
  const bool searching = run.at_work.value("stage", "") == "search";
  const bool known = !searching || progress.at("of").is_number();
  if (searching && known) {
    const auto of = progress.at("of").get<double>();
    const bool asks = progress.at("unit") == "ask";
    const auto asked = static_cast<double>(std::max<std::size_t>(run.num_asked(), 1));
    // Of asks still to come, as many are trained as of those so far.
    const double share =
        asks && !run.asks.empty() ? static_cast<double>(run.search.evaluations) / asked : 1.0;
    const double booked = asks ? static_cast<double>(num_asking(run)) : trainings;
    trainings += std::max(0.0, of - progress.at("done").get<double>() - booked) * share;
  }
  auto left = known ? time_left(trainings, workers, seconds) : std::nullopt;
  const auto budget = seconds_left(run);
  if (searching && budget && (left || !known)) {
    left = time_left_by_budget(left, *budget, elapsed,
                               time_left(running, workers, std::move(seconds)), workers);
  }
  if (!left) return nullptr;
  return {progress.value("at_most", false) ? left->high : left->low, left->high};
}

}  // namespace

void ChangingRecords::set(const std::string& key, nlohmann::json record, std::int64_t version) {
  auto& entry = records_[key];
  if (entry.record == record) return;
  entry = {std::move(record), version};
}

nlohmann::json ChangingRecords::since(std::int64_t version) const {
  auto records = nlohmann::json::array();
  for (const auto& [key, entry] : records_) {
    if (entry.version > version) records.push_back(entry.record);
  }
  return records;
}

RunWatch::RunWatch(const fs::path& run, std::int64_t before)
    : copy_(store_named(run)), version_(before), oldest_(before) {
  read();
}

/// Reads what is new.
void RunWatch::read() {
  copy_.read([this] { read_copy(); });
}

void RunWatch::look() {
  using Clock = std::chrono::steady_clock;
  constexpr Clock::duration kBetween = std::chrono::milliseconds(500);
  constexpr int kShare = 10;  // of the time of one core
  const auto began = Clock::now();
  if (began - looked_ < std::max(kBetween, kShare * took_)) return;
  nlohmann::json problem;
  try {
    read();
  } catch (const std::exception& error) {  // whatever it is, the next look may succeed
    problem = error.what();
  }
  looked_ = Clock::now();
  took_ = looked_ - began;
  if (problem == header_["error"]) return;
  header_["error"] = problem;
  ++version_;
}

void RunWatch::read_copy() {
  const bool writer = copy_.is_written();
  const bool changed = copy_.update();
  const bool ended = writer_ && !writer;
  writer_ = writer;
  if (changed || ended || !whole_) {
    const bool was_whole = std::exchange(whole_, false);
    const Store store(copy_.file(), Store::Mode::read_only);
    // Another run that has taken its place may have as many sessions, but not the same ones.
    const bool goes_on = was_whole && store.sessions() == run_->sessions;
    if (goes_on) {
      run_.emplace(RunSummary(store, std::move(*run_)));
    } else {
      run_.emplace(store);
    }
    if (writer) {
      run_->asking = store.meta("asking").value_or(nullptr);
      run_->at_work = store.meta("at_work").value_or(nullptr);
    }
    planned_trainings_ = store.meta("planned_trainings").value_or(nullptr);
    ++version_;
    if (!goes_on) {
      evaluations_.clear();
      candidates_.clear();
      names_.clear();
      oldest_ = version_;
    }
    describe();
    whole_ = true;
  }
  if (auto now = phase(); now != phase_) {
    phase_ = std::move(now);
    ++version_;
  }
}

std::string RunWatch::phase() const {
  if (writer_) return copy_.age() > kSilentSeconds ? "silent" : "running";
  return run_->ended_by.empty() || lacks_stage(*run_) ? "stopped" : "finished";
}

std::size_t RunWatch::number_of(const std::string& candidate) {
  return numbers_.try_emplace(candidate, numbers_.size()).first->second;
}

void RunWatch::describe() {
  const auto& run = *run_;
  const auto progress = progress_of(run, planned_trainings_, phase() == "finished");
  const auto text = [](const nlohmann::json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  auto objectives = nlohmann::json::array();
  for (const auto& objective : run.objectives) {
    objectives.push_back(
        {{"name", objective.name}, {"title", objective.title()}, {"maximise", objective.maximise}});
  }
  describe_candidates();
  describe_evaluations();
  auto front = nlohmann::json::array();
  for (const auto i : run.front) front.push_back(number_of(run.ranking[i].candidate));
  auto top = nlohmann::json::array();
  for (const auto& candidate : run.ranking) {
    if (top.size() == kTop) break;
    if (run.baseline && candidate.candidate == run.baseline->candidate) continue;
    top.push_back(number_of(candidate.candidate));
  }
  nlohmann::json listed;
  for (const auto& name : listed_mechanisms(run)) listed.push_back(number_of(name));
  nlohmann::json baseline;
  if (run.baseline) {
    baseline = {{"c", number_of(run.baseline->candidate)}, {"values", list(run.baseline->values)}};
  }
  const auto now = run.sessions.empty() ? nlohmann::json::object() : run.sessions.back();
  header_ = {{"name", text(run.config, "name")},
             {"folder", copy_.original().parent_path().string()},
             {"ended_by", run.ended_by},
             {"started", text(now, "started")},
             {"host", text(now, "host")},
             {"elapsed_seconds", run.further.at("elapsed_seconds")},
             {"progress", progress},
             {"left", left_of(run, progress)},
             {"objectives", objectives},
             {"baseline", baseline},
             {"listed", listed},
             {"front", front},
             {"top", top},
             {"best", best_json()},
             {"verdict", run.retest.is_object() ? text(run.retest, "verdict") : std::string()},
             {"hypervolume", run.several() && !run.indicators.empty()
                                 ? json_number(run.indicators.back().value)
                                 : nlohmann::json()},
             {"counts",
              {{"asked", run.num_asked()},
               {"evaluated", run.search.evaluations},
               {"outside", run.outside.evaluations},
               {"reused", run.reused},
               {"rejected", run.search.rejected},
               {"stopped_early", run.search.stopped_early},
               {"failures", run.search.failures.size() + run.outside.failures.size()}}},
             {"at_work", at_work_json()}};
}

nlohmann::json RunWatch::best_json() {
  auto best = nlohmann::json::array();
  for (std::size_t i = 0; i < run_->objectives.size(); ++i) {
    const RankedCandidate* found = nullptr;
    for (const auto j : run_->front) {
      const auto& candidate = run_->ranking[j];
      if (found == nullptr || candidate.fitness[i] < found->fitness[i]) found = &candidate;
    }
    if (found == nullptr) continue;
    best.push_back({{"c", number_of(found->candidate)}, {"value", json_number(found->values[i])}});
  }
  return best;
}

nlohmann::json RunWatch::at_work_json() {
  const auto& work = run_->at_work;
  if (!work.is_object()) return nullptr;
  auto arrays = nlohmann::json::array();
  for (const auto& array : work.at("arrays")) {
    auto trainings = nlohmann::json::array();
    for (const auto& training : array.at("trainings")) {
      if (run_->by_id.contains(training.at("evaluation").get_ref<const std::string&>())) continue;
      trainings.push_back(
          {{"c", number_of(training.at("candidate"))}, {"replicate", training.at("replicate")}});
    }
    if (trainings.empty()) continue;
    arrays.push_back({{"trainings", trainings},
                      {"started", array.at("started")},
                      {"step", array.at("step")},
                      {"steps", array.at("steps")},
                      {"curve", array.at("curve")}});
  }
  const auto asking = run_->asking.is_object() ? run_->asking : nlohmann::json::object();
  const bool searches = work.value("stage", "") == "search";
  return {{"stage", work.at("stage")},
          {"workers", work.at("workers")},
          {"waiting", work.at("waiting")},
          {"batch", searches ? asking.value("batch", nlohmann::json()) : nlohmann::json()},
          {"asking", num_asking(*run_)},
          {"arrays", arrays}};
}

/// Names and values of all candidates that have been evaluated or are at work.
void RunWatch::describe_candidates() {
  const auto& run = *run_;
  const auto beside = run.baseline ? run.baseline->candidate : std::string();
  if (beside != told_from_) names_.clear();
  told_from_ = beside;
  const auto listed = listed_mechanisms(run);
  std::set<std::string> all(listed.begin(), listed.end());
  for (const auto& evaluation : run.evaluations) all.insert(evaluation.candidate);
  if (run.at_work.is_object()) {
    for (const auto& array : run.at_work.at("arrays")) {
      for (const auto& one : array.at("trainings")) all.insert(one.at("candidate"));
    }
  }
  for (const auto& name : all) {
    auto& words = names_[name];
    if (words.empty()) words = short_label(run, name);
    nlohmann::json record{{"c", number_of(name)}, {"name", words}};
    if (const auto label = run.label(name); label != words) record["label"] = label;
    if (const auto* found = run.ranked(name)) {
      record["values"] = list(found->values);
      record["n"] = found->n;
      record["ask"] = found->first_ask;
      record["stopped"] = found->stopped_at.has_value();
    }
    candidates_.set(name, std::move(record), version_);
  }
}

void RunWatch::describe_evaluations() {
  const auto& run = *run_;
  const auto asks = run.asks_by_id();
  std::set<std::string> of_baseline;
  if (run.baseline) {
    for (const auto* evaluation : run.baseline->evaluations) of_baseline.insert(evaluation->id);
  }
  for (const auto& evaluation : run.evaluations) {
    auto values = nlohmann::json::array();
    for (std::size_t i = 0; i < run.objectives.size(); ++i) {
      values.push_back(is_usable(evaluation) ? json_number(run.value(evaluation, i))
                                             : nlohmann::json());
    }
    const auto ask = asks.find(evaluation.id);
    evaluations_.set(evaluation.id,
                     {{"id", evaluation.id},
                      {"c", number_of(evaluation.candidate)},
                      {"replicate", evaluation.replicate},
                      {"status", to_string(evaluation.status)},
                      {"usable", is_usable(evaluation)},
                      {"reason", evaluation.reason},
                      {"values", values},
                      {"seconds", measured_number(evaluation, "train_seconds")},
                      {"ask", ask == asks.end() ? nlohmann::json()
                                                : nlohmann::json(ask->second.front()->number)},
                      {"baseline", of_baseline.contains(evaluation.id)},
                      {"curve", curve_json(evaluation.curve)}},
                     version_);
  }
}

std::string RunWatch::name_of(const std::string& candidate) const {
  const auto found = names_.find(candidate);
  return found == names_.end() ? candidate : found->second;
}

/// Of listed mechanisms the one with the best mean, of those with the most seeds, and the baseline's
/// mean.
void RunWatch::describe_listed(nlohmann::json& row) const {
  const auto& run = *run_;
  std::map<std::string, std::vector<double>> values;
  for (const auto& one : run.evaluations) {
    const auto value = is_usable(one) ? run.value(one, 0) : std::nullopt;
    if (value) values[one.candidate].push_back(*value);
  }
  const auto baseline = run.config.value("baseline", nlohmann::json::object());
  if (const auto name = baseline.find("mechanism"); name != baseline.end() && name->is_string()) {
    const auto own = values.find(name->get<std::string>());
    if (own != values.end()) row["baseline"] = json_number(estimate(own->second).mean);
  }
  std::pair<std::size_t, double> best;  // more seeds, then a better mean
  for (const auto& name : listed_mechanisms(run)) {
    const auto own = values.find(name);
    if (own == values.end()) continue;
    const double mean = estimate(own->second).mean;
    const std::pair key{own->second.size(), run.objectives[0].maximise ? mean : -mean};
    if (!row["best"].is_null() && key <= best) continue;
    best = key;
    row["best"] = {
        {"name", name_of(name)}, {"label", run.label(name)}, {"value", json_number(mean)}};
  }
}

nlohmann::json RunWatch::overview() const {
  const auto& run = *run_;
  nlohmann::json json{
      {"phase", phase_},
      {"listed", run.listed()},
      {"objective", header_.at("objectives")[0]},
      {"several", run.several()},
      {"baseline", run.baseline ? json_number(run.baseline->values[0]) : nlohmann::json()},
      {"best", nullptr}};
  json["title"] = header_.at("name");
  for (const auto* key : {"ended_by", "started", "elapsed_seconds", "progress", "left"}) {
    json[key] = header_.at(key);
  }
  json["error"] = header_.value("error", nlohmann::json());
  // Values are comparable where the data are.
  const auto data = run.config.value("data", nlohmann::json::object());
  const auto problem = run.config.value("problem", nlohmann::json::object());
  json["data"] = data.value("corpus", problem.value("type", ""));
  json["scale"] = {run.objectives[0].best, run.objectives[0].worst};
  if (run.listed()) {
    describe_listed(json);
    return json;
  }
  json["so_far"] = best_so_far(run);
  if (!run.ranking.empty()) {
    const auto& best = run.ranking.front();
    json["best"] = {{"name", name_of(best.candidate)},
                    {"label", best.label},
                    {"value", json_number(best.values[0])}};
  }
  return json;
}

nlohmann::json RunWatch::state(std::int64_t since) const {
  const bool known = since >= oldest_ && since <= version_;
  auto json = header_;
  json["version"] = version_;
  json["phase"] = phase_;
  json["whole"] = !known;
  json["candidates"] = candidates_.since(known ? since : -1);
  json["evaluations"] = evaluations_.since(known ? since : -1);
  return json;
}

}  // namespace nas
