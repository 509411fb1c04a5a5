#include "nn/recurrent_layer.hpp"

namespace nas::nn {

namespace {

NAS_REGISTER_MIXER(RecurrentLayer, .key = "recurrent",
                   .summary =
                       "heads with a state that takes up keys and values token by token: "
                       "linear attention, RetNet, GLA, delta rules");

}  // namespace

}  // namespace nas::nn
