#include "genotype/mixer_costs.hpp"

#include <algorithm>

#include "genotype/layer_rules.hpp"
#include "genotype/planned.hpp"
#include "genotype/slots.hpp"

namespace nas {

namespace {

constexpr std::int64_t kFloat = 4;  // bytes

double real(std::int64_t number) { return static_cast<double>(number); }

}  // namespace

void add(const Component& component, const AttentionShape& shape, MixerCosts& costs) {
  costs.parameters += component.parameters(shape);
  costs.flops += component.flops(shape);
  costs.state_bytes += component.state_bytes(shape);
}

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

void add_convolution(std::int64_t taps, std::int64_t channels, std::int64_t tokens,
                     MixerCosts& costs) {
  if (taps == 0) return;
  costs.parameters += taps * channels;
  costs.flops += 2.0 * real(taps) * real(tokens) * real(channels);
  costs.state_bytes += kFloat * (taps - 1) * channels;
}

void add_smear(const AttentionShape& shape, MixerCosts& costs) {
  const auto read = std::min<std::int64_t>(shape.width, 12);  // entries that its gate reads
  costs.parameters += read + 1;
  costs.flops += real(shape.context) * 2.0 * real(read + 1 + shape.width);
  costs.state_bytes += kFloat * shape.width;
}

std::int64_t num_biases(const Mechanism& layer, std::int64_t inner, std::int64_t width) {
  if (layer.bias == "none") return 0;
  return width + (layer.bias == "bias" ? inner : 0);
}

}  // namespace nas
