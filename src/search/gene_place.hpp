#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "genotype/architecture.hpp"
#include "genotype/search_space.hpp"

namespace nas {

/// Which slot (genotype/slots.hpp) a gene is of, and which layers have it.
struct GenePlace {
  std::string_view slot;               ///< "position" of "slot1.position"
  std::optional<std::size_t> layer{};  ///< 1 of it; nothing where all layers have it
};
/// @param gene  name of a gene; the result refers to it.
GenePlace place_of(std::string_view gene);

/// Number of slots that layers take in turn: 1 where all layers have the same genes.
std::size_t period_of(const SearchSpace& space);

/// Whether a space offers more than the paper's six genes can say: other genes, or no biases at
/// all.
bool is_wide(const SearchSpace& space);

/// Names of genes in the order of a search space, from slots in the order of slots(). All layers
/// have the same genes for a period of 1; else the genes of the whole model come first, then those
/// of each slot that layers take in turn: "slot0.similarity", ..., "slot1.similarity", ...
std::vector<std::string> gene_names(const std::vector<std::string>& slots, std::size_t period);

/// The same of a section `space` as a run recorded it, which lists its slots in any order. The
/// paper's slots are in every space.
std::vector<std::string> gene_names(const nlohmann::json& section);

/// A model's choice of a gene as names say it; where a gene is of all layers and these differ, the
/// choices of the slots that they take in turn: "rope/none".
std::string choice_text(std::string_view gene, const Architecture& architecture);

}  // namespace nas
