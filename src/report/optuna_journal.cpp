#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <optional>
#include <set>

#include "report/exports.hpp"
#include "report/recorded_asks.hpp"

namespace nas {

namespace {

using Json = nlohmann::ordered_json;

/// Numbers of the journal's operations, of Optuna's directions and of its trials' states.
enum Operation { create_study = 0, set_study_user = 2, set_study_system = 3, create_trial = 4 };
enum Direction { minimise = 1, maximise = 2 };
enum State { complete = 1, failed = 3 };

std::string line(Operation operation, const Json& fields) {
  Json record{{"op_code", static_cast<int>(operation)}, {"worker_id", "attnas"}};
  record.update(fields);
  return record.dump() + '\n';
}

/// Seconds since 1970 at which an evaluation began, as far as it is recorded.
std::optional<double> started(const Evaluation& evaluation) {
  const auto found = evaluation.measured.find("started");
  if (found == evaluation.measured.end() || !found->is_string()) return std::nullopt;
  std::tm time{};
  if (strptime(found->get_ref<const std::string&>().c_str(), "%Y-%m-%dT%H:%M:%SZ", &time) ==
      nullptr) {
    return std::nullopt;
  }
  return static_cast<double>(timegm(&time));
}

/// Optuna's times have no zone: "2026-01-31T12:00:00.250000".
std::string time_text(double seconds) {
  const auto microseconds = std::llround(seconds * 1e6);
  const std::time_t whole = microseconds / 1'000'000;
  std::tm time{};
  gmtime_r(&whole, &time);
  std::string text(32, '\0');
  text.resize(std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S.", &time));
  const auto fraction = std::to_string(microseconds % 1'000'000);
  return text + std::string(6 - fraction.size(), '0') + fraction;
}

/// When an ask's evaluations began and ended; not at all where that is not recorded.
void add_times(Json& trial, const RunSummary& run, const Ask& ask) {
  std::optional<double> begin;
  std::optional<double> end;
  for (const auto& id : ask.evaluations) {
    const auto& evaluation = *run.by_id.at(id);
    const auto time = started(evaluation);
    if (!time) continue;
    begin = std::min(begin.value_or(*time), *time);
    const double finished = *time + measured_number(evaluation, "train_seconds");
    end = std::max(end.value_or(finished), finished);
  }
  trial["datetime_start"] = nullptr;
  if (!begin) return;
  trial["datetime_start"] = time_text(ask.reused ? *end : *begin);
  trial["datetime_complete"] = time_text(*end);
}

/// Optuna keeps a distribution as JSON within a text.
std::string distribution(const Gene& gene) {
  if (gene.categorical()) {
    return Json{{"name", "CategoricalDistribution"}, {"attributes", {{"choices", gene.options}}}}
        .dump();
  }
  return Json{
      {"name", "FloatDistribution"},
      {"attributes", {{"step", nullptr}, {"low", gene.min}, {"high", gene.max}, {"log", false}}}}
      .dump();
}

Json intermediate_values(const Evaluation& evaluation) {
  auto values = Json::object();
  for (const auto& point : evaluation.curve) {
    const double perplexity = point.valid.perplexity();
    if (std::isfinite(perplexity)) values[std::to_string(point.step)] = perplexity;
  }
  return values;
}

std::string trial_line(const RunSummary& run, std::size_t study, const std::vector<Gene>& genes,
                       const RecordedAsk& record) {
  Json trial{{"study_id", study}};
  add_times(trial, run, *record.ask);
  // A trial that breaks a constraint is complete and infeasible: with the penalty where nothing was
  // measured, since a complete trial has values.
  const bool rejected = record.status == Status::rejected;
  const bool whole = record.usable || rejected;
  trial["state"] = static_cast<int>(whole ? complete : failed);
  trial["value"] = nullptr;
  trial["values"] = nullptr;
  if (whole && run.several()) trial["values"] = record.fitness;
  if (whole && !run.several()) trial["value"] = record.fitness.front();
  trial["distributions"] = Json::object();
  trial["params"] = Json::object();
  for (std::size_t i = 0; i < genes.size(); ++i) {
    trial["distributions"][genes[i].name] = distribution(genes[i]);
    trial["params"][genes[i].name] = gene_number(genes[i], record.genes[i]);
  }
  const auto& evaluation = *record.evaluation;
  trial["user_attrs"] = {
      {"candidate", evaluation.candidate},  {"label", run.label(evaluation.candidate)},
      {"status", to_string(record.status)}, {"reason", record.reason},
      {"batch", record.ask->batch},         {"replicates", record.ask->evaluations.size()},
      {"reused", record.ask->reused}};
  trial["system_attrs"] = Json::object();
  // What samplers and dashboards take for feasible: no number above 0.
  if (run.constrained() && whole) {
    trial["system_attrs"]["constraints"] = Json::array({rejected ? 1.0 : 0.0});
  }
  trial["intermediate_values"] = intermediate_values(evaluation);
  return line(create_trial, trial);
}

std::string study_lines(const RunSummary& run, std::size_t study, const std::string& name) {
  auto directions = Json::array();
  auto metrics = Json::array();
  for (const auto& objective : run.objectives) {
    directions.push_back(static_cast<int>(objective.maximise ? maximise : minimise));
    metrics.push_back(objective.name);
  }
  auto text = line(create_study, {{"study_name", name}, {"directions", directions}});
  text += line(set_study_system,
               {{"study_id", study}, {"system_attr", {{"study:metric_names", metrics}}}});
  text += line(set_study_user,
               {{"study_id", study}, {"user_attr", {{"function", function_title(run)}}}});
  const auto algorithm = run.config.value("algorithm", nlohmann::json::object());
  text += line(set_study_user, {{"study_id", study}, {"user_attr", {{"algorithm", algorithm}}}});
  return text;
}

}  // namespace

std::string optuna_journal(std::span<const RunSummary> runs) {
  std::string text;
  std::set<std::string> names;
  for (std::size_t study = 0; study < runs.size(); ++study) {
    const auto& run = runs[study];
    auto name = run_title(run);
    for (int n = 2; !names.insert(name).second; ++n) {
      name = run_title(run) + " (" + std::to_string(n) + ")";
    }
    text += study_lines(run, study, name);
    const auto genes = recorded_genes(run);
    for (const auto& record : recorded_asks(run)) text += trial_line(run, study, genes, record);
  }
  return text;
}

}  // namespace nas
