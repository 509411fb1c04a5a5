#include "genotype/layer_alias.hpp"

#include <algorithm>

#include "genotype/layer_rules.hpp"

namespace nas {

namespace {

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
  const auto like = std::find_if(base.stack.begin(), base.stack.end(),
                                 [&](const Mechanism& other) { return other.mixer == mixer; });
  if (layer.mixer != mixer) {
    changed = like == base.stack.end() ? standard : *like;
    const auto before = default_layer(base, layer.mixer);
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
