#pragma once

#include <cstdint>

#include "kernels/product.hpp"
#include "kernels/visibility.hpp"

namespace nas {
namespace NAS_PUBLIC kernels {

// Products of bfloat16 numbers (8 bits of significand), two of which lie side by side where a float32 would: pair p of a
// row is elements 2 p and 2 p + 1, the last one 0 where k is odd. Rounding is to the nearest, ties to even; numbers below
// 2^-126 are 0, factors, products that are added to nothing larger, and sums.
//
// A float32 is a sum of up to three such parts, x = x_0 + x_1 + x_2: x_0 nearest to x, x_1 to what is left, 2^-9 of x or
// less, and so on, ties of all but the last away from 0; a product of P parts is the sum of all x_i y_j, i + j < P. Errors of factors are at most 2^-9, 2^-17,
// 2^-25 of them for one, two and three parts. With several parts infinite numbers give NaN.

/// How pairs are multiplied. Results depend on `tiles` and `parts`.
struct PairForm {
  /// Sums of float32: of 16 pairs those of the first and of the second elements, each from 0 on with fused additions, then
  /// both, which are added to what there is; of several parts for each 16 pairs first those of y_2, then y_1, then y_0,
  /// and of each the largest i first. Else pair after pair, in a pair the second product first.
  bool tiles = false;
  int parts = 1;  ///< 1, in tiles 1 to 3
  bool at_once =
      false;  ///< by the processor's instructions for it; else by others, with the same bits
};

/// Whether the processor, and the system, let the kernels use its instructions for pairs, AVX512_BF16 or in tiles AMX, and
/// these tiles add up as documented. Other forms have the same bits, but on processors other than x86 for sums below 2^-126.
bool has_pair_products(bool tiles = false);

/// At once where the processor can.
inline PairForm pair_form(bool tiles = false, int parts = 1) {
  return {tiles, parts, has_pair_products(tiles)};
}

/// x (m, k), rows of which are `row` apart, as pairs (m, parts, (k + 1) / 2), of one part maybe in x's own memory.
void round_pairs(std::int64_t m, std::int64_t k, const float* x, std::int64_t row, float* pairs,
                 PairForm form);

/// Packs B (k, n), of contiguous rows or columns, in pairs of its rows: parts x packed_size((k + 1) / 2, n).
/// @param first, end  of contiguous rows those that are packed; `first` is even.
void pack_pairs(MatrixView<float> b, std::int64_t k, std::int64_t n, std::int64_t first,
                std::int64_t end, float* packed, PairForm form);

/// The same of rows that round_pairs() made, of one part, `row` pairs apart.
void pack_rounded(std::int64_t k, std::int64_t n, const float* x, std::int64_t row,
                  std::int64_t first, std::int64_t end, float* packed);

/// Parts of a packed left factor begin at multiples of it.
inline constexpr std::int64_t kPanelRows = 32;

/// A left factor in pairs: (m, parts, pairs), or a packed A'.
struct LeftPairs {
  const float* data = nullptr;
  std::int64_t of = 0;     ///< columns of the packed A'; 0: it is not packed
  std::int64_t first = 0;  ///< of them, a multiple of kPanelRows
  std::int64_t row = 0;    ///< of one part: from one row to the next; 0: pairs

  /// From row i on, a multiple of kPanelRows. @param size  parts x pairs.
  [[nodiscard]] LeftPairs at(std::int64_t i, std::int64_t size) const {
    if (of != 0) return {data, of, first + i};
    return {data + i * (row > 0 ? row : size), 0, 0, row};
  }
};

/// C (m, n) = initial + A B of packed B, as multiply().
void multiply_pairs(std::int64_t m, std::int64_t n, std::int64_t pairs, LeftPairs a,
                    const float* packed, Initial<float> initial, float* c, std::int64_t c_row,
                    PairForm form);

}  // namespace kernels
}  // namespace nas
