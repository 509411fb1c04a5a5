#include "report/files.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <system_error>

#include <ext/stdio_filebuf.h>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "evaluation/settings.hpp"
#include "report/digest.hpp"
#include "report/json_number.hpp"
#include "report/recorded_genes.hpp"
#include "report/text.hpp"
#include "search/algorithm.hpp"
#include "search/conversation.hpp"

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

Row mean_columns(const RunSummary& run) {
  Row columns;
  for (const auto& objective : run.objectives) {
    columns.push_back(objective.name + "_mean");
    columns.push_back(objective.name + "_standard_error");
  }
  columns.emplace_back("n");
  return columns;
}

/// The joint results of a candidate's replicates.
Row mean_fields(const RankedCandidate& candidate) {
  Row row;
  for (std::size_t i = 0; i < candidate.values.size(); ++i) {
    const auto& error = candidate.standard_errors[i];
    row.push_back(shortest(candidate.values[i]));
    row.push_back(error ? shortest(*error) : "");
  }
  row.push_back(std::to_string(candidate.n));
  return row;
}

/// Its candidate's own, if that has a gene for it. Empty where its identity does not say it.
std::string rate_of(const RunSummary& run, const Evaluation& evaluation) {
  const auto& identity = evaluation.identity;
  if (!identity.is_object() || !identity.contains("training")) return {};
  if (evaluation.candidate.find("learning_rate=") != std::string::npos) {
    const auto own = choices_of(run, evaluation.candidate, {"training.learning_rate"});
    if (own) return own->front();
  }
  const auto rate = number_at(identity.at("training"), "learning_rate");
  return rate ? shortest(*rate) : std::string();
}

}  // namespace

std::string evaluations_csv(const RunSummary& run) {
  std::ostringstream text;
  write_evaluations(run, text);
  return text.str();
}

void write_evaluations(const RunSummary& run, std::ostream& out) {
  auto asks = run.asks_by_id();
  const auto genes = gene_names(run);
  Row header{"mechanism", "candidate"};
  header.insert(header.end(), genes.begin(), genes.end());
  header.insert(header.end(), {"replicate", "asks", "batch", "status", "reason"});
  const auto& all = run.evaluations;
  const bool rates = std::any_of(all.begin(), all.end(), [&](const auto& one) {
    return rate_of(run, one) != rate_of(run, all.front());
  });
  if (rates) header.emplace_back("learning_rate");
  header.insert(header.end(), quality_columns().begin(), quality_columns().end());
  header.insert(header.end(), {"parameters", "flops", "steps", "train_seconds", "peak_bytes"});
  const auto objectives = further_objectives(run, header);
  for (const auto i : objectives) header.push_back(run.objectives[i].name);
  const auto means = mean_columns(run);
  header.insert(header.end(), means.begin(), means.end());
  header.emplace_back("id");

  out << csv_line(header);
  for (const auto& evaluation : all) {
    Row row{run.label(evaluation.candidate), evaluation.candidate};
    const auto choices = choices_of(run, evaluation.candidate, genes);
    const auto cells = choices.value_or(Row(genes.size()));
    row.insert(row.end(), cells.begin(), cells.end());
    Row numbers;
    for (const auto* ask : asks[evaluation.id]) numbers.push_back(std::to_string(ask->number + 1));
    const auto batch = numbers.empty() ? "" : std::to_string(asks[evaluation.id].front()->batch);
    row.insert(row.end(), {std::to_string(evaluation.replicate), join(numbers, " "), batch,
                           std::string(to_string(evaluation.status)), evaluation.reason});
    if (rates) row.push_back(rate_of(run, evaluation));
    const auto quality = quality_fields(evaluation);
    row.insert(row.end(), quality.begin(), quality.end());
    for (const auto* name : {"parameters", "flops"}) {
      const auto value = computed_value(evaluation, name);
      row.push_back(value ? shortest(*value) : "");
    }
    row.push_back(evaluation.curve.empty() ? "0" : std::to_string(evaluation.curve.back().step));
    row.push_back(shortest(measured_number(evaluation, "train_seconds")));
    row.push_back(shortest(measured_number(evaluation, "peak_bytes")));
    for (const auto i : objectives) {
      const auto value = run.value(evaluation, i);
      row.push_back(value ? shortest(*value) : "");
    }
    const auto* mean = run.find(evaluation.candidate);
    const auto of_mean = mean == nullptr ? Row(means.size()) : mean_fields(*mean);
    row.insert(row.end(), of_mean.begin(), of_mean.end());
    row.push_back(evaluation.id);
    out << csv_line(row);
  }
}

namespace {

void erase_keys(nlohmann::json& config, const std::string& section,
                const std::vector<std::string>& keys) {
  const auto found = config.find(section);
  if (found == config.end() || !found->is_object()) return;
  for (const auto& key : keys) found->erase(key);
}

bool is_without_effect(const Setting& setting) {
  return setting.effect != Effect::result && setting.effect != Effect::search;
}

/// Settings of an algorithm. Of one that is not here, a plug-in's, only a conversation's are known.
std::vector<Setting> settings_of_algorithm(const std::string& key) {
  return algorithms().contains(key) ? algorithms().at(key).description.settings
                                    : with_conversation({}, 1);
}

/// The section of an algorithm without settings that lack what they need.
void erase_idle(nlohmann::json& section) {
  const auto given = section;
  for (const auto& setting : settings_of_algorithm(section.value("name", ""))) {
    const auto& needs = setting.needs;
    if (!needs.setting.empty() && given.value(needs.setting, needs.above) <= needs.above)
      section.erase(setting.name);
  }
}

/// A configuration without what no result depends on. Listed mechanisms are told apart by their
/// evaluations.
nlohmann::json comparable_config(nlohmann::json config) {
  config.erase("mechanisms");
  for (const auto& path : settings_without_effect()) {
    const auto dot = path.find('.');
    if (dot == std::string::npos) {
      config.erase(path);
    } else {
      erase_keys(config, path.substr(0, dot), {path.substr(dot + 1)});
    }
  }
  // Steps of whole batches are written as before there were others.
  if (config.value("/training/micro_batch"_json_pointer, 0) == 0)
    erase_keys(config, "training", {"micro_batch"});
  if (config.value("/training/recompute"_json_pointer, "none") == "none")
    erase_keys(config, "training", {"recompute"});
  const auto algorithm = config.find("algorithm");
  if (algorithm != config.end() && algorithm->is_object()) erase_idle(*algorithm);
  return without_places(std::move(config));
}

}  // namespace

const std::set<std::string>& settings_without_effect() {
  static const std::set<std::string> kPaths = [] {
    std::set<std::string> paths;
    for (const auto& [section, settings] : setting_sections()) {
      const auto named = std::count_if(settings.begin(), settings.end(), is_without_effect);
      if (named == std::ssize(settings)) paths.insert(section);
      for (const auto& setting : settings) {
        if (!is_without_effect(setting) || named == std::ssize(settings)) continue;
        paths.insert(section.empty() ? setting.name : section + "." + setting.name);
      }
    }
    return paths;
  }();
  return kPaths;
}

nlohmann::json without_places(nlohmann::json config) {
  config.erase("plugins");
  erase_keys(config, "fidelity", {"audit"});  // of version 0.1.0, without effect
  const auto problem = config.find("problem");
  if (problem != config.end() && problem->is_object() &&
      problem->value("type", "").starts_with("tabular")) {
    problem->erase("table");
  }
  const auto data = config.find("data");
  if (data == config.end() || !data->is_object()) return config;
  if (data->value("corpus", "") == "text_file")
    erase_keys(config, "data", {"train", "valid", "test"});
  for (auto setting = data->begin(); setting != data->end();) {
    const auto& key = setting.key();
    const bool path = key == "path" || key.ends_with("_file") || key.ends_with("folder");
    setting = path ? data->erase(setting) : std::next(setting);
  }
  return config;
}

std::string canonical_export(const RunSummary& run) {
  std::ostringstream text;
  write_canonical(run, text);
  return text.str();
}

void write_canonical(const RunSummary& run, std::ostream& out) {
  out << nlohmann::json{{"config", comparable_config(run.config)}}.dump() << '\n';
  const auto write_ask = [&out](const Ask& ask, nlohmann::json own) {
    own.update({{"ask", ask.number},
                {"batch", ask.batch},
                {"genotype", ask.genotype},
                {"fitness", ask.fitness}});
    out << own.dump() << '\n';
  };
  for (const auto& ask : run.asks) {
    write_ask(ask, {{"evaluations", ask.evaluations}, {"reused", ask.reused}});
  }
  for (const auto& ask : run.rung_asks) {
    write_ask(ask, {{"evaluation", ask.evaluations.front()}, {"until", ask.until}});
  }
  for (const auto* some : {&run.evaluations, &run.paused}) {
    for (const auto& evaluation : *some) out << canonical_json(evaluation).dump() << '\n';
  }
}

void require_replaceable(const std::filesystem::path& file, const std::string& whose) {
  const auto refuse = [&](const std::string& reason) {
    throw InputError(whose + file.string() + ": is " + reason);
  };
  if (const auto kind = other_kind(file); !kind.empty()) refuse(kind + ", must be a regular file");
  std::string beginning(kDatabaseBeginning.size(), '\0');
  std::ifstream(file, std::ios::binary).read(beginning.data(), std::ssize(beginning));
  if (beginning == kDatabaseBeginning) {
    refuse("a table or the record of a run, must be another file");
  }
}

void write_file(const std::filesystem::path& file,
                const std::function<void(std::ostream&)>& write) {
  // A folder is an error of renaming: what was written may be left in its place.
  if (std::error_code unknown; !std::filesystem::is_directory(file, unknown)) {
    require_replaceable(file);
  }
  const auto temporary = unfinished_name(file);
  std::error_code failed;
  const int made = open_anew(temporary);
  if (made < 0) {
    failed = {errno, std::generic_category()};
  } else {
    __gnu_cxx::stdio_filebuf<char> buffer(made, std::ios::out | std::ios::binary);
    std::ostream stream(&buffer);
    errno = 0;
    write(stream);
    // Synced before it has its name: after a power cut that may else be of an empty file.
    if (!stream.flush() || !sync_descriptor(made) || buffer.close() == nullptr) {
      failed = {errno == 0 ? EIO : errno, std::generic_category()};
    }
    if (!failed) std::filesystem::rename(temporary, file, failed);
    std::error_code ignored;
    if (failed) std::filesystem::remove(temporary, ignored);
  }
  if (failed) throw std::filesystem::filesystem_error("cannot be written", file, failed);
}

void write_results(const std::filesystem::path& folder, const RunSummary& run) {
  const auto write = [&folder](const char* name,
                               const std::function<void(std::ostream&)>& content) {
    remove_unfinished(folder / name);
    write_file(folder / name, content);
  };
  write("results.json", [&run](std::ostream& out) { write_digest(run, out); });
  write("evaluations.csv", [&run](std::ostream& out) { write_evaluations(run, out); });
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
