#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// Integers are exact below.
inline constexpr double kUnbounded = 0x1.0p53;
/// Of sizes that memory and time grow with: beyond what any model has, so that a typo is refused by name.
inline constexpr double kLargestSize = 65536.0;

/// What a slot holds: a word or the key of a component, an integer or a number.
using SlotValue = std::variant<std::string, std::int64_t, double>;

/// One choice that a model is made of, of a layer or of the whole model, declared as a setting is. Mixers and components
/// declare sizes of their own so (MixerKind::sizes, Component::sizes); genotype/slots.cpp has the others. Search spaces,
/// decision vectors, names, columns of files, `nas-run describe` and records follow from slots(). A Gene is what a search
/// space offers of a slot, under the slot's name.
struct Slot {
  std::string name;  ///< "similarity"; unique
  /// What a layer, or a model, begins with: the paper's model; its type is the slot's.
  SlotValue default_value;
  std::string help;  ///< what is chosen, for people
  double min = 0.0;  ///< of a number
  double max = kUnbounded;
  bool max_exclusive = false;
  /// Of a word all options but optimisers, of a component those that science offers, whether or not a
  /// module computes them. Of the paper's component genes the keys, not the labels.
  std::vector<std::string> choices{};
  /// Of a size, or what is no size but goes with some options: the slot and its options beside which
  /// alone it has an effect. Of the sizes of a component, that component.
  std::string owner{};
  std::vector<std::string> owner_options{};
  /// Of an integer: the largest in small models, in which it still does something (check_causality in
  /// nn/transformer.hpp); 0: any will do there, or the mixer chooses it (MixerKind::shrink).
  std::int64_t small = 0;
  /// Of an integer, where not all of [min, max] will do; and that in words.
  bool (*allows)(std::int64_t) = nullptr;
  std::string allowed{};
  std::string written{};               ///< what layered names call it; empty: its name
  std::vector<std::string> unbuilt{};  ///< words that no module computes
  bool component = false;              ///< a choice of components, by their keys
  bool of_component = false;           ///< a size of components, that all who have these have
  bool model = false;                  ///< a gene of the whole model
  bool paper = false;                  ///< one of the paper's six
  std::size_t index = 0;               ///< by which layers hold it: the number of slots before

  [[nodiscard]] bool is_component() const { return component; }
  [[nodiscard]] bool is_word() const { return default_value.index() == 0 && !component; }
  [[nodiscard]] bool is_integer() const { return default_value.index() == 1; }
  [[nodiscard]] bool is_number() const { return default_value.index() == 2; }
  [[nodiscard]] bool is_bounded() const { return max < kUnbounded; }
  /// Bias, which configurations may say as true or false.
  [[nodiscard]] bool is_flag() const { return paper && is_word(); }
};

/// Declares a slot. Several may declare one, if they say the same of it; it goes with the options of all of them.
/// @return what is wrong with it; empty: nothing.
std::string declare(Slot slot);

/// All slots: the paper's six in the order of their name, then the other genes of models and of layers, those of plug-ins
/// last, by their names. They stay where they are.
const std::list<Slot>& slots();
/// The first six.
const std::vector<const Slot*>& paper_slots();
/// The genes of layers, and those of models, in the order in which names write them.
const std::vector<const Slot*>& layer_slots();
const std::vector<const Slot*>& model_slots();
/// nullptr: there is none.
const Slot* find_slot(std::string_view name);
/// @throws std::logic_error if there is no such slot.
const Slot& slot(std::string_view name);

/// How one layer works: what mixes its positions, and the feed-forward layer behind that, as values of slots. Choices of
/// components are their keys, not labels. It begins as the paper's model has it, and holds what differs from that. A
/// name that is no slot, or is read as another type than declared, is a defect: std::logic_error. Cost: a look-up by name.
class Mechanism {
 public:
  [[nodiscard]] const std::string& word(std::string_view gene) const;
  [[nodiscard]] std::int64_t integer(std::string_view gene) const;
  [[nodiscard]] double real(std::string_view gene) const;
  [[nodiscard]] const SlotValue& at(const Slot& slot) const;
  /// @return *this. -0.0, which reads "-0", becomes 0.0.
  Mechanism& set(std::string_view gene, SlotValue value);
  Mechanism& set(const Slot& slot, SlotValue value);

  friend bool operator==(const Mechanism&, const Mechanism&) = default;

 private:
  std::vector<std::pair<const Slot*, SlotValue>> values_;  ///< by the slots' indices
};

/// What is chosen for the whole model, held likewise; of the slots of layers it has bias: what layers
/// have unless they say otherwise.
using ModelGenes = Mechanism;

}  // namespace nas
