#pragma once

#include <nlohmann/json.hpp>

#include "genotype/search_space.hpp"
#include "genotype/semantics.hpp"

namespace nas {

/// What a record needs to say of the things in it, so that a reader needs no list of its own:
///
///   genes            the paper's six, in the order of a mechanism's name, and those that the
///                    space offers besides, which say "paper": false, and of "model" whether they
///                    are of the whole model: "name", "summary", "kind" (component, word, integer
///                    or number), "default", which is what the vanilla transformer has under these
///                    semantics, and "voided_by", the options by gene beside which it has no
///                    effect. A categorical one has "options" ("key", the paper's "label", and the
///                    genes that it "voids") and "vanilla", the keys that the vanilla transformer
///                    has under either semantics. A number has "bounds" ("min", "max", null if
///                    there is none, and whether it is excluded, "max_exclusive"), within which a
///                    configuration searches, and "scale": linear
///   objectives       all that are registered, by key: "source" (analytic, measured or trained),
///                    "unit" and "maximise"
///   statuses         "name" and whether an evaluation with it is "usable"
///   reference_point  of hypervolumes, in scaled objectives
nlohmann::json record_schema(Semantics semantics, const SearchSpace& space);

}  // namespace nas
