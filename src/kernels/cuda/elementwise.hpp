#pragma once

#include <cstdint>

#include "kernels/cuda/dropout.hpp"
#include "kernels/cuda/elements.hpp"
#include "kernels/cuda/stream.hpp"
#include "kernels/elementwise.hpp"

namespace nas::cuda {

using kernels::Map;

/// out = map(x + bias, y), by element, of n rows of D elements per model, and the sums of `out`
/// over the rows of a model: the bias's gradient where `out` is x's.
template <class Real>
struct RowMap {
  Map map = Map::drop;
  std::int64_t models = 0;
  std::int64_t rows = 0;       ///< n, of a model
  std::int64_t width = 0;      ///< D
  Elements<Real> x{};          ///< (R, n, D)
  Elements<Real> y{};          ///< (R, n, D), of a map that has one
  const Real* bias = nullptr;  ///< (R, D); null: 0
  Elements<Real> out{};        ///< (R, n, D); may be x or y; null: it is not written
  Real* sums = nullptr;        ///< (R, D), written; null: they are not wanted
  Real* scratch = nullptr;     ///< map_scratch_size() numbers, for sums
  Dropout dropout{};
};

template <class Real>
std::int64_t map_scratch_size(const RowMap<Real>& rows);

/// One launch, and one more for sums: those of 32 rows, then the chunks in order.
///
/// @throws std::invalid_argument for SwiGLU, which has no kernel here.
template <class Real>
void map_rows(const RowMap<Real>& rows, Stream stream);

}  // namespace nas::cuda
