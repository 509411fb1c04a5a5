#include "genotype/architecture.hpp"

#include <cmath>
#include <string>

#include "core/error.hpp"
#include "genotype/mixer_costs.hpp"
#include "genotype/mixer_kind.hpp"
#include "genotype/planned.hpp"

namespace nas {

namespace {

double real(std::int64_t number) { return static_cast<double>(number); }

/// The shape of a layer after so many tokens.
AttentionShape shape_after(const Architecture& architecture, const Mechanism& layer,
                           std::int64_t tokens) {
  AttentionShape shape{.width = architecture.width,
                       .heads = layer.heads > 0 ? layer.heads : architecture.heads,
                       .context = tokens,
                       .kv_heads = layer.kv_heads,
                       .maps = layer.maps == "difference" ? 2 : 1,
                       .hidden = hidden_width(architecture, layer),
                       .sizes = static_cast<const Sizes&>(layer)};
  mixer_kinds().at(layer.mixer).set_sight(layer, shape);
  return shape;
}

MixerCosts mixer_costs(const Mechanism& layer, const AttentionShape& shape) {
  auto costs = mixer_kinds().at(layer.mixer).costs(layer, shape);
  if (layer.smear == 1) add_smear(shape, costs);
  return costs;
}

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
  if (architecture.genes.block == "parallel") return 1;
  const std::int64_t parts = (layer.mixer != "none" ? 1 : 0) + (layer.ffn != "none" ? 1 : 0);
  return architecture.genes.norm_place == "sandwich" ? 2 * parts : parts;
}

bool has_final_norm(const Architecture& architecture) {
  return architecture.genes.block == "parallel" || architecture.genes.norm_place != "post";
}

/// Of the token embedding, the output matrix, the table of values and what says where tokens stand.
std::int64_t num_embedding_parameters(const Architecture& architecture) {
  const auto& genes = architecture.genes;
  const auto tables = (genes.tied == "0" ? 2 : 1) + (embeds_values(architecture) ? 1 : 0);
  const auto positions = genes.position_embedding == "learned"
                             ? architecture.context * architecture.width
                         : genes.position_embedding == "sinusoidal" ? 1
                                                                    : 0;
  return tables * architecture.vocabulary * architecture.width + positions;
}

}  // namespace

AttentionShape Architecture::attention_shape(const Mechanism& mechanism) const {
  return shape_after(*this, mechanism, context);
}

bool embeds_values(const Architecture& architecture) {
  return sum_over_layers(architecture,
                         [](const Mechanism& layer) { return layer.value_embedding; }) > 0;
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
  if (mechanism.ffn == "none") return 0;
  if (architecture.hidden > 0) return architecture.hidden;
  const auto width = architecture.width;
  const auto ratio = mechanism.ratio > 0 ? mechanism.ratio : architecture.feed_forward;
  if (mechanism.ffn != "swiglu") return ratio * width;
  constexpr std::int64_t kMultiple = 8;
  constexpr std::int64_t kSplit = 12;  // three matrices of 2/3 the width, in multiples of 8
  return kMultiple * ((ratio * width + kSplit - 1) / kSplit);
}

std::int64_t num_non_embedding_parameters(const Architecture& architecture) {
  require_valid(architecture);
  const auto norm =
      described("norm", architecture.genes.norm).parameters(architecture.attention_shape());
  const auto layers = sum_over_layers(architecture, [&](const Mechanism& layer) {
    const auto shape = architecture.attention_shape(layer);
    const auto feed_forward =
        layer.ffn == "none" ? 0 : described("ffn", layer.ffn).parameters(shape);
    return mixer_costs(layer, shape).parameters + feed_forward +
           norm * num_norms(architecture, layer);
  });
  return layers + (has_final_norm(architecture) ? norm : 0);
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
  if (architecture.genes.position_embedding == "learned") {
    parameters += real(architecture.context) * width;
  }
  double values = 0.0;  // of each token
  for (std::size_t slot = 0; slot < architecture.stack.size(); ++slot) {
    const auto& layer = architecture.stack[slot];
    const auto layers = real(num_layers(architecture, slot));
    const double mixed = mixer_kinds().at(layer.mixer).least_values(architecture, layer);
    parameters += layers * width * mixed;
    values += layers * mixed;
    if (layer.ffn == "none") continue;
    const bool plain = layer.ffn != "swiglu" && architecture.hidden == 0;
    const double hidden =
        plain ? width * real(layer.ratio > 0 ? layer.ratio : architecture.feed_forward)
              : real(hidden_width(architecture, layer));
    parameters += layers * (layer.ffn == "swiglu" ? 3.0 : 2.0) * width * hidden;
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
    return mixer_costs(layer, architecture.attention_shape(layer)).flops;
  });
}

double forward_flops(const Architecture& architecture) {
  const double feed_forward = sum_over_layers(architecture, [&](const Mechanism& layer) {
    return layer.ffn == "none"
               ? 0.0
               : described("ffn", layer.ffn).flops(architecture.attention_shape(layer));
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

}  // namespace nas
