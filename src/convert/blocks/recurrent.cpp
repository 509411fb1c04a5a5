// Recurrent layers (nn/recurrent_layer.hpp) in the place of attention, which begin with what the teacher has: W_q, W_v and
// W_o copied, those of keys and values repeated for each of H heads, rotated where the layer was and the update lets it.
// What decays does by alpha = 0.99, whatever the token; what erases or writes, by 1/2; convolutions pass on the newest
// token; gate times norm of outputs is 1; features are identities. Norms of queries and keys are not taken over. See HALO,
// arXiv:2601.22156.

#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert/block.hpp"
#include "core/error.hpp"
#include "core/setting_forms.hpp"

namespace nas {
namespace {

using Genes = std::vector<std::pair<std::string, SlotValue>>;

constexpr double kKept = 0.99;      // alpha
constexpr double kGateLogit = 2.0;  // where a gate has room to open and close

Mechanism layer_of(const Mechanism& before, const Genes& genes) {
  if (before.integer("kv_rank") > 0 || before.word("maps") != "single" ||
      before.word("pattern") == "lsh")
    throw InputError("the layer must have queries, keys and values of its own, one map a head");
  Mechanism layer;
  layer.set("mixer", "recurrent");
  for (const auto* kept : {"heads", "head_width", "bias", "ffn", "ratio"})
    layer.set(kept, before.at(slot(kept)));
  if (before.word("position") == "rope") {
    layer.set("position", "rope");
    layer.set("rope_base", before.real("rope_base"));
  }
  for (const auto& [gene, value] : genes) layer.set(gene, value);
  return layer;
}

torch::Tensor weight_of(const BlockParameter& of, bool gated) {
  constexpr std::string_view kScope = "recurrent";
  if (!of.name.starts_with(kScope)) return of.own(of.name);  // feed-forward layer
  const auto name = of.name.substr(kScope.size());
  const auto is = [&](std::string_view part) { return name.starts_with(part); };
  const auto all = [&](double value) { return at::full(of.sizes, value); };
  if (is(".decay_step_bias")) return all(std::log(1.0 / kKept - 1.0));
  if (is(".head_norm")) return all(gated ? 1.0 + std::exp(-kGateLogit) : 1.0);
  if (is(".head_gate.bias") || is(".near_logit")) return all(kGateLogit);
  for (const auto* zero : {".decay.", ".decay_up.", ".decay_log_rate", ".beta.", ".erase.",
                           ".write.", ".head_gate.weight"}) {
    if (is(zero)) return all(0.0);
  }
  if (is(".decay_down.") || is(".q_map.") || is(".k_map.")) return {};
  if (name.find("_conv.") != std::string::npos) {
    auto taps = all(0.0);
    taps.select(-1, -1).fill_(1.0);
    return taps;
  }
  const auto own = of.own("attention" + name);
  if (!is(".k_proj") && !is(".v_proj")) return own;
  const auto groups = of.shape.key_heads();
  auto heads = own.unflatten(0, {groups, of.shape.head_width()});
  return heads.repeat_interleave(of.shape.heads / groups, 0).flatten(0, 1);
}

/// @param genes  in which it differs from linear attention.
bool add(const char* key, const char* summary, std::vector<Setting> settings, const Genes& genes) {
  const auto made = [genes](const Parameters& sizes) -> LayerBlock {
    const bool gated = sizes.contains("gate") && sizes.get<std::int64_t>("gate") == 1;
    auto all = genes;
    if (gated) all.emplace_back("gating", "sigmoid_gate");
    for (const auto* gene : {"conv", "near"}) {
      if (sizes.contains(gene)) all.emplace_back(gene, sizes.get<std::int64_t>(gene));
    }
    if (sizes.contains("feature")) all.emplace_back("feature", sizes.get<std::string>("feature"));
    return {.layer = [all](const Mechanism& before) { return layer_of(before, all); },
            .weight = [gated](const BlockParameter& of) { return weight_of(of, gated); }};
  };
  return layer_blocks().add(
      {.key = key, .summary = summary, .settings = std::move(settings), .file = __FILE__}, made);
}

[[maybe_unused]] const bool kAdded = [] {
  const auto taps = setting::integer("conv", 4, 0, 8, "taps of short convolutions; 0: none");
  const auto gate = setting::integer("gate", 1, 0, 1, "1: gates its outputs");
  const auto feature =
      setting::choice("feature", "hedgehog", {"hedgehog", "taylor2"}, "of queries and keys");
  add("lin",
      "linear attention by features of queries and keys (Zhang et al. 2024, arXiv:2402.04347)",
      {feature}, {});
  add("near",
      "softmax over the last tokens and linear attention to those before, in one sum (Zhang et al. "
      "2024, LoLCATs, arXiv:2410.10254)",
      {feature, setting::integer("near", 64, 1, 1e9, "last tokens, which softmax sees")}, {});
  add("ret",
      "a state that decays at a fixed rate in each head (RetNet, Sun et al. 2023, "
      "arXiv:2307.08621)",
      {gate}, {{"decay", "fixed"}});
  add("ssd", "a state that decays as each token says (Mamba-2, Dao and Gu 2024, arXiv:2405.21060)",
      {gate}, {{"decay", "scalar"}});
  add("gdn",
      "a state that decays and erases what it replaces (Gated DeltaNet, Yang et al. 2024, "
      "arXiv:2412.06464)",
      {taps, gate}, {{"update", "delta"}, {"decay", "scalar"}});
  add("kda",
      "a state that erases, each channel of which decays (Kimi Delta Attention, arXiv:2510.26692)",
      {taps, gate}, {{"update", "delta"}, {"decay", "channel"}, {"decay_form", "softplus"}});
  add("gdn2",
      "the same with gates of what is erased and written (Gated DeltaNet-2, arXiv:2605.22791)",
      {taps, gate}, {{"update", "delta2"}, {"decay", "channel"}, {"decay_form", "softplus"}});
  return true;
}();

}  // namespace
}  // namespace nas
