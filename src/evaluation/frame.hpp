#pragma once

#include "core/parameters.hpp"
#include "genotype/architecture.hpp"

namespace nas {

/// The frame of a study's models: the sizes that the section `model` says, and the paper's genes.
/// The vocabulary, which is the corpus's, is 1.
/// @param model             of model_settings() (evaluation/settings.hpp).
/// @param match_parameters  of the section `space`.   @param section  Architecture::section.
Architecture frame_of(const Parameters& model, Semantics semantics, bool match_parameters,
                      const ModelGenes& section);

}  // namespace nas
