#pragma once

#include <string>
#include <string_view>

#include "core/visibility.hpp"
#include "genotype/candidate.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/semantics.hpp"

namespace NAS_PUBLIC nas {

/// The paper's six choices in component keys, e.g. "dot|topk_quarter|output_gate|shifted_abs|bias|0.1"; dropout is the
/// shortest decimal that reads back equal. It is the identity of mechanisms that have the default of every other gene;
/// others are written by genotype/architecture_name.hpp.
std::string to_string(const Mechanism& mechanism);
/// The same in the paper's labels, e.g. "dot|sparsemax|output_gate|learned|bias|0.1": for input.
std::string label(const Mechanism& mechanism, Semantics semantics);

/// Parses either form of name; fields may be surrounded by blanks.
/// @throws InputError naming the field, what was given and what is allowed (component registry).
Mechanism parse_mechanism(std::string_view text, Semantics semantics);

/// The canonical form of the paper's six choices (function identity): slots that a component voids get what the vanilla
/// transformer has, so that mechanisms that compute the same function are equal. Idempotent.
Mechanism canonical(Mechanism mechanism, Semantics semantics);

/// A mechanism's choice of the paper's six genes, components by their keys.
Genotype genotype_of(const Mechanism& mechanism);
/// A mechanism in its canonical form as a candidate.
Candidate candidate_of(const Mechanism& mechanism, Semantics semantics);

}  // namespace nas
