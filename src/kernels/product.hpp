#pragma once

#include <cstdint>

#include "kernels/visibility.hpp"

namespace nas {
namespace NAS_PUBLIC kernels {

// Products C (m, n) = initial + A (m, k) B (k, n) of a right factor that is packed once and used
// often. A general library packs both factors in every call, which costs a tenth of a training
// step: the embedding matrix is a factor of 16 products per step, of the same values.

/// Element (i, j) lies at data[i * row + j * column].
template <class Real>
struct MatrixView {
  const Real* data = nullptr;
  std::int64_t row = 0;
  std::int64_t column = 1;

  /// The part from element (i, j) on.
  [[nodiscard]] MatrixView at(std::int64_t i, std::int64_t j) const {
    return {data + i * row + j * column, row, column};
  }
};

/// Columns of C at a time, so that they and their columns of B stay in the second-level cache for all
/// rows: B is packed by as many where it is used once.
inline constexpr std::int64_t kColumnBlock = 256;

/// @return elements of a packed (k, n) matrix.
std::int64_t packed_size(std::int64_t k, std::int64_t n);

/// Packs B (k, n).
template <class Real>
void pack(MatrixView<Real> b, std::int64_t k, std::int64_t n, Real* packed);

/// What a product is added to: element (i, j) at data[i * row + j], one row for all at row = 0, C
/// itself; null: zeros.
template <class Real>
struct Initial {
  const Real* data = nullptr;
  std::int64_t row = 0;

  [[nodiscard]] Initial at(std::int64_t i, std::int64_t j) const {
    return {data == nullptr ? nullptr : data + i * row + j, row};
  }
};

/// @param packed  B, packed.   @param c  row i begins at c + i * c_row; only n elements of it are
/// touched.
template <class Real>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<Real> a,
              const Real* packed, Initial<Real> initial, Real* c, std::int64_t c_row);

}  // namespace kernels
}  // namespace nas
