#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/visibility.hpp"
#include "genotype/architecture.hpp"
#include "genotype/candidate.hpp"
#include "genotype/search_space.hpp"

/// Names of models, which are their identity. A model of which all layers are the same attention
/// with defaults besides the paper's six choices has the name of those six,
/// "dot|softmax|none|fixed|bias|0.1", and its number of layers is a setting. Any other is written
///
///   genotype := [ "model{" genes "}/" ] item ( "/" item )*      item := [ count "*" ] layer
///   layer    := mixer [ "{" genes "}" ] [ "+" ffn [ "{" genes "}" ] ]
///   genes    := [ gene "=" value ( "," gene "=" value )* ]
///   mixer    := attn | recurrent | conv | none | "pair(" half "|" half ")"
///   half     := mixer [ "{" genes "}" ], the first of attn, the other of recurrent
///
/// e.g. "model{norm=rms}/3*attn{pattern=window}+swiglu/attn{kv_heads=1}+swiglu". What is not written
/// is as in the paper's model. Besides mixers, `linear`, `performer`, `retnet`, `ssd`, `gla`,
/// `deltanet`, `gdn`, `gdn2`, `kda`, `swa` and `mqa` are read, each for a mixer with some genes.

namespace NAS_PUBLIC nas {

/// The name. Identity if the architecture is canonical.
std::string to_string(const Architecture& architecture);
/// The name for people: layers by their aliases; the name itself where it has six fields.
std::string label(const Architecture& architecture);

/// A layer as names write it: "attn{pattern=window}+swiglu". @param for_people  by its alias.
std::string layer_text(const Mechanism& layer, const Architecture& architecture, bool for_people);

/// Parses a name of either form; fields of six may be surrounded by blanks. Not canonical, but of layers that repeat
/// only one period is held. Model genes and layers are the text's, but for the number of layers of a six-field name;
/// everything else is the frame's, or fitted() to it. @throws InputError naming the place, what was given and what is allowed.
/// @param base  what a layered name without head is read beside: the model's genes are the base's, and what layer i
///              leaves out is what the base's layer i says of it; "=" is that layer. nullptr, as for stored names: the
///              paper's model.
Architecture parse_model(std::string_view name, const Architecture& frame,
                         const Architecture* base = nullptr);
/// The same of a recorded name, whether or not there is such a model (Candidate::refusal); not fitted().
Architecture parse_unchecked(std::string_view name, const Architecture& frame);
/// A stored name so that it is read in full beside any base, with a head: "model{}/2*conv".
std::string full_name(std::string name);

/// The canonical form (function identity): what has no effect is set to its default; fitted(). Idempotent.
/// @throws InputError naming the gene, its value and the rule if there is no such model.
Architecture canonical(Architecture architecture);

/// The frame with the vanilla transformer's choice of the paper's six genes; biases as the frame's
/// model genes say; fitted().
Architecture vanilla_architecture(const Architecture& frame);

/// The architecture that a genotype means, not canonical. What the genotype has no gene of is the frame's.
/// "slot1.position" is the gene of layers 1, 1 + p, 1 + 2 p, ... of a stack of p slots; "position" that of all layers.
Architecture architecture_of(const Genotype& genotype, const Architecture& frame);
/// An architecture gene by gene, components by their keys: of a model with a six-field name exactly
/// these six; else the model genes that are not default, then of each slot of the stack the genes
/// that are not default, and the paper's six where attention is the mixer.
Genotype genotype_of(const Architecture& architecture);
/// An architecture as a candidate. Where there is no such model, it says why and has the name of
/// what the rules of the canonical form leave.
/// @throws InputError if the sizes of the model are wrong.
Candidate candidate_of(const Architecture& architecture);

/// The candidate of a space whose training takes the most memory, as found gene by gene: each takes its most expensive
/// option beside the others' until none grows. Cost: a canonical form per option, a few times.
/// @param counts  whether a candidate, in its canonical form, is trained at all.
/// @return in its canonical form; nothing where no such candidate is found.
std::optional<Architecture> largest_candidate(
    const SearchSpace& space, const Architecture& frame,
    const std::function<double(const Architecture&)>& bytes_of,
    const std::function<bool(const Architecture&)>& counts);

/// Those of some genes whose value has an effect in an architecture, in their order: the rules of the canonical form do
/// not void them. "position" is of all layers, "slot1.position" of layers 1, 1 + period and so on.
std::vector<std::string> active(const std::vector<std::string>& genes, Architecture architecture);
/// The same of a genotype's.
std::vector<std::string> active(const Genotype& genotype, const Architecture& frame);

/// @throws InputError naming an option that no module computes, if there is one.
void require_built(const Architecture& architecture);

/// An architecture's choice as a gene offers it: the option, as the space spells it, or the number.
/// Of a gene without slot it is that of the first layer. Nothing where the gene does not offer it.
std::optional<GeneValue> offered(const Gene& gene, const Architecture& architecture);

}  // namespace nas
