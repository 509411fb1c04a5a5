#pragma once

#include "config/document.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/search_space.hpp"

namespace nas {

/// Reads the section `space`: a gene of each slot (genotype/slots.hpp), in their order. What
/// components fill is a list of the paper's labels and component keys, kept as the user wrote them;
/// yes and no are a list of true and false; a number is one, or a map of min, max and decimals.
///
/// @param node         the section, or nullptr: the paper's space.
/// @param diagnostics  receives unknown options, and options that are the same component.
SearchSpace read_space(const DocumentNode* node, Semantics semantics, Diagnostics& diagnostics);

}  // namespace nas
