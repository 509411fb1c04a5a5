#include "nn/parts/gate.hpp"
#include "nn/parts/head_maps.hpp"
#include "nn/parts/vector_norm.hpp"

namespace nas::nn {

OptionRegistry<Gating>& gatings() {
  static OptionRegistry<Gating> registry("gating");
  return registry;
}

OptionRegistry<HeadMaps>& head_maps() {
  static OptionRegistry<HeadMaps> registry("maps");
  return registry;
}

OptionRegistry<VectorNorm>& vector_norms() {
  static OptionRegistry<VectorNorm> registry("vector norm");
  return registry;
}

}  // namespace nas::nn
