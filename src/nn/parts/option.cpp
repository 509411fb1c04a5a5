#include "core/define_registry.hpp"
#include "nn/parts/gate.hpp"
#include "nn/parts/head_maps.hpp"
#include "nn/parts/vector_norm.hpp"

namespace nas::nn {

NAS_DEFINE_REGISTRY(OptionRegistry<Gating>, gatings, "gating")
NAS_DEFINE_REGISTRY(OptionRegistry<HeadMaps>, head_maps, "maps")
NAS_DEFINE_REGISTRY(OptionRegistry<VectorNorm>, vector_norms, "vector norm")

}  // namespace nas::nn
