#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "genotype/architecture.hpp"
#include "genotype/slots.hpp"

namespace nas {

/// The options of a gene that layers of a mixer have, none named means all; nullptr: not the gene.
const std::vector<std::string>* options_of(std::string_view mixer, const Slot& slot);
/// Whether layers of a mixer have a gene.
bool has_gene(std::string_view mixer, const Slot& slot);
/// Whether layers of a mixer have an option of a gene. A registered key that is not among the slot's
/// words belongs to attention.
bool has_option(std::string_view mixer, const Slot& slot, std::string_view option);

/// Gives a layer another's choice of a slot of layers.
void copy(const Slot& slot, const Mechanism& from, Mechanism& to);

/// What a layer of a mixer has where nothing is said, but for the bias, which is the model's.
Mechanism default_layer(const Architecture& architecture, std::string_view mixer);

/// Brings a layer to its canonical form: genes that have no effect get their default, and so do
/// options that the mixer does not have.
/// @param voided  called for each gene that has no effect, whatever its value.
void apply_layer_rules(const Architecture& architecture, Mechanism& layer,
                       const std::function<void(const Slot&)>& voided);

/// For rules of mixers. @throws InputError "GENE = VALUE, must RULE" unless it holds.
void require(bool holds, const std::string& gene, const std::string& value,
             const std::string& rule);
/// @throws InputError unless position rope rotates an even number of so many entries of a head.
void require_rotatable(const Mechanism& layer, std::int64_t entries, double share);
/// @return the heads of a layer. @throws InputError unless they divide the width.
std::int64_t require_heads(const Architecture& architecture, const Mechanism& layer);

/// @throws InputError naming gene, value and rule if there is no such layer, which is canonical.
void require_valid_layer(const Architecture& architecture, const Mechanism& layer);

}  // namespace nas
