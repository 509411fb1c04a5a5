#include "genotype/layer_rules.hpp"
#include "genotype/mixer_costs.hpp"
#include "genotype/planned.hpp"

namespace nas {

namespace {

constexpr std::int64_t kFloat = 4;  // bytes

double real(std::int64_t number) { return static_cast<double>(number); }

/// Erase and write gates, and unit keys, of updates delta and delta2.
void add_update(const Mechanism& layer, const AttentionShape& shape, std::int64_t keys,
                MixerCosts& costs) {
  if (layer.update == "add") return;
  const auto width = shape.width;
  const double tokens = real(shape.context);
  const double reflects = layer.neg_eigen == 1 ? 2.0 : 1.0;
  costs.flops += tokens * (6.0 * real(keys) + 2.0 * real(width));
  if (layer.update == "delta2") {
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
  if (layer.decay == "scalar") {
    costs.parameters += shape.heads * (width + 2);
    costs.flops += tokens * real(shape.heads) * (2.0 * real(width) + 4.0);
  } else if (layer.decay == "channel") {
    const auto rank = layer.decay_rank;
    const bool softplus = layer.decay_form == "softplus";
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
  of_keys.width = heads * (layer.key_width > 0 ? layer.key_width : d);
  const auto keys = of_keys.width;
  const bool maps = layer.feature != "identity";
  const auto features =
      maps ? described("feature", layer.feature).features(of_keys) : of_keys.head_width();
  const bool delta = layer.update != "add";
  const bool decays = layer.decay != "none";
  const bool sums = !delta && maps;
  const double tokens = real(shape.context);

  MixerCosts costs{
      .parameters =
          2 * width * keys + 2 * width * width + num_biases(layer, 2 * keys + width, width),
      .flops = tokens *
               (4.0 * real(width) * real(keys) + 4.0 * real(width) * real(width) +
                real(width) * real(features) * (4.0 + (decays ? 1.0 : 0.0) + (delta ? 2.0 : 0.0))),
      .state_bytes = kFloat * heads * features * (d + (sums ? 1 : 0))};
  add_convolution(layer.conv, 2 * keys + width, shape.context, costs);
  if (layer.conv > 0 || delta) costs.flops += 2.0 * tokens * real(2 * keys + width);  // SiLU
  if (layer.position == "rope") costs.flops += 6.0 * tokens * real(keys);
  add_decay(layer, shape, heads * features, costs);
  add_update(layer, shape, keys, costs);
  if (sums) {
    costs.flops += tokens * (real(heads) * real(features) * (decays ? 4.0 : 3.0) + real(width));
  } else {
    costs.parameters += d;  // the norm of a head's output
    costs.flops += 4.0 * tokens * real(width);
  }
  if (maps) add(described("feature", layer.feature), of_keys, costs);
  if (layer.gating != "none") add(described("gating", layer.gating), shape, costs);
  return costs;
}

/// Queries, keys, values and outputs.
double least_values(const Architecture& architecture, const Mechanism& layer) {
  const double width = real(architecture.width);
  const auto heads = layer.heads > 0 ? layer.heads : architecture.heads;
  return 2.0 * (width + (layer.key_width > 0 ? real(heads) * real(layer.key_width) : width));
}

void apply_rules(LayerRules& rules) {
  auto& layer = rules.layer();
  if (layer.key_width == rules.head_width()) layer.key_width = 0;
  const bool delta = layer.update != "add";
  rules.clear({delta ? "feature" : "neg_eigen"});
  if (layer.feature != "identity" || delta) rules.clear({"position"});
  if (layer.decay_form != "gla") rules.clear({"decay_tau"});
}

void require_valid(const Architecture& architecture, const Mechanism& layer) {
  const auto d = architecture.width / require_heads(architecture, layer);
  const auto key_width = layer.key_width > 0 ? layer.key_width : d;
  if (layer.position == "rope") require_rotatable(layer, key_width, 1.0);
}

NAS_REGISTER_MIXER_KIND(.key = "recurrent",
                        .genes = {{"heads", {}},
                                  {"gating",
                                   {"none", "swish_gate", "elementwise_gate", "sigmoid_gate"}},
                                  {"gate_rank", {}},
                                  {"bias", {}},
                                  {"position", {"none", "rope"}},
                                  {"rope_base", {}},
                                  {"decay", {}},
                                  {"decay_rank", {}},
                                  {"decay_tau", {}},
                                  {"decay_form", {}},
                                  {"conv", {}},
                                  {"update", {}},
                                  {"feature", {}},
                                  {"favor_features", {}},
                                  {"key_width", {}},
                                  {"neg_eigen", {}}},
                        .has_maps = true, .apply_rules = apply_rules,
                        .require_valid = require_valid, .costs = recurrent_costs,
                        .least_values = least_values);

}  // namespace

}  // namespace nas
