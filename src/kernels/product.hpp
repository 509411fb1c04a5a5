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

// Products whose factors are rounded to bfloat16 (8 bits of significand, to the nearest, ties to even), two of which lie
// side by side where a float32 would: pair p of a row is elements 2 p and 2 p + 1, the last one 0 where k is odd. A sum is
// float32, pair after pair, in a pair the second product first; numbers below 2^-126 are 0, both factors and sums.

/// Whether the processor has instructions for such pairs (AVX512_BF16), and the kernels use them: what `at_once` may be.
/// Without them bits are the same, but on processors other than x86 for sums below 2^-126.
bool has_pair_products();

/// x (m, k), rows of which are `row` apart, as pairs (m, (k + 1) / 2).
void round_pairs(std::int64_t m, std::int64_t k, const float* x, std::int64_t row, float* pairs,
                 bool at_once = has_pair_products());

/// Packs B (k, n), of contiguous rows or columns, in pairs of its rows: packed_size((k + 1) / 2, n).
/// @param first, end  of contiguous rows those that are packed; `first` is even.
void pack_pairs(MatrixView<float> b, std::int64_t k, std::int64_t n, std::int64_t first,
                std::int64_t end, float* packed, bool at_once = has_pair_products());

/// Parts of a packed left factor begin at multiples of it.
inline constexpr std::int64_t kPanelRows = 32;

/// A left factor in pairs: (m, pairs), or a packed A'.
struct LeftPairs {
  const float* data = nullptr;
  std::int64_t of = 0;     ///< columns of the packed A'; 0: it is not packed
  std::int64_t first = 0;  ///< of them, a multiple of kPanelRows

  /// From row i on, a multiple of kPanelRows.
  [[nodiscard]] LeftPairs at(std::int64_t i, std::int64_t pairs) const {
    return of == 0 ? LeftPairs{data + i * pairs} : LeftPairs{data, of, first + i};
  }
};

/// C (m, n) = initial + A B of packed B, as multiply().
void multiply_pairs(std::int64_t m, std::int64_t n, std::int64_t pairs, LeftPairs a,
                    const float* packed, Initial<float> initial, float* c, std::int64_t c_row,
                    bool at_once = has_pair_products());

}  // namespace kernels
}  // namespace nas
