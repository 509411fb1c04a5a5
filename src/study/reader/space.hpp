#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/document.hpp"
#include "core/parameters.hpp"
#include "genotype/architecture.hpp"
#include "genotype/search_space.hpp"

namespace nas {

/// Where recorded configurations say that they come from (Origin::source).
inline constexpr const char* kRecordedConfiguration = "recorded configuration";

/// Reads the section `space`: a gene for each of the paper's slots (genotype/slots.hpp), in their
/// order, and for each other slot that the section lists; what it does not list is as in the
/// paper's model. What components fill is a list of the paper's labels and component keys, kept as
/// the user wrote them; so are words; an integer is a list of integers; biases are a list of true,
/// false and none; a number is one, or a map of min, max and decimals.
///
/// `stack: uniform` gives all layers the same genes. With `stack: cycle` and `period: N`, layer i
/// has the genes of slot i mod N: "slot0.similarity", ..., then "slot1.similarity", ..., each with
/// the options that the section lists; genes of the whole model come before them. `stack: free` is a
/// cycle of as many slots as there are layers, and recorded as that.
///
/// @param node         the section, or nullptr: the paper's space.
/// @param layers       of the model.
/// @param diagnostics  receives unknown options, options that are the same component, and what no
///                     module computes, unless a record lists it: those of before may.
SearchSpace read_space(const DocumentNode* node, Semantics semantics, std::int64_t layers,
                       Diagnostics& diagnostics);

/// Settings of the section `space` beside its genes, `stack` and `period`.
std::vector<Setting> space_settings();
/// One of these, in a section that read_space has read.
bool read_space_setting(std::string_view name, const DocumentNode* node, Diagnostics& diagnostics);

/// The section from which a space would be read again.
nlohmann::json space_json(const SearchSpace& space);

/// What a wide space is compared with unless a configuration says otherwise: the vanilla transformer in the space's frame. A
/// gene of one value has that; others are as in the paper's model.
/// @return the name of it.
/// @throws InputError if there is no such model.
std::string vanilla_of(const SearchSpace& space, const Architecture& frame);

/// A space in which a gene has one value only.
SearchSpace with_value(const SearchSpace& space, const std::string& gene, const GeneValue& value);

/// Why the genes of one value are part of no model: the rule that vanilla_of breaks, unless another value of a single gene, one
/// of its options or an end of its range, keeps it. Empty if there is a model. Cost: milliseconds where there is none.
std::string refusal_of(const SearchSpace& space, const Architecture& frame);

/// Slots of which a space offers several values that make no difference: beside all that it offers
/// of some other slot they have no effect, as a window beside no pattern that has one.
std::vector<std::string> idle_slots(const SearchSpace& space, Semantics semantics);

/// A model gene by gene as a space offers it.
/// @throws InputError naming the gene that does not offer the model's choice and what is allowed,
/// or the model that the space makes of it where that is another one.
Genotype genotype_in(const SearchSpace& space, const Architecture& architecture,
                     const Architecture& frame);

}  // namespace nas
