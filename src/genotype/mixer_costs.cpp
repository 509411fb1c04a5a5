#include "genotype/mixer_costs.hpp"

#include "genotype/layer_rules.hpp"
#include "genotype/planned.hpp"
#include "genotype/slots.hpp"

namespace nas {

namespace {

constexpr std::int64_t kFloat = 4;  // bytes

double real(std::int64_t number) { return static_cast<double>(number); }

void add(const Component& component, const AttentionShape& shape, MixerCosts& costs) {
  costs.parameters += component.parameters(shape);
  costs.flops += component.flops(shape);
  costs.state_bytes += component.state_bytes(shape);
}

/// What a layer's components add: all that its mixer has but the mixer itself.
void add_components(const Mechanism& layer, const AttentionShape& shape, MixerCosts& costs) {
  for (const auto* slot : layer_slots()) {
    if (!slot->is_component() || slot->name == "mixer" || slot->name == "ffn") continue;
    if (!has_gene(layer.mixer, *slot)) continue;
    const auto key = text(*slot, layer);
    // Nothing is added by what is left out, nor by patterns, which choose pairs.
    const bool adds = slot->paper || (key != slot->words.front() && slot->name != "pattern");
    // The latent's rotated part is counted with its projections.
    const bool counted = layer.kv_rank > 0 && slot->name == "position" && key == "rope";
    if (adds && !counted) add(described(slot->name, key), shape, costs);
  }
}

/// A convolution of so many taps over so many channels, each by itself.
void add_convolution(std::int64_t taps, std::int64_t channels, std::int64_t tokens,
                     MixerCosts& costs) {
  if (taps == 0) return;
  costs.parameters += taps * channels;
  costs.flops += 2.0 * real(taps) * real(tokens) * real(channels);
  costs.state_bytes += kFloat * (taps - 1) * channels;
}

/// Biases of projections to q, k, v, of so many values in all, and back to D.
std::int64_t biases(const Mechanism& layer, std::int64_t inner, std::int64_t width) {
  if (layer.bias == "none") return 0;
  return width + (layer.bias == "bias" ? inner : 0);
}

/// Projections of attention, and what is kept of keys and values.
MixerCosts attention_projections(const Mechanism& layer, const AttentionShape& shape) {
  const auto width = shape.width;
  const auto keys = shape.key_width();
  const auto d = shape.head_width();
  const double tokens = real(shape.context);
  const double square = real(width) * real(width);
  if (layer.kv_rank > 0) {
    // Multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434): no biases of keys, values.
    const auto rank = layer.kv_rank;
    const bool rotated = layer.position == "rope";
    MixerCosts costs{
        .parameters = 2 * width * width + 3 * width * rank + rank + biases(layer, width, width),
        .flops = tokens * (4.0 * square + 6.0 * real(width) * real(rank)),
        .state_bytes = kFloat * (rank + (rotated ? d / 2 : 0)) * shape.kept()};
    if (rotated) {
      costs.parameters += width * shape.heads * (d / 2) + width * (d / 2);
      costs.flops += tokens * square + tokens * real(width) * real(d) +
                     shape.pairs() * real(width) +
                     3.0 * tokens * real(shape.heads + 1) * real(d) / 2.0;
    }
    return costs;
  }
  if (layer.pattern == "lsh") {  // keys are unit queries, hashed in rounds
    return {
        .parameters = 3 * width * width + biases(layer, 2 * width, width),
        .flops = tokens * (6.0 * square + real(width) * real(layer.rounds) * real(layer.buckets) +
                           3.0 * real(width)),
        .state_bytes = 2 * kFloat * width * shape.kept()};
  }
  MixerCosts costs{
      .parameters = 2 * width * width + 2 * width * keys + biases(layer, width + 2 * keys, width),
      .flops = 4.0 * tokens * (square + real(width) * real(keys)),
      .state_bytes = 2 * kFloat * keys * shape.kept()};
  add_convolution(layer.conv, width + 2 * keys, shape.context, costs);
  return costs;
}

MixerCosts attention_costs(const Mechanism& layer, const AttentionShape& shape) {
  auto costs = attention_projections(layer, shape);
  costs.flops += 2.0 * shape.pairs() * real(shape.width);  // weights times values
  if (layer.maps == "difference") {                        // Ye et al. (2024), arXiv:2410.05258
    costs.parameters += 3 * shape.head_width();
    costs.flops +=
        2.0 * shape.pairs() * real(shape.heads) + 4.0 * real(shape.context) * real(shape.width);
  }
  add_components(layer, shape, costs);
  return costs;
}

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
      .parameters = 2 * width * keys + 2 * width * width + biases(layer, 2 * keys + width, width),
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

/// The gated short convolution (Liquid AI 2025, LFM2).
MixerCosts convolution_costs(const Mechanism& layer, const AttentionShape& shape) {
  const double tokens = real(shape.context);
  const double width = real(shape.width);
  MixerCosts costs{.parameters = 4 * shape.width * shape.width,
                   .flops = tokens * (8.0 * width * width + 2.0 * width)};
  add_convolution(layer.conv, shape.width, shape.context, costs);
  return costs;
}

}  // namespace

MixerCosts mixer_costs(const Mechanism& layer, const AttentionShape& shape) {
  if (layer.mixer == "attn") return attention_costs(layer, shape);
  if (layer.mixer == "recurrent") return recurrent_costs(layer, shape);
  if (layer.mixer == "conv") return convolution_costs(layer, shape);
  MixerCosts costs;
  if (layer.mixer != "none") add(described("mixer", layer.mixer), shape, costs);
  return costs;
}

}  // namespace nas
