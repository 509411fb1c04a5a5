#include "convert/recurrent.hpp"

#include <cmath>

#include "core/error.hpp"
#include "core/setting_forms.hpp"

namespace nas {

namespace {

constexpr double kKept = 0.99;      // alpha
constexpr double kGateLogit = 2.0;  // where a gate has room to open and close

Mechanism layer_of(const Mechanism& before,
                   const std::vector<std::pair<std::string, SlotValue>>& genes) {
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

}  // namespace

LayerBlock recurrent_block(std::vector<std::pair<std::string, SlotValue>> genes,
                           const Parameters& sizes) {
  const bool gated = sizes.contains("gate") && sizes.get<std::int64_t>("gate") == 1;
  if (gated) genes.emplace_back("gating", "sigmoid_gate");
  if (sizes.contains("conv")) genes.emplace_back("conv", sizes.get<std::int64_t>("conv"));
  return {.layer = [genes = std::move(genes)](
                       const Mechanism& before) { return layer_of(before, genes); },
          .weight = [gated](const BlockParameter& of) { return weight_of(of, gated); }};
}

Setting block_taps() {
  return setting::integer("conv", 4, 0, 8, "taps of short convolutions; 0: none");
}

Setting block_gate() { return setting::integer("gate", 1, 0, 1, "1: gates its outputs"); }

}  // namespace nas
