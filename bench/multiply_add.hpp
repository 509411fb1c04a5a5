#pragma once

#include <cstdint>

namespace nas {

/// Multiplies and adds whole vectors of floats in registers, by the instruction set that the kernels use: what the
/// processor can do at most, whatever the BLAS does. Independent chains hide the latency.
///
/// @param rounds  of twelve vectors each.
/// @return        floating-point operations done, two for each element and round.
double multiply_add(std::int64_t rounds);

}  // namespace nas
