#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product.cpp"
#include <algorithm>

#include <hwy/foreach_target.h>

#include "kernels/product-inl.h"
#include "kernels/product.hpp"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

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

template <class Real>
void multiply_all(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<Real> a,
                  const Real* packed, Initial<Real> initial, Real* c, std::int64_t c_row) {
  multiply_by<Numbers>(m, n, k, a, packed, initial, c, c_row);
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
