#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "genotype/architecture.hpp"
#include "genotype/mechanism.hpp"

/// Shorthand says of a model only what differs from another one, the baseline:
///
///   shorthand := change [ "@" layer ( "," layer )* ] ( "+" change ... )*
///   change    := option | mixer | alias | gene "=" value | FILE.so
///
/// e.g. "sparsemax", "rope+sparsemax", "gdn", "kv_heads=1", "mine.so". A word alone is an option, a label of the paper, a
/// mixer, an alias or a gene that is 0 or 1, where one thing alone bears it; a file stands for the one option that its
/// plug-ins register. "gdn@1,3" changes those layers alone, of which the first is layer 0. A layered name without the head
/// model{...} is read beside the baseline, too. Others are full, as every stored name is, which only parse_model() reads.

namespace nas {

/// Whether a text is written as shorthand. Where models have one layer, what is a layer's name stays
/// one: "gdn", "mqa+swiglu".
bool is_shorthand(std::string_view text, const Architecture& frame);

/// The model that is meant by a text that somebody typed: a name (parse_model), or shorthand.
/// @param base  what both are read beside: the baseline, of as many layers as models have. Of shorthand
///              all layers that have a gene take the change.
/// @return not canonical. @throws InputError naming the place, what was given, and what is allowed;
/// of a word that several things bear, these with their genes.
Architecture named_model(std::string_view text, const Architecture& frame,
                         const Architecture& base);
/// The same, the base the vanilla model of the frame.
Architecture named_model(std::string_view text, const Architecture& frame);

/// What says a gene's choice in shorthand: a word alone where that does, "sparsemax", else "kv_heads=1".
std::string shorthand_part(const Slot& slot, const std::string& value);

/// The shorthand that means a model: what named_model() reads as it. Nothing where it is the base or where its
/// layers differ in what the base's share. Cost: it is read a few times.
/// @param model, base  canonical, of as many layers.
std::optional<std::string> shorthand_of(const Architecture& model, const Architecture& base);

/// The genes in which a model differs from a base beyond what its name says, as names write them, {"dropout", "conv"}:
/// what it leaves out, and the base does not have so.
/// @param model, base  canonical, whether or not there is such a model.
std::vector<std::string> unsaid_differences(const Architecture& model, const Architecture& base);

/// Of a name that says how many layers there are; one of six fields does not.
/// @throws InputError unless the model that it names has so many.
void require_layers(std::string_view name, const Architecture& model, std::int64_t layers);

}  // namespace nas
