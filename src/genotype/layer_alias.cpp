#include "genotype/layer_alias.hpp"

namespace nas {

const std::vector<Alias>& aliases() {
  static const std::vector<Alias> kAliases{
      {"linear", "recurrent", {{"feature", "elu1"}}},
      {"performer",
       "recurrent",
       {{"feature", "favor"}},
       "redraws its random features, and subtracts the maximum over all keys, later ones included"},
      {"retnet",
       "recurrent",
       {{"gating", "swish_gate"}, {"position", "rope"}, {"decay", "fixed"}},
       "has values twice as wide"},
      {"ssd",
       "recurrent",
       {{"decay", "scalar"}},
       "multiplies values by the step of the decay, and has a skip, a gate and a convolution"},
      {"gla",
       "recurrent",
       {{"gating", "swish_gate"}, {"decay", "channel"}},
       "has keys half as wide as values"},
      {"deltanet", "recurrent", {{"conv", "4"}, {"update", "delta"}}},
      {"gdn",
       "recurrent",
       {{"gating", "swish_gate"}, {"decay", "scalar"}, {"conv", "4"}, {"update", "delta"}},
       "has values twice as wide, and draws e^A of the decay from U(0, 16)"},
      {"gdn2",
       "recurrent",
       {{"gating", "sigmoid_gate"}, {"decay", "channel"}, {"conv", "4"}, {"update", "delta2"}},
       "has a gate and decays of the rank of a head, decay_form softplus; write gate_rank, "
       "decay_rank and decay_form for these"},
      {"kda",
       "recurrent",
       {{"gating", "swish_gate"}, {"decay", "channel"}, {"conv", "4"}, {"update", "delta"}},
       "gates by a sigmoid, and has a gate and decays of the rank of a head, decay_form softplus; "
       "write gating, gate_rank, decay_rank and decay_form for these"},
      {"swa", "attn", {{"pattern", "window"}}},
      {"mqa", "attn", {{"kv_heads", "1"}}},
  };
  return kAliases;
}

}  // namespace nas
