#include "report/recorded_genes.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
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

}  // namespace nas
