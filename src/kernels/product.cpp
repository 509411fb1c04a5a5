#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product.cpp"
#include <algorithm>

#include <hwy/foreach_target.h>

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

template <class Real>
void pack_all(MatrixView<Real> b, std::int64_t k, std::int64_t n, Real* HWY_RESTRICT packed) {
  const std::int64_t columns = panels<Real>(n) * kPanel<Real>;
  // A panel's rows of a transposed factor follow each other in memory.
  for (std::int64_t first = 0; first < n; first += kPanel<Real>) {
    const std::int64_t width = std::min(kPanel<Real>, n - first);
    for (std::int64_t begin = 0; begin < k; begin += kDepth) {
      const std::int64_t depth = std::min(kDepth, k - begin);
      Real* HWY_RESTRICT panel = packed + begin * columns + first * depth;
      const Real* from = b.data + begin * b.row + first * b.column;
      if (b.column == 1) {
        for (std::int64_t p = 0; p < depth; ++p) {
          std::copy_n(from + p * b.row, width, panel + p * kPanel<Real>);
        }
      } else if (b.row == 1) {
        transpose(depth, width, from, b.column, panel, kPanel<Real>);
      } else {
        for (std::int64_t j = 0; j < width; ++j) {
          for (std::int64_t p = 0; p < depth; ++p) {
            panel[p * kPanel<Real> + j] = from[p * b.row + j * b.column];
          }
        }
      }
      if (width < kPanel<Real>) {
        for (std::int64_t p = 0; p < depth; ++p) {
          std::fill_n(panel + p * kPanel<Real> + width, kPanel<Real> - width, Real{0});
        }
      }
    }
  }
}

/// Some rows of C, one panel wide, over one block of k.
template <class Real>
void multiply_panel(std::int64_t m, std::int64_t width, std::int64_t depth, MatrixView<Real> a,
                    const Real* HWY_RESTRICT panel, Initial<Real> initial, Real* c,
                    std::int64_t c_row) {
  if (width == kPanel<Real>) {
    multiply_columns<2>(m, depth, a, panel, kPanel<Real>, initial, c, c_row);
    return;
  }
  // The last columns: C has no room for a whole tile.
  HWY_ALIGN Real tile[kRowBlock * kPanel<Real>] = {};
  if (initial.data != nullptr) {
    for (std::int64_t i = 0; i < m; ++i) {
      std::copy_n(initial.data + i * initial.row, width, tile + i * kPanel<Real>);
    }
  }
  multiply_columns<2>(m, depth, a, panel, kPanel<Real>, Initial<Real>{tile, kPanel<Real>}, tile,
                      kPanel<Real>);
  for (std::int64_t i = 0; i < m; ++i) {
    std::copy_n(tile + i * kPanel<Real>, width, c + i * c_row);
  }
}

template <class Real>
void multiply_all(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<Real> a,
                  const Real* packed, Initial<Real> initial, Real* c, std::int64_t c_row) {
  const std::int64_t step = a.column == 1 ? kColumnBlock : n;
  for (std::int64_t left = 0; left < n; left += step) {
    for (std::int64_t top = 0; top < m; top += kRowBlock) {
      const std::int64_t rows = std::min(kRowBlock, m - top);
      for (std::int64_t begin = 0; begin < k; begin += kDepth) {
        const std::int64_t depth = std::min(kDepth, k - begin);
        const Real* block = packed + begin * panels<Real>(n) * kPanel<Real>;
        for (std::int64_t first = left; first < std::min(n, left + step); first += kPanel<Real>) {
          const std::int64_t width = std::min(kPanel<Real>, n - first);
          Real* out = c + top * c_row + first;
          multiply_panel(rows, width, depth, a.at(top, begin), block + first * depth,
                         begin == 0 ? initial.at(top, first) : Initial<Real>{out, c_row}, out,
                         c_row);
        }
      }
    }
  }
}

NAS_KERNEL(packing, pack_all)
NAS_KERNEL(multiplication, multiply_all)

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nas::kernels {

HWY_EXPORT(packing);
HWY_EXPORT(multiplication);

std::int64_t packed_size(std::int64_t k, std::int64_t n) {
  // The widest panel: two vectors of 64 bytes.
  constexpr std::int64_t kWidest = 32;
  return k * ((n + kWidest - 1) / kWidest) * kWidest;
}

template <class Real>
void pack(MatrixView<Real> b, std::int64_t k, std::int64_t n, Real* packed) {
  NAS_CALL(packing, pack<Real>)(b, k, n, packed);
}

template <class Real>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<Real> a,
              const Real* packed, Initial<Real> initial, Real* c, std::int64_t c_row) {
  NAS_CALL(multiplication, multiply<Real>)(m, n, k, a, packed, initial, c, c_row);
}

NAS_INSTANTIATE(pack)
NAS_INSTANTIATE(multiply)

}  // namespace nas::kernels
#endif
