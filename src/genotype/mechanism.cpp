#include "genotype/mechanism.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <tuple>
#include <unordered_map>

#include "core/words.hpp"

namespace nas {

namespace {

using Places = std::vector<const Slot*>;

struct Declared {
  std::list<Slot> slots;
  Places paper, models, layers;
  std::unordered_map<std::string_view, Slot*> by_name;
};

Declared& declared() {
  static Declared declared;
  return declared;
}

/// The paper's six in the order of their name.
constexpr auto kPaper = std::to_array<std::string_view>(
    {"similarity", "normalization", "gating", "temperature", "bias", "attention_dropout"});
/// The order of names and of columns of files, in whatever order components register.
constexpr auto kOrder = std::to_array<std::string_view>({"position_embedding",
                                                         "norm",
                                                         "norm_eps",
                                                         "norm_place",
                                                         "block",
                                                         "tied",  // of the whole model
                                                         "mixer",
                                                         "first",
                                                         "second",
                                                         "heads",
                                                         "kv_heads",
                                                         "head_width",
                                                         "kv_rank",
                                                         "keys",
                                                         "similarity",
                                                         "qk_norm",
                                                         "qk_eps",
                                                         "normalization",
                                                         "temperature",
                                                         "gating",
                                                         "bias",
                                                         "attention_dropout",
                                                         "gate_rank",
                                                         "pattern",
                                                         "window",
                                                         "globals",
                                                         "full_groups",
                                                         "stride",
                                                         "pattern_block",
                                                         "random",
                                                         "buckets",
                                                         "rounds",
                                                         "position",
                                                         "rope_base",
                                                         "rope_fraction",
                                                         "rope_factor",
                                                         "rope_original",
                                                         "rope_low",
                                                         "rope_high",
                                                         "t5_buckets",
                                                         "t5_distance",
                                                         "cope_positions",
                                                         "decay",
                                                         "decay_rank",
                                                         "decay_tau",
                                                         "decay_form",
                                                         "maps",
                                                         "conv",
                                                         "head_norm",
                                                         "value_exclusion",
                                                         "soft_cap",
                                                         "smear",
                                                         "value_embedding",
                                                         "update",
                                                         "feature",
                                                         "favor_features",
                                                         "near",
                                                         "key_width",
                                                         "neg_eigen",
                                                         "ffn",
                                                         "ratio"});

template <std::size_t kSize>
std::ptrdiff_t place_in(const std::array<std::string_view, kSize>& order, std::string_view name) {
  return std::find(order.begin(), order.end(), name) - order.begin();
}

bool is_named_before(const Slot& one, const Slot& other) {
  const auto place = [](const Slot& slot) {
    return std::pair(place_in(kOrder, slot.name), slot.name);
  };
  return place(one) < place(other);
}

bool is_listed_before(const Slot& one, const Slot& other) {
  const auto of_one = place_in(kPaper, one.name);
  const auto of_other = place_in(kPaper, other.name);
  return of_one != of_other ? of_one < of_other : is_named_before(one, other);
}

bool says_the_same(const Slot& one, const Slot& other) {
  const auto facts = [](const Slot& slot) {
    return std::tie(slot.default_value, slot.help, slot.min, slot.max, slot.max_exclusive,
                    slot.choices, slot.owner, slot.small, slot.allows, slot.allowed, slot.written,
                    slot.unbuilt, slot.component, slot.of_component, slot.model, slot.paper);
  };
  return facts(one) == facts(other);
}

void place(const Slot& slot, Places& places, bool (*before)(const Slot&, const Slot&)) {
  const auto behind = std::find_if(places.begin(), places.end(),
                                   [&](const Slot* other) { return before(slot, *other); });
  places.insert(behind, &slot);
}

[[noreturn]] void refuse_type(const Slot& slot) {
  throw std::logic_error("slot " + slot.name + " is read as another type than declared");
}

template <class T>
const T& value_of(const Mechanism& layer, std::string_view gene) {
  const auto& slot = nas::slot(gene);
  const auto* value = std::get_if<T>(&layer.at(slot));
  if (value == nullptr) refuse_type(slot);
  return *value;
}

}  // namespace

std::string declare(Slot slot) {
  if (slot.written.empty()) slot.written = slot.name;
  auto& all = declared();
  if (const auto known = all.by_name.find(slot.name); known != all.by_name.end()) {
    if (!says_the_same(*known->second, slot)) {
      return "size " + slot.name + " is declared already, and otherwise";
    }
    for (auto& option : slot.owner_options) {
      auto& options = known->second->owner_options;
      if (!holds(options, option)) options.push_back(std::move(option));
    }
    return {};
  }
  slot.index = all.slots.size();
  const auto behind = std::find_if(all.slots.begin(), all.slots.end(), [&](const Slot& other) {
    return is_listed_before(slot, other);
  });
  auto& placed = *all.slots.insert(behind, std::move(slot));
  all.by_name.emplace(placed.name, &placed);
  if (placed.paper) place(placed, all.paper, is_listed_before);
  place(placed, placed.model ? all.models : all.layers, is_named_before);
  return {};
}

const std::list<Slot>& slots() { return declared().slots; }
const std::vector<const Slot*>& paper_slots() { return declared().paper; }
const std::vector<const Slot*>& model_slots() { return declared().models; }
const std::vector<const Slot*>& layer_slots() { return declared().layers; }

const Slot* find_slot(std::string_view name) {
  const auto& by_name = declared().by_name;
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

const Slot& slot(std::string_view name) {
  if (const auto* found = find_slot(name)) return *found;
  throw std::logic_error("no slot is called " + std::string(name));
}

const std::string& Mechanism::word(std::string_view gene) const {
  return value_of<std::string>(*this, gene);
}

std::int64_t Mechanism::integer(std::string_view gene) const {
  return value_of<std::int64_t>(*this, gene);
}

double Mechanism::real(std::string_view gene) const { return value_of<double>(*this, gene); }

const SlotValue& Mechanism::at(const Slot& slot) const {
  for (const auto& [held, value] : values_) {
    if (held == &slot) return value;
  }
  return slot.default_value;
}

Mechanism& Mechanism::set(std::string_view gene, SlotValue value) {
  return set(slot(gene), std::move(value));
}

Mechanism& Mechanism::set(const Slot& slot, SlotValue value) {
  if (value.index() != slot.default_value.index()) refuse_type(slot);
  if (auto* number = std::get_if<double>(&value)) *number += 0.0;
  const auto place = std::find_if(values_.begin(), values_.end(), [&](const auto& held) {
    return held.first->index >= slot.index;
  });
  const bool is_held = place != values_.end() && place->first == &slot;
  if (value == slot.default_value) {
    if (is_held) values_.erase(place);
  } else if (is_held) {
    place->second = std::move(value);
  } else {
    values_.emplace(place, &slot, std::move(value));
  }
  return *this;
}

}  // namespace nas
