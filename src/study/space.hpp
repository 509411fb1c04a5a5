#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/document.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/search_space.hpp"

namespace nas {

/// Reads the section `space`: the genes of an attention mechanism, in the order of its name.
///
/// The options of a component gene are the paper's labels or component keys, as the user wrote them
/// (default: the paper's labels in the paper's order); those of bias are "bias" and "no_bias";
/// attention_dropout is real, with min and max in [0, 1) (default [0, 0.3]).
///
/// @param node         the section, or nullptr: the paper's space.
/// @param diagnostics  receives unknown options, and options that are the same component.
SearchSpace read_space(const DocumentNode* node, Semantics semantics, Diagnostics& diagnostics);

/// What the space may list for a component gene: the paper's labels, then the keys that are none.
std::vector<std::string> component_options(std::string_view gene);

}  // namespace nas
