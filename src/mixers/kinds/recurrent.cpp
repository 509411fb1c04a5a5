#include "genotype/layer_rules.hpp"
#include "genotype/mixer_costs.hpp"
#include "genotype/planned.hpp"

namespace nas {

namespace {

constexpr std::int64_t kFloat = 4;  // bytes

double real(std::int64_t number) { return static_cast<double>(number); }

/// f, features of a key of so many entries.
std::int64_t num_features(const Mechanism& layer, std::int64_t key) {
  if (layer.feature == "favor") return layer.favor_features > 0 ? layer.favor_features : 2 * key;
  if (layer.feature == "taylor2") return 1 + key + key * key;
  return layer.feature == "hedgehog" ? 2 * key : key;
}

/// What makes features of queries and keys.
void add_feature_map(const Mechanism& layer, std::int64_t heads, std::int64_t key,
                     std::int64_t tokens, MixerCosts& costs) {
  const double each = real(tokens) * real(heads);
  const double k = real(key);
  if (layer.feature == "elu1") costs.flops += 4.0 * each * k;
  if (layer.feature == "favor") {
    const double f = real(num_features(layer, key));
    costs.flops += 2.0 * each * (2.0 * f * k + 3.0 * k + 2.0 * f);
  }
  if (layer.feature == "taylor2") costs.flops += 2.0 * each * (2.0 * k * k + k);
  if (layer.feature == "hedgehog") {
    costs.parameters += 2 * heads * (key * key + key);
    costs.flops += each * (4.0 * k * k + 18.0 * k);
  }
}

/// A recurrent layer: H states of f x d, taken up token by token.
MixerCosts recurrent_costs(const Mechanism& layer, const AttentionShape& shape) {
  const auto width = shape.width;
  const auto heads = shape.heads;
  const auto d = shape.head_width();
  const auto key = layer.key_width > 0 ? layer.key_width : d;
  const auto keys = heads * key;
  const auto features = num_features(layer, key);
  const bool delta = layer.update == "delta";
  const bool decays = layer.decay != "none";
  const bool sums = !delta && layer.feature != "identity";
  const double tokens = real(shape.context);
  const double state_width = real(heads) * real(features);

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
  if (layer.decay == "scalar") {
    costs.parameters += heads * (width + 2);
    costs.flops += tokens * real(heads) * (2.0 * real(width) + 4.0);
  } else if (layer.decay == "channel") {
    const auto rank = layer.decay_rank;
    costs.parameters += rank * (width + heads * features) + heads * features;
    costs.flops += tokens * (2.0 * real(rank) * (real(width) + state_width) + 3.0 * state_width);
  }
  if (delta) {
    costs.parameters += heads * width;
    costs.flops += tokens * (2.0 * real(width) * real(heads) +
                             real(heads) * (layer.neg_eigen == 1 ? 2.0 : 1.0) + 6.0 * real(keys) +
                             2.0 * real(width));
  }
  if (sums) {
    costs.flops += tokens * (state_width * (decays ? 4.0 : 3.0) + real(width));
  } else {
    costs.parameters += d;  // the norm of a head's output
    costs.flops += 4.0 * tokens * real(width);
  }
  add_feature_map(layer, heads, key, shape.context, costs);
  if (layer.gating != "none") add(described("gating", layer.gating), shape, costs);
  return costs;
}

void apply_rules(LayerRules& rules) {
  auto& layer = rules.layer();
  if (layer.key_width == rules.head_width()) layer.key_width = 0;
  rules.clear({layer.update == "delta" ? "feature" : "neg_eigen"});
  if (layer.feature != "identity" || layer.update == "delta") rules.clear({"position"});
}

void require_valid(const Architecture& architecture, const Mechanism& layer) {
  const auto d = architecture.width / require_heads(architecture, layer);
  const auto key_width = layer.key_width > 0 ? layer.key_width : d;
  if (layer.position == "rope") require_rotatable(layer, key_width, 1.0);
}

NAS_REGISTER_MIXER_KIND(.key = "recurrent",
                        .genes = {{"heads", {}},
                                  {"gating", {"none", "swish_gate", "elementwise_gate"}},
                                  {"bias", {}},
                                  {"position", {"none", "rope"}},
                                  {"rope_base", {}},
                                  {"decay", {}},
                                  {"decay_rank", {}},
                                  {"decay_tau", {}},
                                  {"conv", {}},
                                  {"update", {}},
                                  {"feature", {}},
                                  {"favor_features", {}},
                                  {"key_width", {}},
                                  {"neg_eigen", {}}},
                        .apply_rules = apply_rules, .require_valid = require_valid,
                        .costs = recurrent_costs);

}  // namespace

}  // namespace nas
