#include "report/files.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <system_error>

#include "core/format.hpp"
#include "report/csv.hpp"
#include "report/digest.hpp"
#include "report/recorded_genes.hpp"

namespace nas {

namespace {

using Row = std::vector<std::string>;

const Row& quality_columns() {
  static const Row kColumns{"perplexity", "published_perplexity", "nll", "tokens", "accuracy"};
  return kColumns;
}

Row quality_fields(const Evaluation& evaluation) {
  if (!is_usable(evaluation) || evaluation.curve.empty()) return Row(quality_columns().size());
  const auto& valid = evaluation.curve.back().valid;
  return {shortest(valid.perplexity()), shortest(valid.published_perplexity()), shortest(valid.nll),
          std::to_string(valid.tokens), shortest(valid.accuracy())};
}

/// Objectives that are not among the columns anyway.
std::vector<std::size_t> further_objectives(const RunSummary& run, const Row& columns) {
  std::vector<std::size_t> further;
  for (std::size_t i = 0; i < run.objectives.size(); ++i) {
    const auto& name = run.objectives[i].name;
    if (std::find(columns.begin(), columns.end(), name) == columns.end()) further.push_back(i);
  }
  return further;
}

}  // namespace

namespace {

Row mean_columns(const RunSummary& run) {
  Row columns;
  for (const auto& objective : run.objectives) {
    columns.push_back(objective.name + "_mean");
    columns.push_back(objective.name + "_standard_error");
  }
  columns.emplace_back("n");
  return columns;
}

/// The joint results of each candidate's replicates, by candidate.
std::map<std::string, Row> mean_fields(const RunSummary& run) {
  std::map<std::string, Row> fields;
  const auto add = [&](const RankedCandidate& candidate) {
    auto& row = fields[candidate.candidate];
    if (!row.empty()) return;
    for (std::size_t i = 0; i < candidate.values.size(); ++i) {
      const auto& error = candidate.standard_errors[i];
      row.push_back(shortest(candidate.values[i]));
      row.push_back(error ? shortest(*error) : "");
    }
    row.push_back(std::to_string(candidate.n));
  };
  for (const auto& candidate : run.ranking) add(candidate);
  if (run.baseline) add(*run.baseline);
  return fields;
}

}  // namespace

std::string evaluations_csv(const RunSummary& run) {
  struct Answered {
    std::string numbers, batch;  // of the first
  };
  std::map<std::string, Answered> asks;  // by evaluation
  for (const auto& ask : run.asks) {
    for (const auto& id : ask.evaluations) {
      auto& [numbers, batch] = asks[id];
      numbers += (numbers.empty() ? "" : " ") + std::to_string(ask.number + 1);
      if (batch.empty()) batch = std::to_string(ask.batch);
    }
  }
  const auto genes = gene_names(run);
  Row header{"mechanism", "candidate"};
  header.insert(header.end(), genes.begin(), genes.end());
  header.insert(header.end(), {"replicate", "asks", "batch", "status", "reason"});
  header.insert(header.end(), quality_columns().begin(), quality_columns().end());
  header.insert(header.end(), {"parameters", "flops", "steps", "train_seconds", "peak_bytes"});
  const auto objectives = further_objectives(run, header);
  for (const auto i : objectives) header.push_back(run.objectives[i].name);
  const auto means = mean_columns(run);
  header.insert(header.end(), means.begin(), means.end());
  header.emplace_back("id");
  const auto together = mean_fields(run);

  auto text = csv_line(header);
  for (const auto& evaluation : run.evaluations) {
    Row row{run.label(evaluation.candidate), evaluation.candidate};
    const auto choices = choices_of(run, evaluation.candidate, genes);
    const auto cells = choices.value_or(Row(genes.size()));
    row.insert(row.end(), cells.begin(), cells.end());
    const auto& [numbers, batch] = asks[evaluation.id];
    row.insert(row.end(), {std::to_string(evaluation.replicate), numbers, batch,
                           std::string(to_string(evaluation.status)), evaluation.reason});
    const auto quality = quality_fields(evaluation);
    row.insert(row.end(), quality.begin(), quality.end());
    for (const auto* name : {"parameters", "flops"}) {
      const auto found = evaluation.values.find(name);
      row.push_back(found == evaluation.values.end() ? "" : shortest(found->second));
    }
    row.push_back(evaluation.curve.empty() ? "0" : std::to_string(evaluation.curve.back().step));
    row.push_back(shortest(measured_number(evaluation, "train_seconds")));
    row.push_back(shortest(measured_number(evaluation, "peak_bytes")));
    for (const auto i : objectives) {
      const auto value = run.value(evaluation, i);
      row.push_back(value ? shortest(*value) : "");
    }
    const auto mean = together.find(evaluation.candidate);
    const auto of_mean = mean == together.end() ? Row(means.size()) : mean->second;
    row.insert(row.end(), of_mean.begin(), of_mean.end());
    row.push_back(evaluation.id);
    text += csv_line(row);
  }
  return text;
}

namespace {

void erase_keys(nlohmann::json& config, const char* section,
                std::initializer_list<const char*> keys) {
  const auto found = config.find(section);
  if (found == config.end() || !found->is_object()) return;
  for (const auto* key : keys) found->erase(key);
}

/// What differing_keys() allows to change between two sessions of one run is no part of the
/// comparable form.
nlohmann::json comparable_config(nlohmann::json config) {
  config.erase("name");
  config.erase("budget");
  config.erase("cluster");
  config.erase("retest");
  config.erase("mechanisms");
  erase_keys(config, "baseline", {"tune"});
  erase_keys(config, "evaluation",
             {"workers", "array", "device", "keep_models", "failure_window", "retry_failed",
              "retry_out_of_memory", "retry_timed_out", "retry_crashed", "retry_lost"});
  erase_keys(config, "training", {"checkpoint_minutes"});
  erase_keys(config, "fidelity", {"checkpoint_space"});
  // Where nothing is out at once, nothing depends on these.
  const auto algorithm = config.find("algorithm");
  if (algorithm != config.end() && algorithm->value("in_flight", 1) == 1) {
    erase_keys(config, "algorithm", {"in_flight", "order"});
  }
  return without_places(std::move(config));
}

}  // namespace

nlohmann::json without_places(nlohmann::json config) {
  config.erase("plugins");
  const auto problem = config.find("problem");
  if (problem != config.end() && problem->is_object() && problem->value("type", "") == "tabular") {
    problem->erase("table");
  }
  const auto data = config.find("data");
  if (data == config.end() || !data->is_object()) return config;
  if (data->value("corpus", "") == "text_file") {
    erase_keys(config, "data", {"train", "valid", "test"});
  }
  for (auto setting = data->begin(); setting != data->end();) {
    const auto& key = setting.key();
    const bool path = key == "path" || key.ends_with("_file") || key.ends_with("folder");
    setting = path ? data->erase(setting) : std::next(setting);
  }
  return config;
}

std::string canonical_export(const RunSummary& run) {
  std::ostringstream text;
  text << nlohmann::json{{"config", comparable_config(run.config)}}.dump() << '\n';
  for (const auto& ask : run.asks) {
    text << nlohmann::json{{"ask", ask.number},        {"batch", ask.batch},
                           {"genotype", ask.genotype}, {"evaluations", ask.evaluations},
                           {"reused", ask.reused},     {"fitness", ask.fitness}}
                .dump()
         << '\n';
  }
  for (const auto& ask : run.rung_asks) {
    text << nlohmann::json{{"ask", ask.number},        {"batch", ask.batch},
                           {"genotype", ask.genotype}, {"evaluation", ask.evaluations.front()},
                           {"until", ask.until},       {"fitness", ask.fitness}}
                .dump()
         << '\n';
  }
  for (const auto* some : {&run.evaluations, &run.paused}) {
    for (const auto& evaluation : *some) text << canonical_json(evaluation).dump() << '\n';
  }
  return text.str();
}

void write_file(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path temporary = file.string() + ".tmp";
  std::error_code failed;
  {
    errno = 0;
    std::ofstream stream(temporary, std::ios::binary);
    stream << text;
    if (!stream.flush()) failed = {errno == 0 ? EIO : errno, std::generic_category()};
  }
  if (!failed) std::filesystem::rename(temporary, file, failed);
  if (!failed) return;
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);
  throw std::filesystem::filesystem_error("cannot be written", file, failed);
}

void write_results(const std::filesystem::path& folder, const RunSummary& run) {
  write_file(folder / "results.json", digest_text(results_json(run)));
  write_file(folder / "evaluations.csv", evaluations_csv(run));
}

void write_results(const std::filesystem::path& folder) {
  const auto file = folder / "store.sqlite";
  if (!std::filesystem::exists(file)) return;
  auto store = std::make_unique<Store>(file);  // as its writer: a reader would leave journals
  const RunSummary run(*store);
  store.reset();  // the result is to be newer than the store
  write_results(folder, run);
}

}  // namespace nas
