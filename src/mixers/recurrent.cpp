#include "genotype/planned.hpp"
#include "nn/recurrent_layer.hpp"

namespace nas::nn {

namespace {

NAS_REGISTER_MIXER(RecurrentLayer, .key = "recurrent",
                   .summary =
                       "heads with a state that takes up keys and values token by token: "
                       "linear attention, RetNet, GLA, delta rules");

/// Options that it alone has, and computes itself.
[[maybe_unused]] const bool kGatesRegistered =
    components().add(described("gating", "swish_gate")) &&
    components().add(described("gating", "sigmoid_gate"));
[[maybe_unused]] const bool kDecaysRegistered = components().add(described("decay", "fixed")) &&
                                                components().add(described("decay", "channel"));

}  // namespace

}  // namespace nas::nn
