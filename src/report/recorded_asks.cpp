#include "report/recorded_asks.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <sstream>

#include "genotype/slots.hpp"

namespace nas {

namespace {

std::vector<std::string> fields_of(const std::string& genotype) {
  std::vector<std::string> fields;
  std::istringstream stream(genotype);
  for (std::string field; std::getline(stream, field, '|');) fields.push_back(field);
  return fields;
}

/// The number that all of the text is.
std::optional<double> number_in(const std::string& text) {
  double value = 0.0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

/// A gene as the section `space` of a recorded configuration gives it.
Gene configured_gene(const std::string& name, const nlohmann::json& space) {
  Gene gene{.name = name};
  const auto found = space.find(name);
  if (found == space.end()) return gene;
  if (found->is_object()) {
    gene.min = found->value("min", 0.0);
    gene.max = found->value("max", gene.min);
  } else if (found->is_number()) {
    gene.min = gene.max = found->get<double>();
  } else if (found->is_array()) {
    for (const auto& option : *found) {
      gene.options.push_back(option_text(slot(name), option));
    }
  }
  return gene;
}

/// Adds what was asked for and is not in the gene yet.
/// @param told  whether the configuration told the gene.
void extend(Gene& gene, const std::vector<std::string>& values, bool told) {
  const bool real =
      !gene.categorical() &&
      std::all_of(values.begin(), values.end(), [](const auto& value) { return number_in(value); });
  if (real) {
    if (!told) gene.min = gene.max = *number_in(values.front());
    for (const auto& value : values) {
      gene.min = std::min(gene.min, *number_in(value));
      gene.max = std::max(gene.max, *number_in(value));
    }
    return;
  }
  for (const auto& value : values) {
    if (std::find(gene.options.begin(), gene.options.end(), value) == gene.options.end()) {
      gene.options.push_back(value);
    }
  }
}

}  // namespace

std::vector<Gene> recorded_genes(const RunSummary& run) {
  std::vector<std::vector<std::string>> columns;
  for (const auto& ask : run.asks) {
    const auto fields = fields_of(ask.genotype);
    if (columns.empty()) columns.resize(fields.size());
    if (fields.size() != columns.size()) return {};
    for (std::size_t i = 0; i < fields.size(); ++i) columns[i].push_back(fields[i]);
  }
  const auto space = run.config.value("space", nlohmann::json::object());
  const bool mechanisms = run.config.contains("space") && columns.size() == slots().size();
  std::vector<Gene> genes;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto name = mechanisms ? slots()[i].name : "x" + std::to_string(i + 1);
    genes.push_back(configured_gene(name, space));
    extend(genes.back(), columns[i], space.contains(name));
  }
  return genes;
}

double gene_number(const Gene& gene, const std::string& value) {
  if (!gene.categorical()) return number_in(value).value();
  const auto found = std::find(gene.options.begin(), gene.options.end(), value);
  return static_cast<double>(found - gene.options.begin());
}

std::vector<RecordedAsk> recorded_asks(const RunSummary& run) {
  const bool with_genes = !recorded_genes(run).empty();
  std::vector<RecordedAsk> records;
  std::set<std::string> trained;
  double seconds = 0.0;
  for (const auto& ask : run.asks) {
    RecordedAsk record;
    record.ask = &ask;
    for (const auto& id : ask.evaluations) {
      const auto* evaluation = run.by_id.at(id);
      if (!is_screened_out(*evaluation) && trained.insert(id).second)
        seconds += measured_number(*evaluation, "train_seconds");
      if (record.evaluation == nullptr ||
          (is_usable(*evaluation) && !is_usable(*record.evaluation))) {
        record.evaluation = evaluation;
      }
    }
    if (with_genes) record.genes = fields_of(ask.genotype);
    for (std::size_t i = 0; i < ask.fitness.size(); ++i) {
      record.fitness.push_back(run.objectives.at(i).natural(ask.fitness[i]));
    }
    record.status = run.status(ask);
    record.reason = run.reason(ask);
    record.usable = is_usable(record.status);
    record.trained = static_cast<std::int64_t>(trained.size());
    record.seconds = seconds;
    records.push_back(std::move(record));
  }
  return records;
}

std::string run_title(const RunSummary& run) {
  const auto name = run.config.value("name", "run");
  const auto seed = run.config.find("seed");
  return seed == run.config.end() ? name : name + ", seed " + seed->dump();
}

std::string function_title(const RunSummary& run) {
  if (run.facts.contains("function")) return run.facts.at("function").get<std::string>();
  const auto problem = run.config.value("problem", nlohmann::json::object());
  const auto corpus = run.facts.value("corpus", "");
  const auto name = problem.value("type", "problem");
  return corpus.empty() ? name : name + " " + corpus;
}

}  // namespace nas
