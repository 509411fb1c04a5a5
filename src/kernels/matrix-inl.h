// Small matrix products, once per instruction set.

#if defined(NAS_KERNELS_MATRIX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NAS_KERNELS_MATRIX_INL_H_
#undef NAS_KERNELS_MATRIX_INL_H_
#else
#define NAS_KERNELS_MATRIX_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "kernels/product.hpp"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

/// Rows of a tile of two vectors: as many sums as the registers hold, 32 of them with AVX-512, 16
/// otherwise, beside a row of B and a factor.
template <class Real>
inline constexpr std::size_t kTileRows = sizeof(Vector<Wide<Real>>) == 64 ? 8 : 6;

/// sum + a b.
struct Numbers {
  template <class D>
  static HWY_INLINE Vector<D> add(D /*d*/, Vector<D> a, Vector<D> b, Vector<D> sum) {
    return hn::MulAdd(a, b, sum);
  }
};

/// kRows x (kVectors vectors) of C = initial + A B, held in registers over all of k.
template <std::size_t kRows, std::size_t kVectors, class Op, class Real>
HWY_INLINE void multiply_tile(std::int64_t k, MatrixView<Real> a, const Real* HWY_RESTRICT b,
                              std::int64_t b_row, Initial<Real> initial, Real* c,
                              std::int64_t c_row) {
  const Wide<Real> d;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  constexpr std::int64_t kAhead = 12;
  Vector<Wide<Real>> sums[kRows][kVectors];
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t j = 0; j < kVectors; ++j) {
      sums[i][j] = initial.data == nullptr
                       ? hn::Zero(d)
                       : hn::LoadU(d, initial.data + static_cast<std::int64_t>(i) * initial.row +
                                          j * kLanes);
    }
  }
  for (std::int64_t p = 0; p < k; ++p) {
    // Of a transposed factor each p is a cache line of its own, which no processor foresees.
    if (a.column != 1) hwy::Prefetch(a.data + (p + kAhead) * a.column);
    Vector<Wide<Real>> row[kVectors];
    for (std::size_t j = 0; j < kVectors; ++j) row[j] = hn::LoadU(d, b + p * b_row + j * kLanes);
    for (std::size_t i = 0; i < kRows; ++i) {
      const auto factor = hn::Set(d, a.data[static_cast<std::int64_t>(i) * a.row + p * a.column]);
      for (std::size_t j = 0; j < kVectors; ++j) {
        sums[i][j] = Op::add(d, factor, row[j], sums[i][j]);
      }
    }
  }
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t j = 0; j < kVectors; ++j) {
      hn::StoreU(sums[i][j], d, c + static_cast<std::int64_t>(i) * c_row + j * kLanes);
    }
  }
}

template <std::size_t kVectors, class Op = Numbers, class Real>
HWY_NOINLINE void multiply_columns(std::int64_t m, std::int64_t k, MatrixView<Real> a,
                                   const Real* HWY_RESTRICT b, std::int64_t b_row,
                                   Initial<Real> initial, Real* c, std::int64_t c_row) {
  constexpr std::size_t kRows = kTileRows<Real>;
  std::int64_t i = 0;
  constexpr auto kStep = static_cast<std::int64_t>(kRows);
  for (; i + kStep <= m; i += kStep) {
    multiply_tile<kRows, kVectors, Op>(k, a.at(i, 0), b, b_row, initial.at(i, 0), c + i * c_row,
                                       c_row);
  }
  for (; i < m; ++i) {
    multiply_tile<1, kVectors, Op>(k, a.at(i, 0), b, b_row, initial.at(i, 0), c + i * c_row, c_row);
  }
}

/// C (m, n) = initial + A (m, k) B (k, n), rows of B and C contiguous; n is a multiple of the
/// vector.
template <class Real>
void multiply_rows(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<Real> a,
                   const Real* b, std::int64_t b_row, Initial<Real> initial, Real* c,
                   std::int64_t c_row) {
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(Wide<Real>()));
  std::int64_t j = 0;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
    multiply_columns<2>(m, k, a, b + j, b_row, initial.at(0, j), c + j, c_row);
  }
  if (j < n) multiply_columns<1>(m, k, a, b + j, b_row, initial.at(0, j), c + j, c_row);
}

/// Writes a matrix of which columns are contiguous by rows: from[p + j * column] to to[p * row + j].
template <class Real>
HWY_NOINLINE void transpose(std::int64_t depth, std::int64_t width, const Real* HWY_RESTRICT from,
                            std::int64_t column, Real* HWY_RESTRICT to, std::int64_t row) {
  std::int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  if constexpr (sizeof(Real) == sizeof(float)) {
    const hn::FixedTag<Real, 4> d;  // four by four
    for (; j + 4 <= width; j += 4) {
      const Real* HWY_RESTRICT of = from + j * column;
      std::int64_t p = 0;
      for (; p + 4 <= depth; p += 4) {
        const auto a = hn::LoadU(d, of + p), b = hn::LoadU(d, of + column + p);
        const auto e = hn::LoadU(d, of + 2 * column + p), f = hn::LoadU(d, of + 3 * column + p);
        const auto ab = hn::InterleaveLower(d, a, b), ef = hn::InterleaveLower(d, e, f);
        const auto upper_ab = hn::InterleaveUpper(d, a, b), upper_ef = hn::InterleaveUpper(d, e, f);
        hn::StoreU(hn::ConcatLowerLower(d, ef, ab), d, to + p * row + j);
        hn::StoreU(hn::ConcatUpperUpper(d, ef, ab), d, to + (p + 1) * row + j);
        hn::StoreU(hn::ConcatLowerLower(d, upper_ef, upper_ab), d, to + (p + 2) * row + j);
        hn::StoreU(hn::ConcatUpperUpper(d, upper_ef, upper_ab), d, to + (p + 3) * row + j);
      }
      for (; p < depth; ++p) {
        for (std::int64_t i = 0; i < 4; ++i) to[p * row + j + i] = of[p + i * column];
      }
    }
  }
#endif
  for (; j < width; ++j) {
    for (std::int64_t p = 0; p < depth; ++p) to[p * row + j] = from[p + j * column];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#endif  // NAS_KERNELS_MATRIX_INL_H_
