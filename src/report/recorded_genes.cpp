#include "report/recorded_genes.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/error.hpp"
#include "core/format.hpp"
#include "evaluation/frame.hpp"
#include "evaluation/settings.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/shorthand.hpp"
#include "genotype/slots.hpp"
#include "search/gene_place.hpp"

namespace nas {

namespace {

/// As std::getline takes them: nothing behind a last '|' is no field. They live as long as the genotype.
std::vector<std::string_view> fields_of(std::string_view genotype) {
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0; begin < genotype.size();) {
    const auto end = std::min(genotype.find('|', begin), genotype.size());
    fields.push_back(genotype.substr(begin, end - begin));
    begin = end + 1;
  }
  return fields;
}

/// A gene as the section `space` of a recorded configuration gives it.
Gene configured_gene(const std::string& name, const nlohmann::json& space) {
  Gene gene{.name = name};
  const auto found = space.find(std::string(place_of(name).slot));
  if (found == space.end()) return gene;
  if (found->is_object()) {
    gene.min = found->value("min", 0.0);
    gene.max = found->value("max", gene.min);
  } else if (found->is_number()) {
    gene.min = gene.max = found->get<double>();
  } else if (found->is_array()) {
    for (const auto& option : *found) {
      gene.options.push_back(option_text(slot(place_of(name).slot), option));
    }
  }
  return gene;
}

/// Adds what was asked for and is not in the gene yet.
/// @param told  whether the configuration told the gene.
void extend(Gene& gene, const std::vector<std::string_view>& values, bool told) {
  const bool real =
      !gene.categorical() &&
      std::all_of(values.begin(), values.end(), [](const auto& value) { return number_in(value); });
  if (real) {
    if (!told) gene.min = gene.max = *number_in(values.front());
    for (const auto& value : values) {
      const auto number = *number_in(value);
      gene.min = std::min(gene.min, number);
      gene.max = std::max(gene.max, number);
    }
    return;
  }
  for (const auto& value : values) {
    if (std::find(gene.options.begin(), gene.options.end(), value) == gene.options.end()) {
      gene.options.emplace_back(value);
    }
  }
}

/// Whether a space leaves a gene one choice, which is the same in all candidates.
bool is_fixed(const std::string& name, const nlohmann::json& space) {
  return space.contains(std::string(place_of(name).slot)) && !configured_gene(name, space).varies();
}

/// Whether mechanisms of a space were searched: listed ones need not lie in it.
bool searched_space(const RunSummary& run) { return run.config.contains("space") && !run.listed(); }

}  // namespace

std::optional<Architecture> recorded_architecture(const RunSummary& run, const std::string& name) {
  try {
    Parameters model(model_settings());
    if (const auto found = run.config.find("model"); found != run.config.end()) {
      found->get_to(model);
    }
    const auto semantics = parse_semantics(run.config.value("semantics", "corrected"));
    const auto space = run.config.value("space", nlohmann::json::object());
    const bool matched = space.value("match_parameters", false);
    Parameters training(training_settings());
    run.config.value("training", nlohmann::json::object()).get_to(training);
    const bool rates = !run.listed() && space.contains("training.learning_rate");
    const auto section =
        space.value("merge_section", false) ? genes_of(training, rates) : ModelGenes{};
    return parse_unchecked(name, frame_of(model, semantics, matched, section));
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::vector<Gene> recorded_genes(const RunSummary& run) {
  std::vector<std::vector<std::string_view>> columns;
  for (const auto& ask : run.asks) {
    const auto fields = fields_of(ask.genotype);
    if (columns.empty()) columns.resize(fields.size());
    if (fields.size() != columns.size()) return {};
    for (std::size_t i = 0; i < fields.size(); ++i) columns[i].push_back(fields[i]);
  }
  const auto space = run.config.value("space", nlohmann::json::object());
  const auto names = gene_names(space);
  const bool models = searched_space(run) && columns.size() == names.size();
  std::vector<Gene> genes;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto name = models ? names[i] : "x" + std::to_string(i + 1);
    genes.push_back(configured_gene(name, space));
    extend(genes.back(), columns[i], models && space.contains(std::string(place_of(name).slot)));
  }
  return genes;
}

bool has_six_fields(const std::string& candidate) {
  return candidate.find("pair(") == std::string::npos &&
         std::count(candidate.begin(), candidate.end(), '|') + 1 == std::ssize(paper_slots());
}

bool has_long_names(const RunSummary& run) {
  return searched_space(run) &&
         !std::all_of(run.evaluations.begin(), run.evaluations.end(),
                      [](const auto& evaluation) { return has_six_fields(evaluation.candidate); });
}

std::vector<std::string> gene_names(const RunSummary& run) {
  if (!searched_space(run)) return {};
  return gene_names(has_long_names(run) ? run.config.at("space") : nlohmann::json::object());
}

std::optional<std::vector<std::string>> choices_of(const RunSummary& run,
                                                   const std::string& candidate,
                                                   const std::vector<std::string>& genes) {
  // A name of six fields is its genes, whether or not this version has such components.
  if (has_six_fields(candidate) && genes == gene_names(nlohmann::json::object())) {
    const auto fields = fields_of(candidate);
    return std::vector<std::string>(fields.begin(), fields.end());
  }
  const auto architecture = recorded_architecture(run, candidate);
  if (!architecture) return std::nullopt;
  std::vector<std::string> choices;
  for (const auto& gene : genes) choices.push_back(choice_text(gene, *architecture));
  return choices;
}

nlohmann::json choices_json(const RunSummary& run, const std::string& candidate,
                            const std::vector<std::string>& genes) {
  const auto architecture = recorded_architecture(run, candidate);
  if (!architecture) return nullptr;
  const auto space = run.config.value("space", nlohmann::json::object());
  const auto acting = active(genes, *architecture);
  auto choices = nlohmann::json::array();
  for (const auto& gene : genes) {
    if (std::find(acting.begin(), acting.end(), gene) == acting.end()) {
      choices.push_back(nullptr);
      continue;
    }
    const auto& slot = nas::slot(place_of(gene).slot);
    auto choice = choice_text(gene, *architecture);
    if ((slot.is_integer() || slot.is_word()) && choice.find('/') == std::string::npos) {
      const auto configured = configured_gene(gene, space);
      const auto value = configured.categorical() ? offered(configured, *architecture)
                                                  : std::optional<GeneValue>();
      if (value) choice = std::get<std::string>(*value);  // 4 for a 0 that means all of 4 heads
    }
    choices.push_back(choice);
  }
  return choices;
}

bool names_layers(const std::vector<std::string>& genes) {
  return std::any_of(genes.begin(), genes.end(),
                     [](const auto& gene) { return place_of(gene).layer.has_value(); });
}

std::string_view frame_text(std::string_view name) {
  return name.substr(0, name.starts_with("model{") ? name.find('/') + 1 : 0);
}

std::string short_label(const RunSummary& run, const std::string& candidate) {
  const auto label = run.label(candidate);
  if (!run.baseline || run.baseline->candidate == candidate || !has_long_names(run)) return label;
  const auto genes = gene_names(run);
  if (names_layers(genes)) {
    const auto frame = frame_text(label);
    return frame == frame_text(run.baseline->label) ? label.substr(frame.size()) : label;
  }
  const auto own = choices_of(run, candidate, genes);
  const auto baseline = choices_of(run, run.baseline->candidate, genes);
  if (!own || !baseline) return label;
  const auto architecture = recorded_architecture(run, candidate);
  const auto acting = architecture ? active(genes, *architecture) : genes;
  std::vector<std::string> differences;
  for (std::size_t i = 0; i < genes.size(); ++i) {
    const auto& choice = (*own)[i];
    if (choice == (*baseline)[i] || is_fixed(genes[i], run.config.at("space"))) continue;
    if (std::find(acting.begin(), acting.end(), genes[i]) == acting.end()) continue;
    const auto& slot = nas::slot(place_of(genes[i]).slot);
    const bool speaks = genes[i] == slot.name && choice.find('/') == std::string::npos;
    differences.push_back(speaks ? shorthand_part(slot, choice) : genes[i] + "=" + choice);
  }
  return differences.empty() ? label : join(differences, "+");
}

}  // namespace nas
