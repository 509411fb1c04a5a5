#include <algorithm>

#include "genotype/costs.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/planned.hpp"

namespace nas {

namespace {

constexpr std::int64_t kFloat = 4;  // bytes

double real(std::int64_t number) { return static_cast<double>(number); }

std::int64_t head_width(const Mechanism& layer, std::int64_t of_model) {
  return layer.integer("head_width") > 0 ? layer.integer("head_width") : of_model;
}

/// A recurrent layer: H states of f x d, taken up token by token.
MixerCosts recurrent_costs(const Mechanism& layer, const AttentionShape& shape) {
  const auto width = shape.width;
  const auto heads = shape.heads;
  const auto d = shape.head_width();
  const auto values = shape.inner();
  auto of_state = shape;
  of_state.keys = layer.integer("key_width") > 0 ? layer.integer("key_width") : d;
  auto of_keys = shape;
  of_keys.width = heads * of_state.keys;
  of_keys.of_head = 0;
  const auto keys = of_keys.width;
  const bool maps = layer.word("feature") != "identity";
  if (maps) of_state.features = described("feature", layer.word("feature")).features(of_keys);
  const auto features = of_state.state_rows();
  const auto& update = described("update", layer.word("update"));
  const bool decays = layer.word("decay") != "none";
  const bool sums = !update.erases && maps;
  const double tokens = real(shape.context);

  MixerCosts costs{
      .parameters =
          2 * width * keys + 2 * width * values + num_biases(layer, 2 * keys + values, width),
      .flops = tokens * (4.0 * real(width) * real(keys) + 4.0 * real(width) * real(values) +
                         real(values) * real(features) *
                             (4.0 + (decays ? 1.0 : 0.0) + (update.erases ? 2.0 : 0.0))),
      .state_bytes = kFloat * heads * features * (d + (sums ? 1 : 0))};
  add_convolution(layer.integer("conv"), 2 * keys + values, shape.context, costs);
  if (layer.integer("conv") > 0 || update.erases)
    costs.flops += 2.0 * tokens * real(2 * keys + values);                             // SiLU
  if (update.erases) costs.flops += tokens * (6.0 * real(keys) + 2.0 * real(values));  // unit keys
  if (layer.word("position") == "rope") costs.flops += 6.0 * tokens * real(keys);
  if (sums) {
    costs.flops += tokens * (real(heads) * real(features) * (decays ? 4.0 : 3.0) + real(values));
  } else {
    costs.parameters += d;  // the norm of a head's output
    costs.flops += 4.0 * tokens * real(values);
  }
  add(update, of_state, costs);
  if (decays) add(described("decay", layer.word("decay"), layer.word("mixer")), of_state, costs);
  if (maps) add(described("feature", layer.word("feature")), of_keys, costs);
  if (const auto near = std::min(layer.integer("near"), shape.context); near > 0) {
    costs.parameters += heads;
    costs.flops +=
        tokens * real(near) * (2.0 * real(keys) + 2.0 * real(values) + 3.0 * real(heads));
    costs.state_bytes += kFloat * heads * near * (of_state.keys + d);
    if (near == shape.context) costs.state_bytes -= kFloat * heads * features * (d + 1);
  }
  if (layer.word("gating") != "none")
    add(described("gating", layer.word("gating"), layer.word("mixer")), shape, costs);
  return costs;
}

/// Queries, keys, values and outputs.
double least_values(const Architecture& architecture, const Mechanism& layer) {
  const auto heads = layer.integer("heads") > 0 ? layer.integer("heads") : architecture.heads;
  const auto values = real(heads) * real(head_width(layer, architecture.width / heads));
  return 2.0 *
         (values + (layer.integer("key_width") > 0 ? real(heads) * real(layer.integer("key_width"))
                                                   : values));
}

void apply_rules(LayerRules& rules) {
  auto& layer = rules.layer();
  if (layer.integer("head_width") == rules.head_width()) layer.set("head_width", 0);
  if (layer.integer("key_width") == head_width(layer, rules.head_width()))
    layer.set("key_width", 0);
  if (layer.word("decay") != "none") rules.clear({"near"});
  const auto& feature = layer.word("feature");
  const auto& beside = slot("near").owner_options;
  const bool near =
      layer.integer("near") > 0 && std::find(beside.begin(), beside.end(), feature) != beside.end();
  if (feature != "identity" && !near) rules.clear({"position"});
}

void require_valid(const Architecture& architecture, const Mechanism& layer) {
  const auto d = head_width(layer, architecture.width / require_heads(architecture, layer));
  const auto key_width = layer.integer("key_width") > 0 ? layer.integer("key_width") : d;
  if (layer.word("position") == "rope") require_rotatable(layer, key_width, 1.0);
}

std::vector<Slot> sizes() {
  return {
      of_options("feature", {"favor"},
                 integer("favor_features", "random features; 0: twice the key width", 0, 0, 6)),
      of_options(
          "feature", {"hedgehog", "elu1", "relu", "taylor2"},
          integer("near", "last tokens, which softmax sees beside the state; 0: none", 0, 0, 3)),
      integer("key_width", "width of a head's keys; 0: that of its values", 0, 0, 4),
      integer("neg_eigen", "1: a state may be reflected", 0, 0, 0, 1.0),
  };
}

NAS_REGISTER_MIXER_KIND(.key = "recurrent",
                        .genes = {{"heads", {}},
                                  {"head_width", {}},
                                  {"gating", {"none"}},
                                  {"bias", {}},
                                  {"position", {"none", "rope"}},
                                  {"rope_base", {}},
                                  {"decay", {"none"}},
                                  {"conv", {}},
                                  {"update", {}},
                                  {"feature", {}}},
                        .sizes = sizes(), .has_maps = true, .apply_rules = apply_rules,
                        .require_valid = require_valid, .costs = recurrent_costs,
                        .least_values = least_values);

}  // namespace

}  // namespace nas
