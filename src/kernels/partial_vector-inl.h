// Arrays by vectors, the last of which may be partial, once per instruction set.

#if defined(NAS_KERNELS_PARTIAL_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NAS_KERNELS_PARTIAL_VECTOR_INL_H_
#undef NAS_KERNELS_PARTIAL_VECTOR_INL_H_
#else
#define NAS_KERNELS_PARTIAL_VECTOR_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

/// All elements of a vector.
template <class D>
struct WholeVector {
  using Real = hn::TFromD<D>;

  [[nodiscard]] HWY_INLINE Vector<D> load(const Real* from) const { return hn::LoadU(D(), from); }
  HWY_INLINE void store(Vector<D> x, Real* to) const { hn::StoreU(x, D(), to); }
  /// x with zeros in elements that do not count.
  [[nodiscard]] HWY_INLINE Vector<D> counted(Vector<D> x) const { return x; }
};

/// The first `size` elements of a vector: no others are read or written in memory.
template <class D>
struct PartialVector {
  using Real = hn::TFromD<D>;
  std::int64_t size;

  /// @return zeros in the others.
  [[nodiscard]] HWY_INLINE Vector<D> load(const Real* from) const {
    HWY_ALIGN Real part[hn::MaxLanes(D())] = {};
    std::copy_n(from, size, part);
    return hn::Load(D(), part);
  }
  HWY_INLINE void store(Vector<D> x, Real* to) const {
    HWY_ALIGN Real part[hn::MaxLanes(D())];
    hn::Store(x, D(), part);
    std::copy_n(part, size, to);
  }
  [[nodiscard]] HWY_INLINE Vector<D> counted(Vector<D> x) const {
    return hn::IfThenElseZero(hn::FirstN(D(), static_cast<std::size_t>(size)), x);
  }
};

/// Calls run(i, part) for the vectors that cover elements [0, size), each beginning at i.
template <class D, class Run>
HWY_INLINE void for_each_part(D d, std::int64_t size, const Run& run) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= size; i += lanes) run(i, WholeVector<D>());
  if (i < size) run(i, PartialVector<D>{size - i});
}

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#endif  // NAS_KERNELS_PARTIAL_VECTOR_INL_H_
