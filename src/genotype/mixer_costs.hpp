#pragma once

#include <cstdint>

#include "genotype/architecture.hpp"

namespace nas {

/// What one layer's mixer takes.
struct MixerCosts {
  std::int64_t parameters = 0;
  double flops = 0.0;            ///< of one sequence of T tokens
  std::int64_t state_bytes = 0;  ///< after T tokens
};

/// @param shape  of the layer, T = shape.context.
/// @throws InputError if a component of the layer has no description.
MixerCosts mixer_costs(const Mechanism& layer, const AttentionShape& shape);

}  // namespace nas
