#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/words.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/slots.hpp"

namespace nas {

namespace {

constexpr auto kHalves = std::to_array<const char*>({"first", "second"});
constexpr auto kMixers = std::to_array<const char*>({"attn", "recurrent"});
/// What is of the whole layer, or of more than the heads of a half.
constexpr auto kOfWhole =
    std::to_array<const char*>({"heads", "head_width", "kv_rank", "keys", "bias", "conv", "smear",
                                "value_embedding", "update", "ffn", "ratio"});

bool gates_heads(const Mechanism& half) {
  const auto& gating = half.word("gating");
  return half.word("mixer") != "attn" || gating == "none" || gating == "elementwise_gate" ||
         gating == "headwise_gate";
}

std::string read_half(const Slot& gene, std::string_view text) {
  const auto where = gene.name + " = " + std::string(text) + ", ";
  Architecture one;
  try {
    one = parse_unchecked(text, one);
  } catch (const InputError& error) {
    const std::string what = error.what(), end = "': ";
    const auto behind = what.find(end);
    throw InputError(where +
                     (behind == std::string::npos ? what : what.substr(behind + end.size())));
  }
  const auto& half = one.stack.front();
  const std::string mixer = kMixers.at(gene.name == kHalves[0] ? 0 : 1);
  if (one.layers != 1 || one.genes != ModelGenes{} || half.word("mixer") != mixer) {
    throw InputError(where + "must be a layer of mixer " + mixer);
  }
  const auto standard = default_layer(Architecture{}, mixer);
  for (const auto* name : kOfWhole) {
    const auto& slot = nas::slot(name);
    if (half.at(slot) == standard.at(slot)) continue;
    throw InputError(where + "must leave " + slot.written +
                     " out: a half of mixer pair has what is of its heads alone");
  }
  if (!gates_heads(half)) {
    throw InputError(where +
                     "must have gating none, elementwise_gate or headwise_gate: a half of "
                     "mixer pair has what is of its heads alone");
  }
  return layer_text(half, Architecture{}, false);
}

/// The halves as layers of H / 2 heads, d wide each; the second has no bias behind its heads, since the first has that.
std::vector<Mechanism> halves(const Mechanism& layer, const AttentionShape& shape) {
  const auto& bias = layer.word("bias");
  const std::array<std::string, 2> biases{bias, bias == "bias" || bias == "qkv" ? "qkv" : "none"};
  std::vector<Mechanism> halves;
  for (std::size_t i = 0; i < kHalves.size(); ++i) {
    auto half = parse_unchecked(layer.word(kHalves.at(i)), Architecture{}).stack.front();
    half.set("heads", shape.heads / 2).set("head_width", shape.head_width());
    halves.push_back(half.set("bias", biases.at(i)));
  }
  return halves;
}

/// Keeps halves as texts, which leave out what is of the layer.
void set_halves(Mechanism& layer, std::vector<Mechanism> halves) {
  for (std::size_t i = 0; i < kHalves.size(); ++i) {
    auto& half = halves[i];
    for (const auto* gene : {"heads", "head_width", "bias"}) copy(slot(gene), Mechanism{}, half);
    layer.set(kHalves.at(i), layer_text(half, Architecture{}, false));
  }
}

const MixerKind& kind_of(const Mechanism& half) { return mixer_kinds().at(half.word("mixer")); }

AttentionShape whole_shape(const Architecture& architecture, const Mechanism& layer) {
  return {.width = architecture.width,
          .heads = layer.integer("heads") > 0 ? layer.integer("heads") : architecture.heads};
}

void apply_rules(LayerRules& rules) {
  const std::function<void(const Slot&)> ignore = [](const Slot&) {};
  auto of_heads = halves(rules.layer(), whole_shape(rules.architecture(), rules.layer()));
  for (auto& half : of_heads) apply_layer_rules(rules.architecture(), half, ignore);
  set_halves(rules.layer(), std::move(of_heads));
}

void require_valid(const Architecture& architecture, const Mechanism& layer) {
  const auto heads = require_heads(architecture, layer);
  require(heads % 2 == 0, "heads", std::to_string(heads),
          "be even: mixer pair has two kinds, of as many heads each");
  for (const auto* name : kHalves) (void)read_half(slot(name), layer.word(name));
  for (const auto& half : halves(layer, whole_shape(architecture, layer))) {
    try {
      require_valid_layer(architecture, half);
    } catch (const InputError& error) {
      throw InputError("half " + half.word("mixer") + ": " + error.what());
    }
  }
}

/// Those of both halves, of which one alone has the bias of the output.
MixerCosts pair_costs(const Mechanism& layer, const AttentionShape& shape) {
  const Architecture sized{.width = shape.width, .heads = shape.heads, .context = shape.context};
  MixerCosts sum;
  for (const auto& half : halves(layer, shape)) {
    const auto costs = kind_of(half).costs(half, attention_shape(sized, half));
    sum.parameters += costs.parameters;
    sum.flops += costs.flops;
    sum.state_bytes += costs.state_bytes;
  }
  return sum;
}

double least_values(const Architecture& architecture, const Mechanism& layer) {
  double sum = 0.0;
  for (const auto& half : halves(layer, whole_shape(architecture, layer))) {
    sum += kind_of(half).least_values(architecture, half);
  }
  return sum;
}

std::string shape_key(const Mechanism& layer) {
  auto key = std::to_string(layer.integer("heads")) + "|" + std::to_string(layer.integer("smear"));
  for (const auto& half : halves(layer, {})) key += "|" + kind_of(half).shape_key(half);
  return key;
}

void shrink(Mechanism& layer, std::int64_t heads, std::int64_t small_width,
            std::int64_t small_heads) {
  auto small = halves(layer, {});
  const bool shares = small.front().integer("kv_heads") > 0;
  layer.set("heads", std::int64_t{shares ? 4 : 0});
  for (auto& half : small) {
    half = with_small_sizes(std::move(half));
    half.set("head_width", std::int64_t{0}).set("kv_heads", std::int64_t{0});
    kind_of(half).shrink(half, heads / 2, small_width, shares ? 4 : small_heads);
  }
  small.front().set("kv_heads", std::int64_t{shares ? 1 : 0});
  set_halves(layer, std::move(small));
}

std::vector<Slot> sizes() {
  return {{.name = "first",
           .default_value = "attn",
           .help = "layer of attention that the first half of the heads follow"},
          {.name = "second",
           .default_value = "recurrent",
           .help = "recurrent layer that the other half of the heads follow"}};
}

NAS_REGISTER_MIXER_KIND(.key = "pair", .genes = {{"heads", {}}, {"bias", {}}, {"smear", {}}},
                        .sizes = sizes(), .apply_rules = apply_rules,
                        .require_valid = require_valid, .costs = pair_costs,
                        .least_values = least_values, .shape_key = shape_key, .shrink = shrink,
                        .read_text = read_half, .parts = halves);

}  // namespace

}  // namespace nas
