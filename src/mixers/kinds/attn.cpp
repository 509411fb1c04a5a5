#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/format.hpp"
#include "genotype/costs.hpp"
#include "genotype/layer_rules.hpp"

namespace nas {

namespace {

constexpr std::int64_t kFloat = 4;  // bytes
/// Costs are far below 2^63 then.
constexpr std::int64_t kLargestInner = 1'000'000;

double real(std::int64_t number) { return static_cast<double>(number); }

/// Projections of attention, and what is kept of keys and values.
MixerCosts attention_projections(const Mechanism& layer, const AttentionShape& shape) {
  const auto width = shape.width;
  const auto inner = shape.inner();
  const auto keys = shape.own_key_width();
  const auto d = shape.head_width();
  const double tokens = real(shape.context);
  const double square = real(width) * real(inner);
  if (layer.integer("kv_rank") > 0) {
    // Multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434): no biases of keys, values.
    const auto rank = layer.integer("kv_rank");
    const bool rotated = layer.word("position") == "rope";
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
  if (layer.word("pattern") == "lsh") {  // keys are unit queries, hashed in rounds
    return {.parameters = 3 * width * inner + num_biases(layer, 2 * inner, width),
            .flops = tokens *
                     (6.0 * square +
                      real(inner) * real(layer.integer("rounds")) * real(layer.integer("buckets")) +
                      3.0 * real(inner)),
            .state_bytes = 2 * kFloat * inner * shape.kept()};
  }
  MixerCosts costs{.parameters = 2 * width * inner + 2 * width * keys +
                                 num_biases(layer, inner + 2 * keys, width),
                   .flops = 4.0 * tokens * (square + real(width) * real(keys)),
                   .state_bytes = keys > 0 ? 2 * kFloat * d * shape.kept_by_heads() : 0};
  add_convolution(layer.integer("conv"), inner + 2 * keys, shape.context, costs);
  return costs;
}

MixerCosts attention_costs(const Mechanism& layer, const AttentionShape& shape) {
  auto costs = attention_projections(layer, shape);
  const double inner = real(shape.inner());
  costs.flops += 2.0 * shape.pairs() * inner;  // weights times values
  if (layer.integer("value_exclusion") == 1) {
    costs.flops += real(shape.context) * (6.0 * inner + 2.0 * real(shape.heads));
  }
  if (layer.integer("soft_cap") > 0) costs.flops += 3.0 * shape.scores();
  if (layer.integer("value_embedding") == 1) {
    costs.parameters += shape.key_heads();
    costs.flops += 2.0 * real(shape.context) * real(shape.key_width());
  }
  add_components(layer, shape, costs);
  return costs;
}

void rules_of_scores(LayerRules& rules) {
  auto& layer = rules.layer();
  const bool rotates = layer.word("position") == "rope" || layer.word("position") == "path";
  if ((layer.word("similarity") == "additive" || layer.word("similarity") == "bilinear") &&
      rotates) {
    rules.set_default("position");
  }
  if (layer.word("pattern") == "lsh" &&
      layer.integer("buckets") >= 2) {  // queries and keys are one vector
    rules.clear({"similarity", "qk_norm", "kv_heads", "kv_rank", "maps", "conv", "position"});
  }
  if (layer.integer("kv_rank") > 0) {
    rules.clear(
        {"kv_heads", "head_width", "conv", "qk_norm", "maps", "rope_fraction", "value_embedding"});
  }
  // Wavelengths are scaled by 1, or all alike.
  if (layer.real("rope_factor") == 1.0) rules.clear({"rope_original"});
  if (layer.integer("rope_original") == 0) rules.clear({"rope_low", "rope_high"});
  if (layer.word("maps") == "difference") {
    rules.clear({"head_norm"});
    if (layer.word("position") == "cope" || layer.word("position") == "path")
      rules.set_default("position");
  }
}

/// Bits of all heads of keys; more than 53 have no bits.
std::int64_t all_groups(const Mechanism& layer, std::int64_t heads) {
  const auto groups = layer.integer("kv_heads") > 0 ? layer.integer("kv_heads") : heads;
  return (std::int64_t{1} << std::min<std::int64_t>(groups, 53)) - 1;
}

/// Whether the last query of a context sees all keys.
bool shows_all(const Mechanism& layer, std::int64_t context, std::int64_t heads) {
  if (layer.word("pattern") == "window") {
    return layer.integer("window") >= context || layer.integer("globals") >= context ||
           layer.integer("full_groups") == all_groups(layer, heads);
  }
  if (layer.word("pattern") == "strided")
    return layer.integer("stride") == 1 || layer.integer("stride") >= context;
  if (layer.word("pattern") == "lsh") return layer.integer("buckets") < 2;
  // Of ceil(L / b) blocks it sees its own, the one before, g first and r others.
  const auto blocks = (context - 1) / layer.integer("pattern_block") + 1;
  if (layer.word("pattern") == "indexed") return blocks - 1 <= layer.integer("chosen");
  return layer.word("pattern") == "bigbird" &&
         blocks - 2 <= layer.integer("globals") + layer.integer("random");
}

void apply_rules(LayerRules& rules) {
  rules_of_scores(rules);
  auto& layer = rules.layer();
  if (shows_all(layer, rules.architecture().context, rules.heads()))
    rules.set_default_by_sizes("pattern");
  if (layer.integer("kv_heads") == rules.heads()) layer.set("kv_heads", 0);
  const auto width = rules.architecture().width;
  if (width % rules.heads() == 0 && layer.integer("head_width") == width / rules.heads())
    layer.set("head_width", 0);
}

void require_valid(const Architecture& architecture, const Mechanism& layer) {
  const auto shown = [](std::int64_t number) { return std::to_string(number); };
  const auto shape = attention_shape(architecture, layer);
  const auto heads = shape.of_head > 0 ? shape.heads : require_heads(architecture, layer);
  const auto d = shape.head_width();
  require(shape.of_head == 0 || heads <= kLargestInner / d, "head_width", shown(d),
          "leave heads of 1000000 entries together");
  require(layer.integer("kv_heads") == 0 || heads % layer.integer("kv_heads") == 0, "kv_heads",
          shown(layer.integer("kv_heads")), "divide heads = " + shown(heads));
  if (const auto full = layer.integer("full_groups"); full > 0) {
    require(full <= all_groups(layer, heads), "full_groups", shown(full),
            "be at most " + shown(all_groups(layer, heads)) +
                ", a bit for each head of keys and values");
    require(layer.word("decay") == "none", "decay", layer.word("decay"),
            "be none beside full_groups");
    require(layer.word("similarity") != "bilinear", "similarity", "bilinear",
            "be another beside full_groups");
    require(layer.word("position") != "path", "position", "path", "be another beside full_groups");
    require(layer.integer("kv_rank") == 0, "kv_rank", shown(layer.integer("kv_rank")),
            "be 0 beside full_groups: a latent is of all heads");
  }
  if (layer.word("keys") == "shared") {
    for (const auto* gene : {"kv_rank", "conv", "value_exclusion", "value_embedding"}) {
      require(layer.integer(gene) == 0, gene, shown(layer.integer(gene)),
              "be 0 beside keys = shared");
    }
    require(layer.word("decay") == "none", "decay", layer.word("decay"),
            "be none beside keys = shared, which keeps nothing");
    require(layer.word("pattern") != "lsh", "pattern", "lsh",
            "be another beside keys = shared: its keys are queries");
    require(layer.word("position") != "path", "position", "path",
            "be another beside keys = shared, which keeps nothing");
  }
  require(layer.integer("value_embedding") == 0 || shape.key_width() <= shape.width, "head_width",
          shown(d), "leave the values within the D entries of value embeddings");
  require(layer.word("maps") != "difference" || d % 2 == 0, "maps", layer.word("maps"),
          "have heads of even width, not " + shown(d));
  if (layer.word("position") == "rope") {
    const bool halves = layer.word("maps") == "difference" || layer.integer("kv_rank") > 0;
    require_rotatable(layer, halves ? d / 2 : d,
                      layer.integer("kv_rank") > 0 ? 1.0 : layer.real("rope_fraction"));
  }
  require(layer.real("rope_low") < layer.real("rope_high"), "rope_high",
          shortest(layer.real("rope_high")),
          "be greater than rope_low = " + shortest(layer.real("rope_low")));
  require(layer.word("position") != "t5" ||
              layer.integer("t5_distance") > layer.integer("t5_buckets") / 2,
          "t5_distance", shown(layer.integer("t5_distance")),
          "be greater than half of t5_buckets = " + shown(layer.integer("t5_buckets")));
}

void set_sight(const Mechanism& layer, AttentionShape& shape) {
  if (layer.word("pattern") == "window") {
    shape.cap = layer.integer("window") + layer.integer("globals");
    for (std::int64_t g = 0; g < shape.key_heads(); ++g) shape.uncapped += shape.is_full(g) ? 1 : 0;
    shape.seen = real(shape.kept_by_heads()) / real(shape.key_heads());
  } else if (layer.word("pattern") == "strided") {
    shape.seen = real(layer.integer("stride") + (shape.context - 1) / layer.integer("stride") + 1);
  } else if (layer.word("pattern") == "bigbird") {
    shape.seen = real(layer.integer("pattern_block") *
                      (2 + layer.integer("globals") + layer.integer("random")));
  } else if (layer.word("pattern") == "indexed") {
    shape.seen = real(layer.integer("pattern_block") * (1 + layer.integer("chosen")));
  } else if (layer.word("pattern") == "lsh") {
    shape.seen = real(layer.integer("rounds") * layer.integer("pattern_block"));
    shape.repeats = true;
  }
}

/// Queries, keys, values and outputs.
double least_values(const Architecture& architecture, const Mechanism& layer) {
  if (layer.integer("kv_rank") > 0 || layer.word("pattern") == "lsh") return 0.0;
  const double heads =
      real(layer.integer("heads") > 0 ? layer.integer("heads") : architecture.heads);
  const double inner = layer.integer("head_width") > 0 ? heads * real(layer.integer("head_width"))
                                                       : real(architecture.width);
  const double keys = layer.word("keys") == "shared" ? 0.0
                      : layer.integer("kv_heads") > 0
                          ? inner * real(layer.integer("kv_heads")) / heads
                          : inner;
  return 2.0 * (inner + keys);
}

std::string shape_key(const Mechanism& layer) {
  // Beside pattern lsh there is no projection of keys; what indexed shows depends on queries.
  auto key = layer.word("maps") + layer.word("keys") +
             (layer.word("pattern") == "lsh" || layer.word("pattern") == "indexed"
                  ? "|" + layer.word("pattern") + "|"
                  : "|");
  for (const auto size :
       {layer.integer("heads"), layer.integer("kv_heads"), layer.integer("head_width"),
        layer.integer("kv_rank"), layer.integer("conv"), layer.integer("value_exclusion"),
        layer.integer("soft_cap"), layer.integer("smear"), layer.integer("value_embedding"),
        layer.integer("full_groups")}) {
    key += std::to_string(size) + "|";
  }
  // What changes keys or reads scores has no form in the kernel, and arrays of its own.
  const auto is_fused = [&](const char* gene) {
    return components().at(gene, layer.word(gene)).fused;
  };
  if (!is_fused("position") || !is_fused("decay")) {
    key +=
        layer.word("position") + "|" + layer.word("decay") + "|" + layer.word("similarity") + "|";
  }
  if (layer.integer("kv_rank") > 0 && layer.word("position") == "rope") key += "rope|";
  const auto forms = fused_forms(layer);
  for (const bool has : {forms.attention, forms.gating, forms.temperature}) key += has ? "1" : "0";
  return key;
}

/// Query heads still share keys, and rope still rotates as large a share of a head.
void shrink(Mechanism& layer, std::int64_t heads, std::int64_t small_width,
            std::int64_t small_heads) {
  layer.set("heads", 0);
  if (layer.integer("kv_heads") > 0) {
    layer.set("heads", 4);
    layer.set("kv_heads", heads / layer.integer("kv_heads") == 2 ? 2 : 1);
  }
  if (layer.word("position") != "rope") return;
  const auto width =
      layer.integer("head_width") > 0
          ? layer.integer("head_width")
          : small_width / (layer.integer("heads") > 0 ? layer.integer("heads") : small_heads);
  const auto pairs = std::round(layer.real("rope_fraction") * real(width) / 2.0);
  layer.set("rope_fraction", 2.0 * std::max(pairs, 1.0) / real(width));
}

bool is_even(std::int64_t number) { return number % 2 == 0; }
bool is_number_of_buckets(std::int64_t number) { return number == 1 || is_even(number); }

std::vector<Slot> sizes() {
  using Options = std::vector<std::string>;
  const auto pattern = [](Options options, Slot size) {
    return of_options("pattern", std::move(options), std::move(size));
  };
  const auto position = [](std::string option, Slot size) {
    return of_options("position", {std::move(option)}, std::move(size));
  };
  auto block = integer("pattern_block", "tokens of a block", 16, 1, 3);
  block.written =
      "block";  // under which name spaces choose how the parts of a model's blocks follow
  auto buckets = integer("buckets", "values of a hash", 4, 1, 4);
  buckets.allows = is_number_of_buckets;
  buckets.allowed = "1 or an even number <= 65536";
  auto classes = integer("t5_buckets", "classes of distances", 32, 2, 8);
  classes.allows = is_even;
  classes.allowed = "an even number in [2, 65536]";
  const Slot fraction{.name = "rope_fraction",
                      .default_value = 1.0,
                      .help = "share of a head's entries that are rotated",
                      .max = 1.0};
  const auto number = [](std::string name, std::string help, double standard, double least) {
    return Slot{
        .name = std::move(name), .default_value = standard, .help = std::move(help), .min = least};
  };
  Slot epsilon =
      number("qk_eps", "what the norm of queries and keys adds to the mean square", 1e-5, 1e-15);
  epsilon.max = 1.0;
  return {
      integer("head_width", "width of a head; 0: D / heads", 0, 0, 6),
      of_options("qk_norm", {"rms"}, epsilon),
      integer("kv_rank", "width of a latent that keys and values come from; 0: none", 0, 0, 4),
      pattern({"window"}, integer("window", "newest keys that a query sees, its own included", 64,
                                  1, 5, kUnbounded)),
      pattern({"window", "bigbird"},
              integer("globals", "first keys or blocks that it sees besides", 0, 0, 2)),
      pattern({"window"}, integer("full_groups",
                                  "bits of the heads of keys and values that see all keys, 1 the "
                                  "first, 3 the first two; 0: none",
                                  0, 0, 1, kUnbounded)),
      pattern({"strided"}, integer("stride", "of pattern strided", 16, 1, 3, kUnbounded)),
      pattern({"bigbird", "lsh", "indexed"}, block),
      pattern({"indexed"}, integer("chosen", "blocks that a query sees besides its own", 2, 0, 1)),
      pattern({"bigbird"}, integer("random", "random blocks", 1, 0, 1)),
      pattern({"lsh"}, buckets),
      pattern({"lsh"}, integer("rounds", "hashes of a key", 1, 1, 2)),
      position("rope", number("rope_base", "base of the wavelengths", 10000.0, 1.0)),
      position("rope", fraction),
      position("rope", number("rope_factor", "by which wavelengths are longer", 1.0, 1.0)),
      position("rope", integer("rope_original",
                               "L_0, tokens beside which: those above L_0 / rope_low alone, "
                               "and a part of it down to L_0 / rope_high; 0: all",
                               0, 0, 4, kUnbounded)),
      position("rope", number("rope_low", "of rope_original", 1.0, 0.0)),
      position("rope", number("rope_high", "of rope_original", 4.0, 0.0)),
      position("t5", classes),
      position("t5", integer("t5_distance", "from which all are in the last class", 128, 1, 16,
                             kUnbounded)),
      position("cope", integer("cope_positions", "positions with a vector", 64, 1, 4)),
      integer("value_exclusion", "1: a head's output loses its part along the query's own value", 0,
              0, 0, 1.0),
      integer("soft_cap", "size that no score exceeds, c tanh(s / c); 0: none", 0, 0, 0),
  };
}

NAS_REGISTER_MIXER_KIND(.key = "attn",
                        .genes = {{"heads", {}},
                                  {"kv_heads", {}},
                                  {"keys", {}},
                                  {"similarity", {}},
                                  {"qk_norm", {}},
                                  {"normalization", {}},
                                  {"temperature", {}},
                                  {"gating", {}},
                                  {"bias", {}},
                                  {"attention_dropout", {}},
                                  {"pattern", {}},
                                  {"position", {}},
                                  {"decay", {}},
                                  {"maps", {}},
                                  {"conv", {}},
                                  {"head_norm", {}},
                                  {"smear", {}},
                                  {"value_embedding", {}}},
                        .sizes = sizes(),
                        .scope = "attention",  // from before there were other mixers
                        .has_maps = true, .apply_rules = apply_rules,
                        .require_valid = require_valid, .set_sight = set_sight,
                        .costs = attention_costs, .least_values = least_values,
                        .shape_key = shape_key, .shrink = shrink);

}  // namespace

}  // namespace nas
