#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/visibility.hpp"
#include "genotype/candidate.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/search_space.hpp"

namespace NAS_PUBLIC nas {

/// One choice that a model is made of, of a layer or of the whole model. slots() is the one list of them: the reader of
/// the section `space`, decision vectors, names, columns of files, `nas-run describe` and records follow from it. A
/// Gene is what a search space offers of a slot, under the slot's name.
struct Slot {
  enum class Kind { component, word, integer, real };
  /// Where a mechanism or the model genes have the choice.
  using Member = std::variant<std::string Mechanism::*, std::int64_t Mechanism::*,
                              double Mechanism::*, std::string ModelGenes::*>;

  std::string name;     ///< "similarity"; unique
  std::string summary;  ///< what is chosen, for people
  Kind kind = Kind::component;
  Member member;
  /// Of a word all options, of a component those that science offers, whether or not a module
  /// computes them: the default first. Of the paper's component genes the keys, not the labels.
  std::vector<std::string> words{};
  double lower = 0.0;  ///< a number is in [lower, upper)
  double upper = 0.0;
  /// Of an integer: the largest in small models, in which it still does something (check_causality in
  /// nn/transformer.hpp); 0: any will do there.
  std::int64_t small = 0;
  Gene searched{};        ///< what is searched unless a configuration says otherwise
  GeneValue vanilla{};    ///< the default: a label of the paper, a word or a number
  bool model = false;     ///< a gene of the whole model: its member is one of ModelGenes
  std::string written{};  ///< what layered names call it: "dropout" for attention_dropout
  /// Of a size, or what is no size but goes with some options: the slot and its options beside which
  /// alone it has an effect.
  std::string owner{};
  std::vector<std::string> owner_options{};
  /// Of an integer, where not all of [lower, upper) will do; and that in words.
  bool (*allows)(std::int64_t) = nullptr;
  std::string allowed{};
  std::vector<std::string> unbuilt{};  ///< words that no module computes
  bool paper = false;                  ///< one of the paper's six

  [[nodiscard]] bool is_component() const { return kind == Kind::component; }
  [[nodiscard]] bool is_word() const { return kind == Kind::word; }
  [[nodiscard]] bool is_integer() const { return kind == Kind::integer; }
  [[nodiscard]] bool is_number() const { return kind == Kind::real; }
  /// Bias, which configurations may say as true or false.
  [[nodiscard]] bool is_flag() const { return paper && is_word(); }
};

/// All slots: the paper's six in the order of their name, then the other genes of models and of layers.
const std::vector<Slot>& slots();
/// The first six.
const std::vector<Slot>& paper_slots();
/// @throws std::logic_error if there is no such slot.
const Slot& slot(std::string_view name);
/// Names of the paper's slots that components fill, in their order.
const std::vector<std::string>& component_genes();
/// The genes of layers in the order in which names write them.
const std::vector<const Slot*>& layer_slots();
/// The genes of models in the order in which names write them.
const std::vector<const Slot*>& model_slots();

/// Mixers whose layers have a gene (MixerKind), each with the options that it has: none named means
/// all. Nothing of a gene of the model.
std::vector<std::pair<std::string, std::vector<std::string>>> mixers_of(const Slot& slot);

/// What a configuration may list of a slot: of the paper's component genes the paper's labels, then
/// the component keys that are none; of others the default, then what a module computes; the words
/// but those that no module computes; nothing of a number.
std::vector<std::string> options(const Slot& slot);

/// Whether a choice needs no module that is not there: its component is registered, or it is none or the default.
bool is_built(const Slot& slot, const std::string& option);

/// Whether a configuration may list it: a size has an effect in some model that can be built, since a
/// mixer that has it, and an option beside which it has one, are. What is no size always may.
bool has_effect(const Slot& slot);

/// An option as the section `space` of a configuration has it: a text; of bias true and false, but
/// for "none"; of an integer an integer.
nlohmann::json option_json(const Slot& slot, const std::string& option);
/// The inverse. What is of no such kind is returned as it is written.
std::string option_text(const Slot& slot, const nlohmann::json& option);

/// A mechanism's choice as its name says it: "topk_quarter", "bias", "0.1", which is the shortest
/// decimal that reads back equal.
std::string text(const Slot& slot, const Mechanism& mechanism);
/// The choice as a gene's value: of a real number the number, else its text.
GeneValue value_of(const Slot& slot, const Mechanism& mechanism);

/// Takes a label, a component key, a word or a number for a choice. @throws InputError naming the slot, what was given
/// and what is allowed. A key that is known, but that no module computes, is taken (require_built refuses it).
void choose(const Slot& slot, std::string_view text, Semantics semantics, Mechanism& mechanism);

/// The same of a gene of the whole model.
std::string text(const Slot& slot, const ModelGenes& genes);
void choose(const Slot& slot, std::string_view text, ModelGenes& genes);
void assign(const Slot& slot, const GeneValue& value, ModelGenes& genes);

/// The same of what is known to be right: an option of a space, or a number.
void assign(const Slot& slot, const GeneValue& value, Semantics semantics, Mechanism& mechanism);

/// Whether a mechanism's choice has an effect: no other choice of the layer voids the slot.
bool is_active(const Slot& slot, const Mechanism& mechanism);

/// The condition of a slot: the component keys that say that it has no effect beside them, by the gene of the
/// component; of a size those that it is no size of. Genes that never void it are left out.
std::map<std::string, std::vector<std::string>> voided_by(const Slot& slot);

/// The paper's space: what is searched where a configuration says nothing.
SearchSpace paper_space();

/// The mechanism that a genotype of layer genes means, not canonical. What the genotype has no gene
/// of is as a Mechanism begins.
Mechanism mechanism_of(const Genotype& genotype, Semantics semantics);

/// A mechanism's choice of the paper's six genes, components by their keys.
Genotype genotype_of(const Mechanism& mechanism);
/// A mechanism in its canonical form as a candidate.
Candidate candidate_of(const Mechanism& mechanism, Semantics semantics);

/// A mechanism's choice as a gene offers it: the option, as the space spells it, or the number.
/// Nothing where the gene does not offer it.
std::optional<GeneValue> offered(const Gene& gene, const Mechanism& mechanism, Semantics semantics);

}  // namespace nas
