#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "genotype/architecture.hpp"
#include "genotype/search_space.hpp"
#include "report/summary.hpp"

namespace nas {

/// The model that a name says among a run's, not canonical. Nothing where this version does not know
/// it.
std::optional<Architecture> recorded_architecture(const RunSummary& run, const std::string& name);

/// The genes of a run's search space, as far as the run recorded them: those of models with the
/// options and bounds of its configuration, else "x1", "x2", ... A bound or an option that the
/// configuration does not give is taken from the values that were asked for.
/// @return none where the genotypes of a run have no common number of genes.
std::vector<Gene> recorded_genes(const RunSummary& run);

/// Whether a candidate's name has the paper's six fields.
bool has_six_fields(const std::string& candidate);

/// Names of the genes of a run's candidates, in order: the paper's six where all evaluated
/// candidates have such names, else those of the run's space. None where candidates are no models.
std::vector<std::string> gene_names(const RunSummary& run);

/// A candidate's choices of genes, in component keys, words and numbers. Nothing where this version
/// does not know the candidate.
std::optional<std::vector<std::string>> choices_of(const RunSummary& run,
                                                   const std::string& candidate,
                                                   const std::vector<std::string>& genes);

/// The same for people: component keys, numbers as the run's space offers them, and null for a
/// gene that has no effect in the candidate. Null where this version does not know the candidate.
nlohmann::json choices_json(const RunSummary& run, const std::string& candidate,
                            const std::vector<std::string>& genes);

/// Whether names of a run's candidates say more than the paper's six genes: they are long then.
bool has_long_names(const RunSummary& run);

/// Whether layers have genes of their own among these (gene_names()).
bool names_layers(const std::vector<std::string>& genes);

/// The frame of a name of a model, "model{norm=rms}/"; of one that says none, nothing.
std::string_view frame_text(std::string_view name);

/// A candidate's name for people, in tables that have little room: its label, or in runs of long
/// names, where layers are named, the label without a frame that is the baseline's, and else the
/// searched genes with an effect that differ from the baseline's, as shorthand says them, "rope+sink";
/// those that the space fixes tell no candidate from another. The label, too, where the baseline is unknown and where no gene
/// differs.
std::string short_label(const RunSummary& run, const std::string& candidate);

}  // namespace nas
