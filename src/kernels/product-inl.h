// Products of a packed right factor, once per instruction set.

#if defined(NAS_KERNELS_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NAS_KERNELS_PRODUCT_INL_H_
#undef NAS_KERNELS_PRODUCT_INL_H_
#else
#define NAS_KERNELS_PRODUCT_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <hwy/highway.h>

#include "kernels/matrix-inl.h"
#include "kernels/product.hpp"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

// B is packed in blocks of kDepth rows, a block in panels of the width of a tile, a panel row by
// row: what the innermost loop reads of B lies side by side and stays in the first-level cache.
constexpr std::int64_t kDepth = 128;
// Rows of C at a time, so that they and their rows of A stay in the second-level cache.
constexpr std::int64_t kRowBlock = 128;

template <class Real>
inline constexpr auto kPanel = static_cast<std::int64_t>(2 * hn::MaxLanes(Wide<Real>()));

template <class Real>
constexpr std::int64_t panels(std::int64_t n) {
  return (n + kPanel<Real> - 1) / kPanel<Real>;
}

/// Some rows of C, one panel wide, over one block of k.
template <class Op, class Real>
void multiply_panel(std::int64_t m, std::int64_t width, std::int64_t depth, MatrixView<Real> a,
                    const Real* HWY_RESTRICT panel, Initial<Real> initial, Real* c,
                    std::int64_t c_row) {
  if (width == kPanel<Real>) {
    multiply_columns<2, Op>(m, depth, a, panel, kPanel<Real>, initial, c, c_row);
    return;
  }
  // The last columns: C has no room for a whole tile.
  HWY_ALIGN Real tile[kRowBlock * kPanel<Real>] = {};
  if (initial.data != nullptr) {
    for (std::int64_t i = 0; i < m; ++i) {
      std::copy_n(initial.data + i * initial.row, width, tile + i * kPanel<Real>);
    }
  }
  multiply_columns<2, Op>(m, depth, a, panel, kPanel<Real>, Initial<Real>{tile, kPanel<Real>}, tile,
                          kPanel<Real>);
  for (std::int64_t i = 0; i < m; ++i) {
    std::copy_n(tile + i * kPanel<Real>, width, c + i * c_row);
  }
}

/// A left factor of which the transposed one is packed.
struct PackedLeft {
  const float* data;
  std::int64_t columns;  ///< in memory
  std::int64_t first;    ///< row, a multiple of the panel
};

template <class Op, class Real, class Left>
void multiply_by(std::int64_t m, std::int64_t n, std::int64_t k, Left a, const Real* packed,
                 Initial<Real> initial, Real* c, std::int64_t c_row) {
  constexpr bool kPacked = std::is_same_v<Left, PackedLeft>;
  std::int64_t step = kColumnBlock;
  if constexpr (!kPacked) step = a.column == 1 ? kColumnBlock : n;
  constexpr std::int64_t kRows = kPacked ? kPanel<Real> : kRowBlock;
  for (std::int64_t left = 0; left < n; left += step) {
    for (std::int64_t top = 0; top < m; top += kRowBlock) {
      const std::int64_t bottom = std::min(m, top + kRowBlock);
      for (std::int64_t begin = 0; begin < k; begin += kDepth) {
        const std::int64_t depth = std::min(kDepth, k - begin);
        const Real* block = packed + begin * panels<Real>(n) * kPanel<Real>;
        for (std::int64_t first = left; first < std::min(n, left + step); first += kPanel<Real>) {
          const std::int64_t width = std::min(kPanel<Real>, n - first);
          for (std::int64_t i = top; i < bottom; i += kRows) {
            MatrixView<Real> rows;
            if constexpr (kPacked) {
              rows = {a.data + begin * a.columns + (a.first + i) * depth, 1, kPanel<Real>};
            } else {
              rows = a.at(i, begin);
            }
            Real* out = c + i * c_row + first;
            multiply_panel<Op>(
                std::min(kRows, bottom - i), width, depth, rows, block + first * depth,
                begin == 0 ? initial.at(i, first) : Initial<Real>{out, c_row}, out, c_row);
          }
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#endif  // NAS_KERNELS_PRODUCT_INL_H_
