#include "genotype/costs.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.hpp"
#include "genotype/planned.hpp"
#include "genotype/slots.hpp"

namespace nas {

namespace {

constexpr std::int64_t kFloat = 4;  // bytes

double real(std::int64_t number) { return static_cast<double>(number); }

/// The shape of a layer after so many tokens.
AttentionShape shape_after(const Architecture& architecture, const Mechanism& layer,
                           std::int64_t tokens) {
  AttentionShape shape{
      .width = architecture.width,
      .heads = layer.integer("heads") > 0 ? layer.integer("heads") : architecture.heads,
      .context = tokens,
      .kv_heads = layer.integer("kv_heads"),
      .of_head = layer.integer("head_width"),
      .maps = layer.word("maps") == "single" ? 1 : 2,
      .hidden = hidden_width(architecture, layer),
      .sizes = layer};
  mixer_kinds().at(layer.word("mixer")).set_sight(layer, shape);
  return shape;
}

MixerCosts mixer_costs(const Mechanism& layer, const AttentionShape& shape) {
  auto costs = mixer_kinds().at(layer.word("mixer")).costs(layer, shape);
  if (layer.integer("smear") == 1) add_smear(shape, costs);
  return costs;
}

/// Of a feed-forward layer with a gate.
bool has_three_matrices(const Mechanism& layer) { return layer.word("ffn").starts_with("swiglu"); }

/// How many layers work as stack[slot].
std::int64_t num_layers(const Architecture& architecture, std::size_t slot) {
  const auto period = static_cast<std::int64_t>(architecture.stack.size());
  const auto place = static_cast<std::int64_t>(slot);
  return place < architecture.layers ? (architecture.layers - place - 1) / period + 1 : 0;
}

/// Sum over all layers of what `of` takes from each.
template <class Of>
auto sum_over_layers(const Architecture& architecture, Of of) {
  using Sum = decltype(of(architecture.stack.front()));
  Sum sum{};
  for (std::size_t slot = 0; slot < architecture.stack.size(); ++slot) {
    const auto layers = num_layers(architecture, slot);
    if (layers > 0) sum += static_cast<Sum>(layers) * of(architecture.stack[slot]);
  }
  return sum;
}

/// Norms of the residual stream in one layer: before or behind each part that is there, twice as
/// many around them, or one for both.
std::int64_t num_norms(const Architecture& architecture, const Mechanism& layer) {
  if (architecture.genes.word("block") == "parallel") return 1;
  const std::int64_t parts =
      (layer.word("mixer") != "none" ? 1 : 0) + (layer.word("ffn") != "none" ? 1 : 0);
  return architecture.genes.word("norm_place") == "sandwich" ? 2 * parts : parts;
}

/// Of the token embedding, the output matrix, the table of values and what says where tokens stand.
std::int64_t num_embedding_parameters(const Architecture& architecture) {
  const auto& genes = architecture.genes;
  const auto tables = (genes.word("tied") == "0" ? 2 : 1) + (embeds_values(architecture) ? 1 : 0);
  const auto positions = genes.word("position_embedding") == "learned"
                             ? architecture.context * architecture.width
                         : genes.word("position_embedding") == "sinusoidal" ? 1
                                                                            : 0;
  return tables * architecture.vocabulary * architecture.width + positions;
}

}  // namespace

bool has_final_norm(const ModelGenes& genes) {
  return genes.word("block") != "sequential" || genes.word("norm_place") != "post";
}

AttentionShape attention_shape(const Architecture& architecture, const Mechanism& layer) {
  return shape_after(architecture, layer, architecture.context);
}

AttentionShape attention_shape(const Architecture& architecture) {
  return attention_shape(architecture, architecture.layer(0));
}

bool embeds_values(const Architecture& architecture) {
  return sum_over_layers(architecture, [](const Mechanism& layer) {
           return layer.integer("value_embedding");
         }) > 0;
}

void require_valid(const Architecture& architecture) {
  const auto positive = [](const char* name, std::int64_t value) {
    if (value < 1) {
      throw InputError(std::string(name) + " = " + std::to_string(value) + ", must be >= 1");
    }
  };
  positive("layers", architecture.layers);
  positive("width", architecture.width);
  positive("heads", architecture.heads);
  positive("context", architecture.context);
  positive("vocabulary", architecture.vocabulary);
  positive("feed_forward", architecture.feed_forward);
  if (architecture.width % architecture.heads != 0) {
    throw InputError("heads = " + std::to_string(architecture.heads) +
                     ", must divide width = " + std::to_string(architecture.width));
  }
}

std::int64_t hidden_width(const Architecture& architecture, const Mechanism& mechanism) {
  if (mechanism.word("ffn") == "none") return 0;
  if (architecture.hidden > 0) return architecture.hidden;
  const auto width = architecture.width;
  const auto ratio =
      mechanism.integer("ratio") > 0 ? mechanism.integer("ratio") : architecture.feed_forward;
  if (!has_three_matrices(mechanism)) return ratio * width;
  constexpr std::int64_t kMultiple = 8;
  constexpr std::int64_t kSplit = 12;  // three matrices of 2/3 the width, in multiples of 8
  return kMultiple * ((ratio * width + kSplit - 1) / kSplit);
}

std::int64_t num_non_embedding_parameters(const Architecture& architecture) {
  require_valid(architecture);
  const auto norm =
      described("norm", architecture.genes.word("norm")).parameters(attention_shape(architecture));
  const auto layers = sum_over_layers(architecture, [&](const Mechanism& layer) {
    const auto shape = attention_shape(architecture, layer);
    const auto feed_forward =
        layer.word("ffn") == "none" ? 0 : described("ffn", layer.word("ffn")).parameters(shape);
    return mixer_costs(layer, shape).parameters + feed_forward +
           norm * num_norms(architecture, layer);
  });
  return layers + (has_final_norm(architecture.genes) ? norm : 0);
}

std::int64_t num_parameters(const Architecture& architecture) {
  return num_embedding_parameters(architecture) + num_non_embedding_parameters(architecture);
}

std::int64_t matched_hidden(const Architecture& architecture) {
  auto vanilla = architecture;
  vanilla.genes = {};
  vanilla.stack = {vanilla_mechanism(architecture.semantics)};
  vanilla.hidden = 0;
  constexpr std::int64_t kMultiple = 8;
  const auto parameters_at = [&](std::int64_t hidden) {
    auto sized = architecture;
    sized.hidden = hidden;
    return num_parameters(sized);
  };
  const auto target = num_parameters(vanilla);
  const auto least = parameters_at(kMultiple);
  const auto step = parameters_at(2 * kMultiple) - least;  // they grow in proportion
  if (step == 0) {
    throw InputError(
        "match_parameters: no layer has a feed-forward layer whose width could be chosen");
  }
  // Of the multiples around the exact width the nearer one, the smaller of equals.
  const auto floor_steps = target < least ? 0 : (target - least) / step;
  const auto below = kMultiple * (1 + floor_steps);
  const bool above =
      std::abs(parameters_at(below + kMultiple) - target) < std::abs(target - parameters_at(below));
  const auto hidden = above ? below + kMultiple : below;
  if (target < least - step / 2 || 2 * hidden < architecture.width) {
    throw InputError(
        "match_parameters: the feed-forward layers would have to be narrower than half "
        "of width = " +
        std::to_string(architecture.width) + " for the " + std::to_string(target) +
        " parameters of the vanilla model");
  }
  return hidden;
}

Architecture fitted(Architecture architecture) {
  if (architecture.match_parameters) architecture.hidden = matched_hidden(architecture);
  return architecture;
}

double least_training_bytes(const Architecture& architecture, std::int64_t batch_size) {
  const auto width = real(architecture.width);
  double parameters =
      (embeds_values(architecture) ? 2.0 : 1.0) * real(architecture.vocabulary) * width;
  if (architecture.genes.word("position_embedding") == "learned") {
    parameters += real(architecture.context) * width;
  }
  double values = 0.0;  // of each token
  for (std::size_t slot = 0; slot < architecture.stack.size(); ++slot) {
    const auto& layer = architecture.stack[slot];
    const auto layers = real(num_layers(architecture, slot));
    const double mixed = mixer_kinds().at(layer.word("mixer")).least_values(architecture, layer);
    parameters += layers * width * mixed;
    values += layers * mixed;
    if (layer.word("ffn") == "none") continue;
    const bool plain = !has_three_matrices(layer) && architecture.hidden == 0;
    const double hidden = plain
                              ? width * real(layer.integer("ratio") > 0 ? layer.integer("ratio")
                                                                        : architecture.feed_forward)
                              : real(hidden_width(architecture, layer));
    parameters += layers * (has_three_matrices(layer) ? 3.0 : 2.0) * width * hidden;
    values += layers * hidden;
  }
  constexpr double kBytesPerParameter = 4 * sizeof(float);
  constexpr double kBytesPerValue = sizeof(float);
  return kBytesPerParameter * parameters +
         kBytesPerValue * real(batch_size) * real(architecture.context) * values;
}

double attention_flops(const Architecture& architecture) {
  require_valid(architecture);
  return sum_over_layers(architecture, [&](const Mechanism& layer) {
    return mixer_costs(layer, attention_shape(architecture, layer)).flops;
  });
}

double forward_flops(const Architecture& architecture) {
  const double feed_forward = sum_over_layers(architecture, [&](const Mechanism& layer) {
    return layer.word("ffn") == "none"
               ? 0.0
               : described("ffn", layer.word("ffn")).flops(attention_shape(architecture, layer));
  });
  return attention_flops(architecture) + feed_forward +
         2.0 * real(architecture.context) * real(architecture.width) *
             real(architecture.vocabulary);
}

std::int64_t state_bytes(const Architecture& architecture, std::int64_t tokens) {
  require_valid(architecture);
  return sum_over_layers(architecture, [&](const Mechanism& layer) {
    return mixer_costs(layer, shape_after(architecture, layer, tokens)).state_bytes;
  });
}

MixerCosts described_costs(const Mechanism& layer, const AttentionShape& shape) {
  const auto& component = described("mixer", layer.word("mixer"));
  return {component.parameters(shape), component.flops(shape), component.state_bytes(shape)};
}

void add(const Component& component, const AttentionShape& shape, MixerCosts& costs) {
  costs.parameters += component.parameters(shape);
  costs.flops += component.flops(shape);
  costs.state_bytes += component.state_bytes(shape);
}

void add_components(const Mechanism& layer, const AttentionShape& shape, MixerCosts& costs) {
  for (const auto* slot : layer_slots()) {
    if (!slot->is_component() || slot->name == "mixer" || slot->name == "ffn") continue;
    if (!has_gene(layer.word("mixer"), *slot)) continue;
    const auto key = text(*slot, layer);
    // Nothing is added by what is left out, nor by patterns, which choose pairs.
    const bool adds = slot->paper || (key != slot->choices.front() && slot->name != "pattern");
    // The latent's rotated part is counted with its projections.
    const bool counted = layer.integer("kv_rank") > 0 && slot->name == "position" && key == "rope";
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
  const auto& word = layer.word("bias");
  return (word == "bias" || word == "no_bias" ? width : 0) +
         (word == "bias" || word == "qkv" ? inner : 0);
}

}  // namespace nas
