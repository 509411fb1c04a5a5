#include "genotype/layer_rules.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/registry.hpp"
#include "core/words.hpp"
#include "genotype/costs.hpp"
#include "genotype/slots.hpp"

namespace nas {

LayerRules::LayerRules(const Architecture& architecture, Mechanism& layer,
                       const std::function<void(const Slot&)>& voided)
    : architecture_(architecture),
      layer_(layer),
      default_(default_layer(architecture, layer.word("mixer"))),
      voided_(voided) {}

void LayerRules::apply() {
  what_the_mixer_lacks();
  if (layer_.word("ffn") == "none" || architecture_.match_parameters) clear({"ratio"});
  if (layer_.integer("ratio") == architecture_.feed_forward) layer_.set("ratio", 0);
  if (layer_.integer("heads") == architecture_.heads) layer_.set("heads", 0);
  what_components_void();
  mixer_kinds().at(layer_.word("mixer")).apply_rules(*this);
  sizes();
}

std::int64_t LayerRules::heads() const {
  return layer_.integer("heads") > 0 ? layer_.integer("heads") : architecture_.heads;
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
    if (!has_gene(layer_.word("mixer"), *slot)) {
      clear(*slot);
    } else if ((slot->is_component() || slot->is_word()) && slot->name != "mixer" &&
               !has_option(layer_.word("mixer"), *slot, text(*slot, layer_))) {
      copy(*slot, default_, layer_);
    }
  }
}

void LayerRules::what_components_void() {
  for (const auto* gene : layer_slots()) {
    if (!gene->is_component()) continue;
    const auto* chosen = components().find(gene->name, text(*gene, layer_), layer_.word("mixer"));
    if (chosen == nullptr) continue;
    chosen->apply_rules(*this);
    for (const auto& voided : chosen->voids) {
      // A cap is of scores with their temperature: a common factor does not cancel.
      if (voided != "temperature" || layer_.integer("soft_cap") == 0) clear({voided});
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

Slot integer(std::string name, std::string help, std::int64_t standard, double min,
             std::int64_t small, double max) {
  return {.name = std::move(name),
          .default_value = standard,
          .help = std::move(help),
          .min = min,
          .max = max,
          .small = small};
}

Slot of_options(std::string gene, std::vector<std::string> options, Slot size) {
  size.owner = std::move(gene);
  size.owner_options = std::move(options);
  return size;
}

Mechanism with_small_sizes(Mechanism layer) {
  for (const auto* slot : layer_slots()) {
    if (slot->small == 0) continue;
    layer.set(*slot, std::min(std::get<std::int64_t>(layer.at(*slot)), slot->small));
  }
  return layer;
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
      "position", layer.word("position"),
      "rotate an even number of entries, not " + shortest(rotated) + " of " +
          std::to_string(entries));
}

std::int64_t require_heads(const Architecture& architecture, const Mechanism& layer) {
  const auto heads = layer.integer("heads") > 0 ? layer.integer("heads") : architecture.heads;
  require(architecture.width % heads == 0, "heads", std::to_string(heads),
          "divide width = " + std::to_string(architecture.width));
  return heads;
}

std::vector<std::pair<std::string, std::vector<std::string>>> mixers_of(const Slot& slot) {
  std::vector<std::pair<std::string, std::vector<std::string>>> mixers;
  for (const auto& mixer : mixer_kinds().keys()) {
    if (!has_gene(mixer, slot)) continue;
    auto options = nas::options(slot);
    const auto removed = std::erase_if(options, [&](const auto& option) {
      return !has_option(mixer, slot, component_key(Semantics::corrected, slot.name, option));
    });
    if (removed == 0) options.clear();
    mixers.emplace_back(mixer, std::move(options));
  }
  return mixers;
}

bool has_effect(const Slot& slot) {
  if (!slot.is_number() && !slot.is_integer()) return true;
  if (!slot.owner.empty()) {
    return std::any_of(
        slot.owner_options.begin(), slot.owner_options.end(),
        [&slot](const auto& option) { return is_built(nas::slot(slot.owner), option); });
  }
  const auto mixers = mixers_of(slot);
  return mixers.empty() || std::any_of(mixers.begin(), mixers.end(), [](const auto& mixer) {
           return is_built(nas::slot("mixer"), mixer.first);
         });
}

bool is_active(const Slot& slot, const Mechanism& mechanism) {
  if (slot.model) return true;
  bool active = true;
  auto voided = mechanism;
  Architecture long_context;  // in which every pattern leaves something out
  long_context.context = std::numeric_limits<std::int64_t>::max();
  apply_layer_rules(long_context, voided,
                    [&](const Slot& other) { active &= other.name != slot.name; });
  return active;
}

bool is_causal(const Mechanism& mechanism) {
  const auto parts = parts_of(mechanism);
  return std::all_of(parts.begin(), parts.end(), [](const Mechanism& part) {
    return std::all_of(layer_slots().begin(), layer_slots().end(), [&](const Slot* slot) {
      if (!slot->is_component() || !is_active(*slot, part)) return true;
      const auto* chosen = components().find(slot->name, text(*slot, part), part.word("mixer"));
      return chosen == nullptr || chosen->causal;
    });
  });
}

std::string key_of_genes(const Mechanism& layer) {
  std::string key;
  for (const auto* slot : layer_slots()) {
    if (has_gene(layer.word("mixer"), *slot)) key += text(*slot, layer) + "|";
  }
  return key;
}

double no_values(const Architecture& /*architecture*/, const Mechanism& /*layer*/) { return 0.0; }

Mechanism default_layer(const Architecture& architecture, std::string_view mixer) {
  auto layer = vanilla_mechanism(architecture.semantics);
  layer.set("mixer", std::string(mixer));
  layer.set("bias", architecture.genes.word("bias"));
  mixer_kinds().at(mixer).set_defaults(layer);
  return layer;
}

void apply_layer_rules(const Architecture& architecture, Mechanism& layer,
                       const std::function<void(const Slot&)>& voided) {
  LayerRules(architecture, layer, voided).apply();
}

void require_valid_layer(const Architecture& architecture, const Mechanism& layer) {
  for (const auto* slot : layer_slots()) {
    const auto* number = std::get_if<std::int64_t>(&layer.at(*slot));
    if (number != nullptr && slot->allows != nullptr && !slot->allows(*number)) {
      throw InputError(slot->written + " = " + std::to_string(*number) + ", must be " +
                       slot->allowed);
    }
  }
  require(layer.word("mixer") != "none" || layer.word("ffn") != "none", "mixer", "none",
          "have a feed-forward layer beside it: ffn is none, too");
  mixer_kinds().at(layer.word("mixer")).require_valid(architecture, layer);
}

bool gives_keys(const Mechanism& layer) {
  if (layer.word("mixer") != "attn" || layer.word("keys") != "own") return false;
  const bool alone = layer.word("pattern") == "window" && layer.integer("window") == 1 &&
                     layer.integer("globals") == 0 && layer.integer("full_groups") == 0;
  const bool changed = layer.word("position") == "path" || layer.word("decay") == "channel";
  return !alone && !changed && layer.word("pattern") != "lsh" && layer.integer("kv_rank") == 0;
}

std::int64_t giver(const Architecture& architecture, std::int64_t i) {
  do {
    --i;
  } while (i >= 0 && !gives_keys(architecture.layer(i)));
  return i;
}

void require_giver(const Architecture& architecture, std::int64_t i) {
  const auto& layer = architecture.layer(i);
  if (layer.word("keys") != "shared") return;
  const auto from = giver(architecture, i);
  require(from >= 0, "keys", "shared", "have an earlier layer of attention with keys of its own");
  const auto& given = architecture.layer(from);
  const auto of = " of layer " + std::to_string(from) + ", whose keys it reads";
  const auto shape = attention_shape(architecture, layer);
  const auto theirs = attention_shape(architecture, given);
  const auto equal = [&](const std::string& gene, std::int64_t own, std::int64_t other) {
    require(own == other, gene, std::to_string(own), "be the " + std::to_string(other) + of);
  };
  equal("kv_heads", shape.key_heads(), theirs.key_heads());
  equal("head_width", shape.head_width(), theirs.head_width());
  equal("full_groups", layer.integer("full_groups"), given.integer("full_groups"));
  if (given.word("pattern") != "window") return;
  require(layer.word("pattern") == "window", "pattern", layer.word("pattern"),
          "be window as that" + of);
  for (const auto* size : {"window", "globals"}) {
    require(layer.integer(size) <= given.integer(size), size, std::to_string(layer.integer(size)),
            "be at most the " + std::to_string(given.integer(size)) + of);
  }
}

namespace {

using Words = std::vector<std::string>;

/// What is wrong with the genes that mixers and components name, and the sizes that they declare.
Words mistakes_of_genes() {
  Words genes, mistakes;
  for (const auto* slot : layer_slots()) genes.push_back(slot->name);
  const auto require_known = [&](const std::string& whose, const std::string& gene) {
    if (holds(genes, gene)) return true;
    mistakes.push_back(whose + ": nothing declares gene '" + gene + "'" +
                       did_you_mean(gene, genes));
    return false;
  };
  const auto require_option = [&](const std::string& whose, const std::string& gene,
                                  const std::string& option) {
    const auto& choices = slot(gene).choices;
    if (holds(choices, option) || components().contains(gene, option)) return;
    mistakes.push_back(whose + ": gene " + gene + " has no option '" + option + "'" +
                       did_you_mean(option, choices));
  };
  const auto mixers = mixer_kinds().keys();
  for (const auto& mixer : mixers) {
    for (const auto& [gene, options] : mixer_kinds().at(mixer).genes) {
      if (!require_known("mixer " + mixer, gene)) continue;
      for (const auto& option : options) require_option("mixer " + mixer, gene, option);
    }
  }
  for (const auto& gene : slots()) {
    for (const auto* component : components().of(gene.name)) {
      for (const auto& voided : component->voids) {
        require_known(gene.name + " " + component->key, voided);
      }
    }
  }
  for (const auto* slot : layer_slots()) {
    const auto whose = "size " + slot->name;
    if (!slot->owner.empty() && require_known(whose, slot->owner)) {
      for (const auto& option : slot->owner_options) require_option(whose, slot->owner, option);
    }
    const auto has = [&](const auto& mixer) { return has_gene(mixer, *slot); };
    if (std::none_of(mixers.begin(), mixers.end(), has)) {
      mistakes.push_back(whose + ": no mixer has it");
    }
  }
  return mistakes;
}

[[maybe_unused]] const bool kChecked = check_registrations([] {
  static std::set<std::string> told;
  Words fresh;
  for (auto& mistake : mistakes_of_genes()) {
    if (told.insert(mistake).second) fresh.push_back(std::move(mistake));
  }
  return join(fresh, "; ");
});

const Slot& written_slot(const std::string& name) {
  return **std::find_if(layer_slots().begin(), layer_slots().end(),
                        [&](const Slot* slot) { return slot->written == name; });
}

}  // namespace

const std::vector<Alias>& aliases() {
  static const std::vector<Alias> kAliases{
      {"linear", "recurrent", {{"feature", "elu1"}}},
      {"performer",
       "recurrent",
       {{"feature", "favor"}},
       "redraws its random features, and subtracts the maximum over all keys, later ones included"},
      {"retnet",
       "recurrent",
       {{"gating", "swish_gate"}, {"position", "rope"}, {"decay", "fixed"}},
       "has values twice as wide"},
      {"ssd",
       "recurrent",
       {{"decay", "scalar"}},
       "multiplies values by the step of the decay, and has a skip, a gate and a convolution"},
      {"gla",
       "recurrent",
       {{"gating", "swish_gate"}, {"decay", "channel"}},
       "has keys half as wide as values"},
      {"deltanet", "recurrent", {{"conv", "4"}, {"update", "delta"}}},
      {"gdn",
       "recurrent",
       {{"gating", "swish_gate"}, {"decay", "scalar"}, {"conv", "4"}, {"update", "delta"}},
       "has values twice as wide, and draws e^A of the decay from U(0, 16)"},
      {"gdn2",
       "recurrent",
       {{"gating", "sigmoid_gate"}, {"decay", "channel"}, {"conv", "4"}, {"update", "delta2"}},
       "has a gate and decays of the rank of a head, decay_form softplus; write gate_rank, "
       "decay_rank and decay_form for these"},
      {"kda",
       "recurrent",
       {{"gating", "swish_gate"}, {"decay", "channel"}, {"conv", "4"}, {"update", "delta"}},
       "gates by a sigmoid, and has a gate and decays of the rank of a head, decay_form softplus; "
       "write gating, gate_rank, decay_rank and decay_form for these"},
      {"swa", "attn", {{"pattern", "window"}}},
      {"mqa", "attn", {{"kv_heads", "1"}}},
  };
  return kAliases;
}

const Alias* alias_named(std::string_view word) {
  const auto found = std::find_if(aliases().begin(), aliases().end(),
                                  [&](const Alias& alias) { return alias.name == word; });
  return found == aliases().end() ? nullptr : &*found;
}

std::string braces(const std::vector<Written>& genes) {
  std::string text;
  for (const auto& [name, value] : genes) text += (text.empty() ? "{" : ",") + name + "=" + value;
  return genes.empty() ? "" : text + "}";
}

bool is_built(const Alias& alias) {
  return is_built(slot("mixer"), alias.mixer) &&
         std::all_of(alias.genes.begin(), alias.genes.end(), [](const Written& gene) {
           const auto& slot = written_slot(gene.first);
           return (!slot.is_component() && !slot.is_word()) || is_built(slot, gene.second);
         });
}

Mechanism changed_layer(const Architecture& base, const Mechanism& layer, std::string_view word) {
  const auto* alias = alias_named(word);
  const auto mixer = alias == nullptr ? std::string(word) : alias->mixer;
  const auto standard = default_layer(base, mixer);
  auto changed = layer;
  const auto like = std::find_if(base.stack.begin(), base.stack.end(), [&](const Mechanism& other) {
    return other.word("mixer") == mixer;
  });
  if (layer.word("mixer") != mixer) {
    changed = like == base.stack.end() ? standard : *like;
    const auto before = default_layer(base, layer.word("mixer"));
    for (const auto* slot : layer_slots()) {
      const auto value = text(*slot, layer);
      const bool of_place = slot->name == "ffn" || slot->name == "ratio";
      const bool shared = like == base.stack.end() && slot->name != "mixer" &&
                          value != text(*slot, before) && has_option(mixer, *slot, value);
      if (of_place || shared) copy(*slot, layer, changed);
    }
  }
  if (alias == nullptr) return changed;
  if (mixer == "recurrent") {
    for (const auto* gene : {"update", "decay", "feature"}) copy(slot(gene), standard, changed);
  }
  for (const auto& [gene, value] : alias->genes) {
    choose(written_slot(gene), value, base.semantics, changed);
  }
  return changed;
}

}  // namespace nas
