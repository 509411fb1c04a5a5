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

/// Marks the elements offset .. of a block that are kept.
template <class D>
requires std::same_as < hn::TFromD<D>,
float > HWY_INLINE hn::Mask<D> kept(D d, const Dropout& dropout, std::uint64_t word,
                                    std::uint32_t offset) {
  const hn::RebindToUnsigned<D> d32;
  const auto hash = dropout_hash(d32, hn::Iota(d32, offset), word);
  const auto threshold = hn::Set(d32, dropout.threshold);
  // At least: the larger of the two is the hash. (SSE2 and AVX2 compare signed numbers only.)
  return hn::RebindMask(d, hn::Eq(hn::Max(hash, threshold), hash));
}

template <class D>
requires std::same_as < hn::TFromD<D>,
double > HWY_INLINE hn::Mask<D> kept(D d, const Dropout& dropout, std::uint64_t word,
                                     std::uint32_t offset) {
  const hn::Rebind<std::uint32_t, D> d32;
  const hn::RebindToUnsigned<D> d64;
  const auto hash = dropout_hash(d32, hn::Iota(d32, offset), word);
  const auto larger = hn::PromoteTo(d64, hn::Max(hash, hn::Set(d32, dropout.threshold)));
  return hn::RebindMask(d, hn::Eq(larger, hn::PromoteTo(d64, hash)));
}

/// Calls run(position, n, mask) for vectors that cover elements [0, size) of a row whose first
/// element is number `first` of the tensor, of which that dropout tells the first; n <= the vector's elements are meant.
template <class D, class Run>
HWY_INLINE void for_each_kept(D d, const Dropout& dropout, std::int64_t first, std::int64_t size,
                              const Run& run) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  first += dropout.first;
  for (std::int64_t begin = 0; begin < size;) {
    const std::int64_t offset = (first + begin) % kDropoutBlock;
    const std::int64_t end = std::min(size, begin + kDropoutBlock - offset);
    const auto word = dropout_word(dropout.key, first + begin);
    for (std::int64_t i = begin; i < end; i += lanes) {
      run(i, std::min(lanes, end - i),
          kept(d, dropout, word, static_cast<std::uint32_t>(offset + i - begin)));
    }
    begin = end;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#endif  // NAS_KERNELS_DROPOUT_INL_H_
