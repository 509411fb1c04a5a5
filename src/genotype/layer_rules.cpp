#include "genotype/layer_rules.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/words.hpp"
#include "genotype/component.hpp"
#include "genotype/mixer_kind.hpp"

namespace nas {

void copy(const Slot& slot, const Mechanism& from, Mechanism& to) {
  std::visit(
      [&](auto member) {
        if constexpr (!std::is_same_v<decltype(member), std::string ModelGenes::*>) {
          to.*member = from.*member;
        }
      },
      slot.member);
}

LayerRules::LayerRules(const Architecture& architecture, Mechanism& layer,
                       const std::function<void(const Slot&)>& voided)
    : architecture_(architecture),
      layer_(layer),
      default_(default_layer(architecture, layer.mixer)),
      voided_(voided) {}

void LayerRules::apply() {
  what_the_mixer_lacks();
  if (layer_.ffn == "none" || architecture_.match_parameters) clear({"ratio"});
  if (layer_.ratio == architecture_.feed_forward) layer_.ratio = 0;
  if (layer_.heads == architecture_.heads) layer_.heads = 0;
  what_components_void();
  mixer_kinds().at(layer_.mixer).apply_rules(*this);
  sizes();
  layer_.attention_dropout += 0.0;  // -0.0, which reads "-0", becomes 0.0
  layer_.rope_fraction += 0.0;
}

std::int64_t LayerRules::heads() const {
  return layer_.heads > 0 ? layer_.heads : architecture_.heads;
}

std::int64_t LayerRules::head_width() const { return architecture_.width / heads(); }

void LayerRules::clear(std::initializer_list<std::string_view> genes) {
  for (const auto gene : genes) clear(slot(gene));
}

void LayerRules::clear(const Slot& slot) {
  copy(slot, default_, layer_);
  voided_(slot);
}

void LayerRules::set_default(std::string_view gene) { copy(slot(gene), default_, layer_); }

void LayerRules::set_default_by_sizes(std::string_view gene) {
  set_default(gene);
  default_by_sizes_ = gene;
}

void LayerRules::what_the_mixer_lacks() {
  for (const auto* slot : layer_slots()) {
    if (!has_gene(layer_.mixer, *slot)) {
      clear(*slot);
    } else if (std::holds_alternative<std::string Mechanism::*>(slot->member) &&
               slot->name != "mixer" && !has_option(layer_.mixer, *slot, text(*slot, layer_))) {
      copy(*slot, default_, layer_);
    }
  }
}

void LayerRules::what_components_void() {
  for (const auto* gene : layer_slots()) {
    if (!gene->is_component() || !components().contains(gene->name, text(*gene, layer_))) continue;
    for (const auto& voided : components().at(gene->name, text(*gene, layer_)).voids) {
      // A cap is of scores with their temperature: a common factor does not cancel.
      if (voided != "temperature" || layer_.soft_cap == 0) clear({voided});
    }
  }
}

void LayerRules::sizes() {
  for (const auto* slot : layer_slots()) {
    if (slot->owner.empty()) continue;
    if (holds(slot->owner_options, text(nas::slot(slot->owner), layer_))) continue;
    if (slot->owner == default_by_sizes_) {
      copy(*slot, default_, layer_);
    } else {
      clear(*slot);
    }
  }
}

void require(bool holds, const std::string& gene, const std::string& value,
             const std::string& rule) {
  if (!holds) throw InputError(gene + " = " + value + ", must " + rule);
}

void require_rotatable(const Mechanism& layer, std::int64_t entries, double share) {
  const double rotated = share * static_cast<double>(entries);
  const double nearest = std::round(rotated);
  constexpr double kRounding = 1e-9;  // 0.28 times 50 is not quite 14
  require(
      rotated >= 2.0 && std::abs(rotated - nearest) < kRounding && std::fmod(nearest, 2.0) == 0.0,
      "position", layer.position,
      "rotate an even number of entries, not " + shortest(rotated) + " of " +
          std::to_string(entries));
}

std::int64_t require_heads(const Architecture& architecture, const Mechanism& layer) {
  const auto heads = layer.heads > 0 ? layer.heads : architecture.heads;
  require(architecture.width % heads == 0, "heads", std::to_string(heads),
          "divide width = " + std::to_string(architecture.width));
  return heads;
}

const std::vector<std::string>* options_of(std::string_view mixer, const Slot& slot) {
  static const std::vector<std::string> kAll;
  if (slot.name == "mixer" || slot.name == "ffn" || slot.name == "ratio") return &kAll;
  for (const auto& [gene, options] : mixer_kinds().at(mixer).genes) {
    if (gene == slot.name) return &options;
  }
  return nullptr;
}

bool has_gene(std::string_view mixer, const Slot& slot) {
  return options_of(mixer, slot) != nullptr;
}

bool has_option(std::string_view mixer, const Slot& slot, std::string_view option) {
  const auto* options = options_of(mixer, slot);
  if (options == nullptr) return false;
  if (options->empty() || holds(*options, option)) return true;
  return mixer_kinds().at(mixer).has_further_options && !holds(slot.words, option);
}

Mechanism default_layer(const Architecture& architecture, std::string_view mixer) {
  auto layer = vanilla_mechanism(architecture.semantics);
  layer.mixer = mixer;
  layer.bias = architecture.genes.bias;
  mixer_kinds().at(mixer).set_defaults(layer);
  return layer;
}

void apply_layer_rules(const Architecture& architecture, Mechanism& layer,
                       const std::function<void(const Slot&)>& voided) {
  LayerRules(architecture, layer, voided).apply();
}

void require_valid_layer(const Architecture& architecture, const Mechanism& layer) {
  for (const auto* slot : layer_slots()) {
    const auto* number = std::get_if<std::int64_t Mechanism::*>(&slot->member);
    if (number != nullptr && slot->allows != nullptr && !slot->allows(layer.*(*number))) {
      throw InputError(slot->written + " = " + std::to_string(layer.*(*number)) + ", must be " +
                       slot->allowed);
    }
  }
  require(layer.mixer != "none" || layer.ffn != "none", "mixer", "none",
          "have a feed-forward layer beside it: ffn is none, too");
  mixer_kinds().at(layer.mixer).require_valid(architecture, layer);
}

}  // namespace nas
