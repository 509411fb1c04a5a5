#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "genotype/candidate.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/search_space.hpp"

namespace nas {

/// One choice that an attention mechanism is made of. slots() is the one list of them: the reader
/// of the section `space`, decision vectors, names, columns of files, `nas-run describe` and
/// records follow from it. A Gene is what a search space offers of a slot, under the slot's name.
struct Slot {
  /// Where a mechanism has the choice: the key of a component, yes or no, or a number.
  using Member = std::variant<std::string Mechanism::*, bool Mechanism::*, double Mechanism::*>;

  std::string name;     ///< "similarity"
  std::string summary;  ///< what is chosen, for people
  Member member;
  std::array<std::string, 2> words{};  ///< of yes and no, as names say them: "bias", "no_bias"
  double upper = 0.0;                  ///< a number is in [0, upper)
  /// What is searched unless a configuration says otherwise; of components and of yes and no, all
  /// options: the paper's labels in the paper's order, or the words.
  Gene searched{};
  GeneValue vanilla{};  ///< what the vanilla transformer has: a label of the paper, word or number

  [[nodiscard]] bool is_component() const { return member.index() == 0; }
  [[nodiscard]] bool is_flag() const { return member.index() == 1; }
  [[nodiscard]] bool is_number() const { return member.index() == 2; }
};

/// All slots, in the order of a mechanism's name.
const std::vector<Slot>& slots();
/// @throws std::logic_error if there is no such slot.
const Slot& slot(std::string_view name);
/// Names of the slots that components fill, in their order.
const std::vector<std::string>& component_genes();

/// What a configuration may list of a slot: the paper's labels, then the component keys that are
/// none; the words of yes and no; nothing of a number.
std::vector<std::string> options(const Slot& slot);

/// An option as the section `space` of a configuration has it: a text; of yes and no true and
/// false.
nlohmann::json option_json(const Slot& slot, const std::string& option);
/// The inverse. What is of neither kind is returned as it is written.
std::string option_text(const Slot& slot, const nlohmann::json& option);

/// A mechanism's choice as its name says it: "topk_quarter", "bias", "0.1", which is the shortest
/// decimal that reads back equal.
std::string text(const Slot& slot, const Mechanism& mechanism);
/// Takes a label, a component key, a word or a number for a choice. @throws InputError naming the
/// slot, what was given and what is allowed.
void choose(const Slot& slot, std::string_view text, Semantics semantics, Mechanism& mechanism);

/// The same of what is known to be right: an option of a space, or a number.
void assign(const Slot& slot, const GeneValue& value, Semantics semantics, Mechanism& mechanism);

/// Whether a mechanism's choice has an effect: no component of it voids the slot.
bool is_active(const Slot& slot, const Mechanism& mechanism);

/// The condition of a slot: the component keys beside which it has no effect, by the gene of the
/// component. Genes that never void it are left out.
std::map<std::string, std::vector<std::string>> voided_by(const Slot& slot);

/// The paper's space: what is searched where a configuration says nothing.
SearchSpace paper_space();

/// The mechanism that a genotype means, not canonical. What the genotype has no gene of is as a
/// Mechanism begins.
Mechanism mechanism_of(const Genotype& genotype, Semantics semantics);

/// A mechanism gene by gene, components by their keys.
Genotype genotype_of(const Mechanism& mechanism);
/// A mechanism in its canonical form as a candidate.
Candidate candidate_of(const Mechanism& mechanism, Semantics semantics);

/// A mechanism's choice as a gene offers it: the option, as the space spells it, or the number.
/// Nothing where the gene does not offer it.
std::optional<GeneValue> offered(const Gene& gene, const Mechanism& mechanism, Semantics semantics);

}  // namespace nas
