#include "genotype/costs.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/planned.hpp"

namespace nas {

namespace {

constexpr std::int64_t kFloat = 4;  // bytes

double real(std::int64_t number) { return static_cast<double>(number); }

/// Erase and write gates, and unit keys, of updates delta and delta2.
void add_update(const Mechanism& layer, const AttentionShape& shape, std::int64_t keys,
                MixerCosts& costs) {
  if (layer.word("update") == "add") return;
  const auto width = shape.width;
  const double tokens = real(shape.context);
  const double reflects = layer.integer("neg_eigen") == 1 ? 2.0 : 1.0;
  costs.flops += tokens * (6.0 * real(keys) + 2.0 * real(width));
  if (layer.word("update") == "delta2") {
    costs.parameters += width * (keys + width);
    costs.flops += tokens * (2.0 * real(width) * real(keys + width) +
                             real(keys) * (reflects + 1.0) + real(width));
  } else {
    costs.parameters += shape.heads * width;
    costs.flops += tokens * real(shape.heads) * (2.0 * real(width) + reflects);
  }
}

void add_decay(const Mechanism& layer, const AttentionShape& shape, std::int64_t channels,
               MixerCosts& costs) {
  const auto width = shape.width;
  const double tokens = real(shape.context);
  if (layer.word("decay") == "scalar") {
    costs.parameters += shape.heads * (width + 2);
    costs.flops += tokens * real(shape.heads) * (2.0 * real(width) + 4.0);
  } else if (layer.word("decay") == "channel") {
    const auto rank = layer.integer("decay_rank");
    const bool softplus = layer.word("decay_form") == "softplus";
    costs.parameters += rank * (width + channels) + channels + (softplus ? shape.heads : 0);
    costs.flops += tokens * (2.0 * real(rank) * real(width + channels) +
                             (softplus ? 4.0 : 3.0) * real(channels));
  }
}

/// A recurrent layer: H states of f x d, taken up token by token.
MixerCosts recurrent_costs(const Mechanism& layer, const AttentionShape& shape) {
  const auto width = shape.width;
  const auto heads = shape.heads;
  const auto d = shape.head_width();
  auto of_keys = shape;
  of_keys.width = heads * (layer.integer("key_width") > 0 ? layer.integer("key_width") : d);
  const auto keys = of_keys.width;
  const bool maps = layer.word("feature") != "identity";
  const auto features =
      maps ? described("feature", layer.word("feature")).features(of_keys) : of_keys.head_width();
  const bool delta = layer.word("update") != "add";
  const bool decays = layer.word("decay") != "none";
  const bool sums = !delta && maps;
  const double tokens = real(shape.context);

  MixerCosts costs{
      .parameters =
          2 * width * keys + 2 * width * width + num_biases(layer, 2 * keys + width, width),
      .flops = tokens *
               (4.0 * real(width) * real(keys) + 4.0 * real(width) * real(width) +
                real(width) * real(features) * (4.0 + (decays ? 1.0 : 0.0) + (delta ? 2.0 : 0.0))),
      .state_bytes = kFloat * heads * features * (d + (sums ? 1 : 0))};
  add_convolution(layer.integer("conv"), 2 * keys + width, shape.context, costs);
  if (layer.integer("conv") > 0 || delta)
    costs.flops += 2.0 * tokens * real(2 * keys + width);  // SiLU
  if (layer.word("position") == "rope") costs.flops += 6.0 * tokens * real(keys);
  add_decay(layer, shape, heads * features, costs);
  add_update(layer, shape, keys, costs);
  if (sums) {
    costs.flops += tokens * (real(heads) * real(features) * (decays ? 4.0 : 3.0) + real(width));
  } else {
    costs.parameters += d;  // the norm of a head's output
    costs.flops += 4.0 * tokens * real(width);
  }
  if (maps) add(described("feature", layer.word("feature")), of_keys, costs);
  if (layer.word("gating") != "none") add(described("gating", layer.word("gating")), shape, costs);
  return costs;
}

/// Queries, keys, values and outputs.
double least_values(const Architecture& architecture, const Mechanism& layer) {
  const double width = real(architecture.width);
  const auto heads = layer.integer("heads") > 0 ? layer.integer("heads") : architecture.heads;
  return 2.0 *
         (width + (layer.integer("key_width") > 0 ? real(heads) * real(layer.integer("key_width"))
                                                  : width));
}

void apply_rules(LayerRules& rules) {
  auto& layer = rules.layer();
  if (layer.integer("key_width") == rules.head_width()) layer.set("key_width", 0);
  const bool delta = layer.word("update") != "add";
  rules.clear({delta ? "feature" : "neg_eigen"});
  if (layer.word("feature") != "identity" || delta) rules.clear({"position"});
  if (layer.word("decay_form") != "gla") rules.clear({"decay_tau"});
}

void require_valid(const Architecture& architecture, const Mechanism& layer) {
  const auto d = architecture.width / require_heads(architecture, layer);
  const auto key_width = layer.integer("key_width") > 0 ? layer.integer("key_width") : d;
  if (layer.word("position") == "rope") require_rotatable(layer, key_width, 1.0);
}

std::vector<Slot> sizes() {
  const auto of_channels = [](Slot size) {
    return of_options("decay", {"channel"}, std::move(size));
  };
  const auto rank = integer("gate_rank", "rank of the gate's matrix; 0: full", 0, 0, 3);
  const auto features =
      integer("favor_features", "random features; 0: twice the key width", 0, 0, 6);
  return {
      of_options("gating", {"sigmoid_gate"}, rank),
      of_channels(integer("decay_rank", "rank of the map that makes decays", 16, 1, 3)),
      of_channels({.name = "decay_tau",
                   .default_value = 16.0,
                   .help = "divisor of the logarithms of decays",
                   .min = 1.0}),
      of_channels({.name = "decay_form",
                   .default_value = "gla",
                   .help = "how decays of channels follow from logits",
                   .choices = {"gla", "softplus"}}),
      of_options("feature", {"favor"}, features),
      integer("key_width", "width of a head's keys; 0: that of its values", 0, 0, 4),
      integer("neg_eigen", "1: a state may be reflected", 0, 0, 0, 1.0),
  };
}

NAS_REGISTER_MIXER_KIND(.key = "recurrent",
                        .genes = {{"heads", {}},
                                  {"gating",
                                   {"none", "swish_gate", "elementwise_gate", "sigmoid_gate"}},
                                  {"bias", {}},
                                  {"position", {"none", "rope"}},
                                  {"rope_base", {}},
                                  {"decay", {}},
                                  {"conv", {}},
                                  {"update", {}},
                                  {"feature", {}}},
                        .sizes = sizes(), .has_maps = true, .apply_rules = apply_rules,
                        .require_valid = require_valid, .costs = recurrent_costs,
                        .least_values = least_values);

}  // namespace

}  // namespace nas
