#pragma once

#include <cstdint>

#include "cuda/dropout.hpp"
#include "cuda/stream.hpp"
#include "kernels/elementwise.hpp"

namespace nas::cuda {

using kernels::Map;

/// A map of tensors of `size` elements per model. `out` may be one of the others.
///
/// @throws std::invalid_argument for SwiGLU, which has no kernel here.
template <class Real>
void map_elements(Map map, const kernels::MapInputs<Real>& in, Real* out, std::int64_t models,
                  std::int64_t size, const Dropout& dropout, Stream stream);

}  // namespace nas::cuda
