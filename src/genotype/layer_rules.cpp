#include "genotype/layer_rules.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.hpp"
#include "core/format.hpp"
#include "genotype/component.hpp"

namespace nas {

namespace {

bool holds(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

const std::vector<std::string>* options_of(std::string_view mixer, const Slot& slot) {
  for (const auto& [name, options] : slot.mixers) {
    if (name == mixer) return &options;
  }
  return nullptr;
}

void set(const Slot& slot, const Mechanism& from, Mechanism& to) {
  std::visit(
      [&](auto member) {
        if constexpr (!std::is_same_v<decltype(member), std::string ModelGenes::*>) {
          to.*member = from.*member;
        }
      },
      slot.member);
}

/// The rules of one layer, in the order in which they are applied.
class LayerRules {
 public:
  LayerRules(const Architecture& architecture, Mechanism& layer,
             const std::function<void(const Slot&)>& voided)
      : architecture_(architecture),
        layer_(layer),
        default_(default_layer(architecture, layer.mixer)),
        voided_(voided) {}

  void apply() {
    what_the_mixer_lacks();
    if (layer_.ffn == "none" || architecture_.match_parameters) clear({"ratio"});
    if (layer_.ratio == architecture_.feed_forward) layer_.ratio = 0;
    if (layer_.heads == architecture_.heads) layer_.heads = 0;
    what_components_void();
    scores();
    patterns_that_show_all();
    if (layer_.kv_heads == heads()) layer_.kv_heads = 0;
    if (layer_.key_width == head_width()) layer_.key_width = 0;
    clear({layer_.update == "delta" ? "feature" : "neg_eigen"});
    if (layer_.feature != "identity" || layer_.update == "delta") clear({"position"});
    sizes();
    layer_.attention_dropout += 0.0;  // -0.0, which reads "-0", becomes 0.0
    layer_.rope_fraction += 0.0;
  }

 private:
  [[nodiscard]] std::int64_t heads() const {
    return layer_.heads > 0 ? layer_.heads : architecture_.heads;
  }
  [[nodiscard]] std::int64_t head_width() const { return architecture_.width / heads(); }

  void clear(std::initializer_list<std::string_view> names) {
    for (const auto name : names) clear(slot(name));
  }
  void clear(const Slot& slot) {
    set(slot, default_, layer_);
    voided_(slot);
  }

  void what_the_mixer_lacks() {
    for (const auto* slot : layer_slots()) {
      if (!has_gene(layer_.mixer, *slot)) {
        clear(*slot);
      } else if (std::holds_alternative<std::string Mechanism::*>(slot->member) &&
                 slot->name != "mixer" && !has_option(layer_.mixer, *slot, text(*slot, layer_))) {
        set(*slot, default_, layer_);
      }
    }
  }

  void what_components_void() {
    for (const auto* gene : layer_slots()) {
      if (!gene->is_component() || !components().contains(gene->name, text(*gene, layer_))) {
        continue;
      }
      for (const auto& voided : components().at(gene->name, text(*gene, layer_)).voids) {
        clear({voided});
      }
    }
  }

  void scores() {
    const auto& similarity = layer_.similarity;
    const bool rotates = layer_.position == "rope" || layer_.position == "path";
    if ((similarity == "additive" || similarity == "bilinear") && rotates) set_none_of_position();
    if (layer_.pattern == "lsh" && layer_.buckets >= 2) {  // queries and keys are one vector
      clear({"similarity", "qk_norm", "kv_heads", "kv_rank", "maps", "conv", "position"});
    }
    if (layer_.kv_rank > 0) clear({"kv_heads", "conv", "qk_norm", "maps", "rope_fraction"});
    if (layer_.maps == "difference") {
      clear({"head_norm"});
      if (layer_.position == "cope" || layer_.position == "path") set_none_of_position();
    }
  }

  /// The gene keeps its effect: other options have one.
  void set_none_of_position() { layer_.position = default_.position; }

  void patterns_that_show_all() {
    const auto context = architecture_.context;
    const auto& pattern = layer_.pattern;
    // Of ceil(L / b) blocks the last query sees its own, the one before, g first and r others.
    const auto blocks = (context - 1) / layer_.block + 1;
    const bool all =
        (pattern == "window" && (layer_.window >= context || layer_.globals >= context)) ||
        (pattern == "strided" && (layer_.stride == 1 || layer_.stride >= context)) ||
        (pattern == "bigbird" && blocks - 2 <= layer_.globals + layer_.random) ||
        (pattern == "lsh" && layer_.buckets < 2);
    if (!all) return;
    layer_.pattern = default_.pattern;
    shows_all_ = true;
  }

  void sizes() {
    for (const auto* slot : layer_slots()) {
      if (slot->owner.empty()) continue;
      if (holds(slot->owner_options, text(nas::slot(slot->owner), layer_))) continue;
      if (shows_all_ && slot->owner == "pattern") {
        set(*slot, default_, layer_);  // the gene keeps its effect: other sizes hide keys
      } else {
        clear(*slot);
      }
    }
  }

  const Architecture& architecture_;
  Mechanism& layer_;
  const Mechanism default_;
  const std::function<void(const Slot&)>& voided_;
  bool shows_all_ = false;  ///< the pattern, by its sizes
};

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

}  // namespace

bool has_gene(std::string_view mixer, const Slot& slot) {
  return options_of(mixer, slot) != nullptr;
}

bool has_option(std::string_view mixer, const Slot& slot, std::string_view option) {
  const auto* options = options_of(mixer, slot);
  if (options == nullptr) return false;
  if (options->empty() || holds(*options, option)) return true;
  return mixer == "attn" && !holds(slot.words, option);
}

Mechanism default_layer(const Architecture& architecture, std::string_view mixer) {
  auto layer = vanilla_mechanism(architecture.semantics);
  layer.mixer = mixer;
  layer.bias = architecture.genes.bias;
  constexpr std::int64_t kTapsOfMixer = 3;
  if (mixer == "conv") layer.conv = kTapsOfMixer;
  return layer;
}

void apply_layer_rules(const Architecture& architecture, Mechanism& layer,
                       const std::function<void(const Slot&)>& voided) {
  LayerRules(architecture, layer, voided).apply();
}

void require_valid_layer(const Architecture& architecture, const Mechanism& layer) {
  const auto shown = [](std::int64_t number) { return std::to_string(number); };
  for (const auto* slot : layer_slots()) {
    const auto* number = std::get_if<std::int64_t Mechanism::*>(&slot->member);
    if (number != nullptr && slot->allows != nullptr && !slot->allows(layer.*(*number))) {
      throw InputError(slot->written + " = " + shown(layer.*(*number)) + ", must be " +
                       slot->allowed);
    }
  }
  require(layer.mixer != "none" || layer.ffn != "none", "mixer", "none",
          "have a feed-forward layer beside it: ffn is none, too");
  require(layer.mixer != "conv" || layer.conv >= 2, "conv", shown(layer.conv),
          "be in [2, 8] as the mixer");
  if (layer.mixer != "attn" && layer.mixer != "recurrent") return;
  const auto heads = layer.heads > 0 ? layer.heads : architecture.heads;
  require(architecture.width % heads == 0, "heads", shown(heads),
          "divide width = " + shown(architecture.width));
  const auto d = architecture.width / heads;
  if (layer.mixer == "recurrent") {
    const auto key_width = layer.key_width > 0 ? layer.key_width : d;
    if (layer.position == "rope") require_rotatable(layer, key_width, 1.0);
    return;
  }
  require(layer.kv_heads == 0 || heads % layer.kv_heads == 0, "kv_heads", shown(layer.kv_heads),
          "divide heads = " + shown(heads));
  require(layer.maps != "difference" || d % 2 == 0, "maps", layer.maps,
          "have heads of even width, not " + shown(d));
  if (layer.position == "rope") {
    const bool halves = layer.maps == "difference" || layer.kv_rank > 0;
    require_rotatable(layer, halves ? d / 2 : d, layer.kv_rank > 0 ? 1.0 : layer.rope_fraction);
  }
  require(layer.position != "t5" || layer.t5_distance > layer.t5_buckets / 2, "t5_distance",
          shown(layer.t5_distance),
          "be greater than half of t5_buckets = " + shown(layer.t5_buckets));
}

}  // namespace nas
