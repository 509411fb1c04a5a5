#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/visibility.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/search_space.hpp"
#include "genotype/semantics.hpp"

namespace NAS_PUBLIC nas {

/// Names of the paper's slots that components fill, in their order.
const std::vector<std::string>& component_genes();

/// What is searched of a slot unless a configuration says otherwise.
Gene searched(const Slot& slot);

/// What a configuration may list of a slot: of the paper's component genes the paper's labels, then
/// the component keys that are none; of others the default, then what a module computes; the words
/// but those that no module computes; nothing of a number.
std::vector<std::string> options(const Slot& slot);

/// Whether a choice needs no module that is not there: its component is registered, or it is none or the default.
bool is_built(const Slot& slot, const std::string& option);

/// An option as the section `space` of a configuration has it: a text; of bias true and false, but
/// for "none"; of an integer an integer.
nlohmann::json option_json(const Slot& slot, const std::string& option);
/// The inverse. What is of no such kind is returned as it is written.
std::string option_text(const Slot& slot, const nlohmann::json& option);

/// A choice of a layer, or of a model, as its name says it: "topk_quarter", "bias", "0.1", which is the
/// shortest decimal that reads back equal.
std::string text(const Slot& slot, const Mechanism& mechanism);
/// The choice as a gene's value: of a real number the number, else its text.
GeneValue value_of(const Slot& slot, const Mechanism& mechanism);

/// Takes a label, a component key, a word or a number for a choice. @throws InputError naming the slot, what was given
/// and what is allowed. A key that is known, but that no module computes, is taken (require_built refuses it).
void choose(const Slot& slot, std::string_view text, Semantics semantics, Mechanism& mechanism);
/// The same of what is known to be right: an option of a space, or a number.
void assign(const Slot& slot, const GeneValue& value, Semantics semantics, Mechanism& mechanism);
/// Gives a layer another's choice.
void copy(const Slot& slot, const Mechanism& from, Mechanism& to);
/// The vanilla transformer: dot, softmax, none, fixed, bias, 0.1; every other gene's default.
Mechanism vanilla_mechanism(Semantics semantics);

/// The condition of a slot: the component keys that say that it has no effect beside them, by the gene of the
/// component; of a size those that it is no size of. Genes that never void it are left out.
std::map<std::string, std::vector<std::string>> voided_by(const Slot& slot);

/// The paper's space: what is searched where a configuration says nothing.
SearchSpace paper_space();

/// The mechanism that a genotype of layer genes means, not canonical. What the genotype has no gene
/// of is as a Mechanism begins, but for dropout, which it then does not have.
Mechanism mechanism_of(const Genotype& genotype, Semantics semantics);

/// A mechanism's choice as a gene offers it: the option, as the space spells it, or the number.
/// Nothing where the gene does not offer it.
std::optional<GeneValue> offered(const Gene& gene, const Mechanism& mechanism, Semantics semantics);

}  // namespace nas
