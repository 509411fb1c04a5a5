// The mask of counter-based dropout on vectors, once per instruction set.

#if defined(NAS_KERNELS_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NAS_KERNELS_DROPOUT_INL_H_
#undef NAS_KERNELS_DROPOUT_INL_H_
#else
#define NAS_KERNELS_DROPOUT_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "kernels/dropout.hpp"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

/// dropout_hash() of kernels/dropout.hpp.
template <class D32>
HWY_INLINE Vector<D32> dropout_hash(D32 d32, Vector<D32> offset, std::uint64_t word) {
  auto hash = hn::Add(offset, hn::Set(d32, static_cast<std::uint32_t>(word)));
  hash = hn::Xor(hash, hn::ShiftRight<16>(hash));
  hash = hn::Mul(hash, hn::Set(d32, kDropoutFirstFactor));
  hash = hn::Xor(hash, hn::Set(d32, static_cast<std::uint32_t>(word >> 32U)));
  hash = hn::Xor(hash, hn::ShiftRight<15>(hash));
  hash = hn::Mul(hash, hn::Set(d32, kDropoutSecondFactor));
  return hn::Xor(hash, hn::ShiftRight<16>(hash));
}

/// Marks the elements at some offsets of a block that are kept.
template <class D, class Offsets>
HWY_INLINE hn::Mask<D> kept(D d, const Dropout& dropout, std::uint64_t word, Offsets offsets) {
  const hn::Rebind<std::uint32_t, D> d32;
  const auto hash = dropout_hash(d32, offsets, word);
  // At least: the larger of the two is the hash. (SSE2 and AVX2 compare signed numbers only.)
  const auto larger = hn::Max(hash, hn::Set(d32, dropout.threshold));
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(float)) {
    return hn::RebindMask(d, hn::Eq(larger, hash));
  } else {
    const hn::RebindToUnsigned<D> d64;
    return hn::RebindMask(d, hn::Eq(hn::PromoteTo(d64, larger), hn::PromoteTo(d64, hash)));
  }
}

/// Calls run(position, n, mask) for vectors that cover elements [0, size) of a row whose first
/// element is number `first` of the tensor, of which that dropout tells the first; n <= the vector's elements are meant.
template <class D, class Run>
HWY_INLINE void for_each_kept(D d, const Dropout& dropout, std::int64_t first, std::int64_t size,
                              const Run& run) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const hn::Rebind<std::uint32_t, D> d32;
  const auto steps = hn::Iota(d32, 0);  // once: from a variable on, Highway stores every element
  first += dropout.first;
  for (std::int64_t begin = 0; begin < size;) {
    const std::int64_t offset = (first + begin) % kDropoutBlock;
    const std::int64_t end = std::min(size, begin + kDropoutBlock - offset);
    const auto word = dropout_word(dropout.key, first + begin);
    for (std::int64_t i = begin; i < end; i += lanes) {
      const auto from = hn::Set(d32, static_cast<std::uint32_t>(offset + i - begin));
      run(i, std::min(lanes, end - i), kept(d, dropout, word, hn::Add(steps, from)));
    }
    begin = end;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#endif  // NAS_KERNELS_DROPOUT_INL_H_
