#include <algorithm>
#include <cmath>

#include "genotype/layer_rules.hpp"
#include "genotype/mixer_costs.hpp"

namespace nas {

namespace {

constexpr std::int64_t kFloat = 4;  // bytes

double real(std::int64_t number) { return static_cast<double>(number); }

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
        .parameters = 2 * width * width + 3 * width * rank + rank + num_biases(layer, width, width),
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
        .parameters = 3 * width * width + num_biases(layer, 2 * width, width),
        .flops = tokens * (6.0 * square + real(width) * real(layer.rounds) * real(layer.buckets) +
                           3.0 * real(width)),
        .state_bytes = 2 * kFloat * width * shape.kept()};
  }
  MixerCosts costs{.parameters = 2 * width * width + 2 * width * keys +
                                 num_biases(layer, width + 2 * keys, width),
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
  if (layer.value_exclusion == 1) {
    costs.flops += real(shape.context) * (6.0 * real(shape.width) + 2.0 * real(shape.heads));
  }
  if (layer.soft_cap > 0) costs.flops += 3.0 * shape.scores();
  if (layer.value_embedding == 1) {
    costs.parameters += shape.key_heads();
    costs.flops += 2.0 * real(shape.context) * real(shape.key_width());
  }
  add_components(layer, shape, costs);
  return costs;
}

void rules_of_scores(LayerRules& rules) {
  auto& layer = rules.layer();
  const bool rotates = layer.position == "rope" || layer.position == "path";
  if ((layer.similarity == "additive" || layer.similarity == "bilinear") && rotates) {
    rules.set_default("position");
  }
  if (layer.pattern == "lsh" && layer.buckets >= 2) {  // queries and keys are one vector
    rules.clear({"similarity", "qk_norm", "kv_heads", "kv_rank", "maps", "conv", "position"});
  }
  if (layer.kv_rank > 0) {
    rules.clear({"kv_heads", "conv", "qk_norm", "maps", "rope_fraction", "value_embedding"});
  }
  if (layer.maps == "difference") {
    rules.clear({"head_norm"});
    if (layer.position == "cope" || layer.position == "path") rules.set_default("position");
  }
}

/// Whether the last query of a context sees all keys.
bool shows_all(const Mechanism& layer, std::int64_t context) {
  if (layer.pattern == "window") return layer.window >= context || layer.globals >= context;
  if (layer.pattern == "strided") return layer.stride == 1 || layer.stride >= context;
  if (layer.pattern == "lsh") return layer.buckets < 2;
  // Of ceil(L / b) blocks it sees its own, the one before, g first and r others.
  const auto blocks = (context - 1) / layer.block + 1;
  return layer.pattern == "bigbird" && blocks - 2 <= layer.globals + layer.random;
}

void apply_rules(LayerRules& rules) {
  rules_of_scores(rules);
  auto& layer = rules.layer();
  if (shows_all(layer, rules.architecture().context)) rules.set_default_by_sizes("pattern");
  if (layer.kv_heads == rules.heads()) layer.kv_heads = 0;
}

void require_valid(const Architecture& architecture, const Mechanism& layer) {
  const auto shown = [](std::int64_t number) { return std::to_string(number); };
  const auto heads = require_heads(architecture, layer);
  const auto d = architecture.width / heads;
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

void set_sight(const Mechanism& layer, AttentionShape& shape) {
  if (layer.pattern == "window") {
    shape.cap = layer.window + layer.globals;
    shape.seen = real(shape.cap);
  } else if (layer.pattern == "strided") {
    shape.seen = real(layer.stride + (shape.context - 1) / layer.stride + 1);
  } else if (layer.pattern == "bigbird") {
    shape.seen = real(layer.block * (2 + layer.globals + layer.random));
  } else if (layer.pattern == "lsh") {
    shape.seen = real(layer.rounds * layer.block);
    shape.repeats = true;
  }
}

/// Queries, keys, values and outputs.
double least_values(const Architecture& architecture, const Mechanism& layer) {
  if (layer.kv_rank > 0 || layer.pattern == "lsh") return 0.0;
  const double width = real(architecture.width);
  const auto heads = layer.heads > 0 ? layer.heads : architecture.heads;
  const double keys = layer.kv_heads > 0 ? width * real(layer.kv_heads) / real(heads) : width;
  return 2.0 * (width + keys);
}

std::string shape_key(const Mechanism& layer) {
  // Beside pattern lsh there is no projection of keys.
  auto key = layer.maps + (layer.pattern == "lsh" ? "|lsh|" : "|");
  for (const auto size :
       {layer.heads, layer.kv_heads, layer.kv_rank, layer.conv, layer.value_exclusion,
        layer.soft_cap, layer.smear, layer.value_embedding}) {
    key += std::to_string(size) + "|";
  }
  const auto forms = fused_forms(layer);
  for (const bool has : {forms.attention, forms.gating, forms.temperature}) key += has ? "1" : "0";
  return key;
}

/// Query heads still share keys, and rope still rotates as large a share of a head.
void shrink(Mechanism& layer, std::int64_t heads, std::int64_t small_width,
            std::int64_t small_heads) {
  layer.heads = 0;
  if (layer.kv_heads > 0) {
    layer.heads = 4;
    layer.kv_heads = heads / layer.kv_heads == 2 ? 2 : 1;
  }
  if (layer.position != "rope") return;
  const auto width = small_width / (layer.heads > 0 ? layer.heads : small_heads);
  const auto pairs = std::round(layer.rope_fraction * real(width) / 2.0);
  layer.rope_fraction = 2.0 * std::max(pairs, 1.0) / real(width);
}

NAS_REGISTER_MIXER_KIND(.key = "attn",
                        .genes = {{"heads", {}},
                                  {"kv_heads", {}},
                                  {"kv_rank", {}},
                                  {"similarity", {}},
                                  {"qk_norm", {}},
                                  {"normalization", {}},
                                  {"temperature", {}},
                                  {"gating",
                                   {"none", "input_gate", "output_gate", "highway",
                                    "elementwise_gate", "headwise_gate"}},
                                  {"bias", {}},
                                  {"attention_dropout", {}},
                                  {"pattern", {}},
                                  {"window", {}},
                                  {"globals", {}},
                                  {"stride", {}},
                                  {"pattern_block", {}},
                                  {"random", {}},
                                  {"buckets", {}},
                                  {"rounds", {}},
                                  {"position", {}},
                                  {"rope_base", {}},
                                  {"rope_fraction", {}},
                                  {"t5_buckets", {}},
                                  {"t5_distance", {}},
                                  {"cope_positions", {}},
                                  {"decay", {"none", "scalar"}},
                                  {"maps", {}},
                                  {"conv", {}},
                                  {"head_norm", {}},
                                  {"value_exclusion", {}},
                                  {"soft_cap", {}},
                                  {"smear", {}},
                                  {"value_embedding", {}}},
                        .has_further_options = true,
                        .scope = "attention",  // from before there were other mixers
                        .has_maps = true, .apply_rules = apply_rules,
                        .require_valid = require_valid, .set_sight = set_sight,
                        .costs = attention_costs, .least_values = least_values,
                        .shape_key = shape_key, .shrink = shrink);

}  // namespace

}  // namespace nas
