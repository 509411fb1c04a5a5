#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pairs.cpp"
#include <algorithm>
#include <bit>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>
#endif

#include <hwy/foreach_target.h>

#include "kernels/pairs.hpp"
#include "kernels/product-inl.h"
#include "kernels/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

/// To the nearest, ties to even, numbers below 2^-126 to 0; NaN stays NaN.
inline std::uint32_t rounded_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7f800000U) == 0) return bits & 0x80000000U;
  return x != x ? 0x7fc00000U : bits + 0x7fffU + ((bits >> 16U) & 1U);
}

// Parts but the last are to the nearest, ties away from 0, which takes two operations; sizes from kLarge on would become
// infinite so.
constexpr std::uint32_t kUpper = 0xffff0000U, kHalf = 0x8000U, kSize = 0x7fffffffU,
                        kLarge = 0x7f7f8000U;

/// x's first part, cut off if x is large; leaves x - that in x: of what is no finite number, NaN.
inline float take_part(float& x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto part = std::bit_cast<float>(((bits & kSize) < kLarge ? bits + kHalf : bits) & kUpper);
  x -= part;
  return part;
}

struct Pairs {
  /// sum + a_1 b_1, rounded, + a_0 b_0. Each product is exact in float32 or below 2^-126, so that it does not matter
  /// whether its addition is fused.
  template <class D>
  static HWY_INLINE Vector<D> add(D d, Vector<D> a, Vector<D> b, Vector<D> sum) {
    return hn::MulAdd(lower(d, a), lower(d, b), hn::MulAdd(upper(d, a), upper(d, b), sum));
  }

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  /// As rounded_bits().
  template <class D>
  static HWY_INLINE auto rounded(D d, Vector<D> x) {
    const hn::RebindToUnsigned<D> bits;
    const auto all = hn::BitCast(bits, x);
    const auto odd = hn::And(hn::ShiftRight<16>(all), hn::Set(bits, 1U));
    const auto sum = hn::Add(all, hn::Add(odd, hn::Set(bits, 0x7fffU)));
    const auto none = hn::Eq(hn::And(all, hn::Set(bits, 0x7f800000U)), hn::Zero(bits));
    const auto tiny = hn::IfThenElse(none, hn::And(all, hn::Set(bits, 0x80000000U)), sum);
    const auto nan = hn::BitCast(d, hn::Set(bits, 0x7fc00000U));
    return hn::BitCast(bits, hn::IfThenElse(hn::IsNaN(x), nan, hn::BitCast(d, tiny)));
  }

  /// Of each element of `low` and that of `high`.
  template <class D>
  static HWY_INLINE Vector<D> across(D d, Vector<D> low, Vector<D> high) {
    const hn::RebindToUnsigned<D> bits;
    const auto upper = hn::And(rounded(d, high), hn::Set(bits, 0xffff0000U));
    return hn::BitCast(d, hn::Or(hn::ShiftRight<16>(rounded(d, low)), upper));
  }

  /// Of neighbours in `first` and `second`.
  template <class D>
  static HWY_INLINE Vector<D> along(D d, Vector<D> first, Vector<D> second) {
    return across(d, hn::ConcatEven(d, second, first), hn::ConcatOdd(d, second, first));
  }
#endif
};

/// One pair in parts.
inline void pair(float low, float high, float* to, int parts, std::int64_t part) {
  for (int q = 1; q <= parts; ++q, to += part) {
    const auto first = rounded_bits(q < parts ? take_part(low) : low);
    const auto second = rounded_bits(q < parts ? take_part(high) : high);
    *to = std::bit_cast<float>((second & 0xffff0000U) | first >> 16U);
  }
}

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
/// As that of a number. @tparam kAny  also of numbers from kLarge on.
template <bool kAny, class D>
HWY_INLINE Vector<D> take_part(D d, Vector<D>& x) {
  const hn::RebindToUnsigned<D> bits;
  const auto upper = hn::Set(bits, kUpper), whole = hn::BitCast(bits, x);
  auto part = hn::And(hn::Add(whole, hn::Set(bits, kHalf)), upper);
  if constexpr (kAny) {
    const auto size = hn::And(whole, hn::Set(bits, kSize));
    part = hn::IfThenElse(hn::Lt(size, hn::Set(bits, kLarge)), part, hn::And(whole, upper));
  }
  x = hn::Sub(x, hn::BitCast(d, part));
  return hn::BitCast(d, part);
}

/// Pairs of parts: of each element of `low` and that of `high`.
template <class D>
HWY_INLINE Vector<D> part_pairs(D d, Vector<D> low, Vector<D> high) {
  const hn::RebindToUnsigned<D> bits;
  return hn::BitCast(d,
                     hn::Or(hn::ShiftRight<16>(hn::BitCast(bits, low)), hn::BitCast(bits, high)));
}

/// Parts of what two vectors hold, and the largest size that was seen of several.
template <bool kAny, class D>
class Parts {
 public:
  explicit Parts(D d) : d_(d) {}

  /// Stores pairs of neighbours or of elements of both, parts `part` apart.
  template <class Op, bool kAlong>
  HWY_INLINE void store(Vector<D> first, Vector<D> second, float* to, int parts,
                        std::int64_t part) {
    if (!kAny) {
      const auto size = hn::Set(bits_, kSize);
      largest_ = hn::Max(largest_, hn::Max(hn::And(hn::BitCast(bits_, first), size),
                                           hn::And(hn::BitCast(bits_, second), size)));
    }
    for (int q = 1; q < parts; ++q, to += part) {
      const auto a = take_part<kAny>(d_, first), b = take_part<kAny>(d_, second);
      hn::StoreU(kAlong ? part_pairs(d_, hn::ConcatEven(d_, b, a), hn::ConcatOdd(d_, b, a))
                        : part_pairs(d_, a, b),
                 d_, to);
    }
    if constexpr (kAlong) {
      hn::StoreU(Op::along(d_, first, second), d_, to);
    } else {
      hn::StoreU(Op::across(d_, first, second), d_, to);
    }
  }

  /// Whether numbers were too large for this way.
  [[nodiscard]] bool seen_large() const {
    return !hn::AllTrue(bits_, hn::Lt(largest_, hn::Set(bits_, kLarge)));
  }

 private:
  D d_;
  hn::RebindToUnsigned<D> bits_;
  Vector<hn::RebindToUnsigned<D>> largest_ = hn::Zero(bits_);
};
#endif

#if HWY_TARGET == HWY_AVX3
// NOLINTBEGIN(hicpp-no-assembler)
/// The same by AVX512_BF16, which takes numbers below 2^-126 for 0.
struct PairsAtOnce {
  template <class D>
  static HWY_INLINE Vector<D> add(D /*d*/, Vector<D> a, Vector<D> b, Vector<D> sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }

  template <class D>
  static HWY_INLINE Vector<D> along(D /*d*/, Vector<D> first, Vector<D> second) {
    Vector<D> pairs;
    asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(pairs.raw) : "v"(first.raw), "v"(second.raw));
    return pairs;
  }

  template <class D>
  static HWY_INLINE Vector<D> across(D d, Vector<D> low, Vector<D> high) {
    const hn::Repartition<std::uint16_t, D> halves;
    HWY_ALIGN static constexpr std::uint16_t kTurns[32] = {
        0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const auto turns = hn::Load(halves, kTurns);
    Vector<D> pairs = along(d, low, high);
    asm("vpermw %0, %1, %0" : "+v"(pairs.raw) : "v"(turns.raw));
    return pairs;
  }
};
// NOLINTEND(hicpp-no-assembler)
#else
using PairsAtOnce = Pairs;
#endif

/// Pairs of neighbours of k numbers. @param part  elements from one part of them to the next.
template <class Op, bool kAny = false>
HWY_INLINE void pair_up(std::int64_t k, const float* x, float* pairs, int parts,
                        std::int64_t part) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const Wide<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  Parts<kAny, Wide<float>> made(d);
  const auto split = [&](const float* from, float* to, std::int64_t step) {
    made.template store<Op, true>(hn::LoadU(d, from), hn::LoadU(d, from + lanes), to, parts, step);
  };
  for (; parts == 1 && i + 2 * lanes <= k; i += 2 * lanes) {
    hn::StoreU(Op::along(d, hn::LoadU(d, x + i), hn::LoadU(d, x + i + lanes)), d, pairs + i / 2);
  }
  for (; i + 2 * lanes <= k; i += 2 * lanes) split(x + i, pairs + i / 2, part);
  if (i < k) {
    HWY_ALIGN float rest[2 * hn::MaxLanes(d)] = {},
                             last[static_cast<std::size_t>(kMostParts) * hn::MaxLanes(d)];
    std::copy_n(x + i, k - i, rest);
    split(rest, last, lanes);
    for (int q = 0; q < parts; ++q) {
      std::copy_n(last + q * lanes, (k - i + 1) / 2, pairs + q * part + i / 2);
    }
  }
  if constexpr (!kAny) {
    if (HWY_UNLIKELY(parts > 1 && made.seen_large())) pair_up<Op, true>(k, x, pairs, parts, part);
  }
#else
  for (; i < k; i += 2) pair(x[i], i + 1 < k ? x[i + 1] : 0.0F, pairs + i / 2, parts, part);
#endif
}

/// Pairs of elements of two rows of n numbers.
template <class Op, bool kAny = false>
HWY_INLINE void pair_rows(std::int64_t n, const float* low, const float* high, float* pairs,
                          int parts, std::int64_t part) {
  std::int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const Wide<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; parts == 1 && j + lanes <= n; j += lanes) {
    hn::StoreU(Op::across(d, hn::LoadU(d, low + j), hn::LoadU(d, high + j)), d, pairs + j);
  }
  Parts<kAny, Wide<float>> made(d);
  for (; j + lanes <= n; j += lanes) {
    made.template store<Op, false>(hn::LoadU(d, low + j), hn::LoadU(d, high + j), pairs + j, parts,
                                   part);
  }
  if constexpr (!kAny) {
    if (HWY_UNLIKELY(parts > 1 && made.seen_large())) {
      pair_rows<Op, true>(n, low, high, pairs, parts, part);
      return;
    }
  }
#endif
  for (; j < n; ++j) pair(low[j], high[j], pairs + j, parts, part);
}

/// Of two rows of n numbers that are rounded.
template <class Op>
HWY_INLINE void pair_rows(std::int64_t n, const std::uint16_t* low, const std::uint16_t* high,
                          float* pairs, int /*parts*/, std::int64_t /*part*/) {
  std::int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const Wide<float> d;
  const hn::RebindToUnsigned<Wide<float>> bits;
  const hn::Rebind<std::uint16_t, Wide<float>> halves;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; j + lanes <= n; j += lanes) {
    const auto first = hn::PromoteTo(bits, hn::LoadU(halves, low + j));
    const auto second = hn::PromoteTo(bits, hn::LoadU(halves, high + j));
    hn::StoreU(hn::BitCast(d, hn::Or(first, hn::ShiftLeft<16>(second))), d, pairs + j);
  }
#endif
  for (; j < n; ++j) {
    pairs[j] = std::bit_cast<float>(std::uint32_t{low[j]} | std::uint32_t{high[j]} << 16U);
  }
}

template <class Op>
void pack_columns(const float* b, std::int64_t column, std::int64_t k, std::int64_t n,
                  float* HWY_RESTRICT packed, int parts) {
  constexpr std::int64_t kPart = kPanel<float> * kDepth;
  HWY_ALIGN float block[static_cast<std::size_t>(kMostParts * kPart)];
  const std::int64_t pairs = (k + 1) / 2, columns = parts * panels<float>(n) * kPanel<float>;
  for (std::int64_t first = 0; first < n; first += kPanel<float>) {
    const std::int64_t width = std::min(kPanel<float>, n - first);
    for (std::int64_t begin = 0; begin < pairs; begin += kDepth) {
      const std::int64_t depth = std::min(kDepth, pairs - begin);
      for (std::int64_t j = 0; j < width; ++j) {
        pair_up<Op>(std::min(2 * depth, k - 2 * begin), b + (first + j) * column + 2 * begin,
                    block + j * kDepth, parts, kPart);
      }
      for (int q = 0; q < parts; ++q) {
        float* const of_part = block + q * kPart;
        std::fill(of_part + width * kDepth, of_part + kPart, 0.0F);
        transpose(depth, kPanel<float>, of_part, kDepth,
                  packed + begin * columns + (first * parts + q * kPanel<float>)*depth,
                  kPanel<float>);
      }
    }
  }
}

template <class Op, class Number>
void pack_rows(const Number* b, std::int64_t row, std::int64_t k, std::int64_t n,
               std::int64_t first_row, std::int64_t end_row, float* HWY_RESTRICT packed,
               int parts) {
  HWY_ALIGN static constexpr Number kZeros[kPanel<float>] = {};
  const std::int64_t pairs = (k + 1) / 2, columns = parts * panels<float>(n) * kPanel<float>;
  for (std::int64_t first = 0; first < n; first += kPanel<float>) {
    const std::int64_t width = std::min(kPanel<float>, n - first);
    for (std::int64_t p = first_row / 2; p < (end_row + 1) / 2; ++p) {
      const std::int64_t begin = p / kDepth * kDepth, depth = std::min(kDepth, pairs - begin);
      float* to = packed + begin * columns + first * parts * depth + (p - begin) * kPanel<float>;
      const Number* low = b + 2 * p * row + first;
      const std::int64_t part = depth * kPanel<float>;
      pair_rows<Op>(width, low, 2 * p + 1 < k ? low + row : kZeros, to, parts, part);
      for (int q = 0; q < parts; ++q, to += part) std::fill(to + width, to + kPanel<float>, 0.0F);
    }
  }
}

template <class Op>
void round_by(std::int64_t m, std::int64_t k, const float* x, std::int64_t row, float* pairs,
              int parts) {
  const auto size = (k + 1) / 2;
  for (std::int64_t i = 0; i < m; ++i) {
    pair_up<Op>(k, x + i * row, pairs + i * parts * size, parts, size);
  }
}

template <class Op>
void pack_by(MatrixView<float> b, std::int64_t k, std::int64_t n, std::int64_t first,
             std::int64_t end, float* packed, int parts) {
  if (b.column == 1) {
    pack_rows<Op>(b.data, b.row, k, n, first, end, packed, parts);
  } else {
    pack_columns<Op>(b.data, b.column, k, n, packed, parts);
  }
}

template <class Op>
void multiply_pairs_by(std::int64_t m, std::int64_t n, std::int64_t pairs, LeftPairs a,
                       const float* packed, Initial<float> initial, float* c, std::int64_t c_row) {
  if (a.of == 0) {
    const MatrixView<float> rows{a.data, a.row > 0 ? a.row : pairs, 1};
    multiply_by<Op>(m, n, pairs, rows, packed, initial, c, c_row);
  } else {
    const PackedLeft left{a.data, panels<float>(a.of) * kPanel<float>, a.first};
    multiply_by<Op>(m, n, pairs, left, packed, initial, c, c_row);
  }
}

constexpr bool kHasInstructions = HWY_TARGET == HWY_AVX3;
bool of_pairs() { return kHasInstructions; }

/// Whether the processor's tiles add up in the order that is documented.
bool tiles_agree() {
  HWY_ALIGN float left[kPanelRows * kTilePairs], right[kPanelRows * kTilePairs];
  HWY_ALIGN float sums[2][kPanelRows * kPanel<float>];
  std::uint32_t bits = 1;
  for (auto* const factor : {left, right}) {
    for (std::int64_t i = 0; i < kPanelRows * kTilePairs; ++i) {
      bits = bits * 1664525U + 1013904223U;  // of numbers between 2^-8 and 2^8
      factor[i] = std::bit_cast<float>((bits & 0x87ff87ffU) + 0x3c003c00U);
    }
  }
  const TileFactors factors{left, kTilePairs, 0, right, 0, kTilePairs, 1};
  TilesByVectors::multiply(kPanelRows, factors, {}, sums[0], kPanel<float>);
  TilesAtOnce::begin();
  TilesAtOnce::multiply(kPanelRows, factors, {}, sums[1], kPanel<float>);
  TilesAtOnce::end();
  return std::equal(sums[0], sums[0] + kPanelRows * kPanel<float>, sums[1]);
}

void round_pairs_all(bool at_once, std::int64_t m, std::int64_t k, const float* x, std::int64_t row,
                     float* pairs, int parts) {
  (at_once ? round_by<PairsAtOnce> : round_by<Pairs>)(m, k, x, row, pairs, parts);
}

void pack_pairs_all(bool at_once, MatrixView<float> b, std::int64_t k, std::int64_t n,
                    std::int64_t first, std::int64_t end, float* packed, int parts) {
  (at_once ? pack_by<PairsAtOnce> : pack_by<Pairs>)(b, k, n, first, end, packed, parts);
}

void pack_rounded_all(std::int64_t k, std::int64_t n, const float* x, std::int64_t row,
                      std::int64_t first, std::int64_t end, float* packed) {
  pack_rows<Pairs>(reinterpret_cast<const std::uint16_t*>(x), 2 * row, k, n, first, end, packed, 1);
}

void multiply_pairs_all(std::int64_t m, std::int64_t n, std::int64_t pairs, LeftPairs a,
                        const float* packed, Initial<float> initial, float* c, std::int64_t c_row,
                        PairForm form) {
  if (form.tiles) {
    (form.at_once ? multiply_in_tiles<TilesAtOnce>
                  : multiply_in_tiles<TilesByVectors>)(m, n, pairs, a, packed, initial, c, c_row,
                                                       form.parts);
  } else {
    (form.at_once ? multiply_pairs_by<PairsAtOnce>
                  : multiply_pairs_by<Pairs>)(m, n, pairs, a, packed, initial, c, c_row);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nas::kernels {

HWY_EXPORT(of_pairs);
HWY_EXPORT(tiles_agree);
HWY_EXPORT(multiply_pairs_all);
HWY_EXPORT(round_pairs_all);
HWY_EXPORT(pack_pairs_all);
HWY_EXPORT(pack_rounded_all);

namespace {

#if defined(__x86_64__)
/// That the processor has tiles of bfloat16, that the system keeps them, and grants them to this process.
bool are_tiles_granted() {
  constexpr unsigned kFeatures = 7, kBfloat16Tiles = 1U << 22U, kTiles = 1U << 24U;  // of edx
  constexpr unsigned kSaved = 1U << 27U, kTileState = 3U << 17U;  // of ecx; of xcr0
  constexpr long kAskPermission = 0x1023, kTileData = 18;         // arch_prctl's, since Linux 5.16
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) == 0 || (d & kBfloat16Tiles) == 0 ||
      (d & kTiles) == 0 || __get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kSaved) == 0) {
    return false;
  }
  asm("xgetbv" : "=a"(a), "=d"(d) : "c"(0));  // NOLINT(hicpp-no-assembler)
  return (a & kTileState) == kTileState && syscall(SYS_arch_prctl, kAskPermission, kTileData) == 0;
}
#endif

}  // namespace

bool has_pair_products(bool tiles) {
#if defined(__x86_64__)
  if (!HWY_DYNAMIC_DISPATCH(of_pairs)()) return false;
  static const bool has_tiles = are_tiles_granted() && HWY_DYNAMIC_DISPATCH(tiles_agree)();
  return tiles ? has_tiles : __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

void round_pairs(std::int64_t m, std::int64_t k, const float* x, std::int64_t row, float* pairs,
                 PairForm form) {
  const bool at_once = form.at_once && has_pair_products();
  HWY_DYNAMIC_DISPATCH(round_pairs_all)(at_once, m, k, x, row, pairs, form.parts);
}

void pack_pairs(MatrixView<float> b, std::int64_t k, std::int64_t n, std::int64_t first,
                std::int64_t end, float* packed, PairForm form) {
  const bool at_once = form.at_once && has_pair_products();
  HWY_DYNAMIC_DISPATCH(pack_pairs_all)(at_once, b, k, n, first, end, packed, form.parts);
}

void pack_rounded(std::int64_t k, std::int64_t n, const float* x, std::int64_t row,
                  std::int64_t first, std::int64_t end, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack_rounded_all)(k, n, x, row, first, end, packed);
}

void multiply_pairs(std::int64_t m, std::int64_t n, std::int64_t pairs, LeftPairs a,
                    const float* packed, Initial<float> initial, float* c, std::int64_t c_row,
                    PairForm form) {
#if defined(__x86_64__)
  constexpr unsigned kTinyIsZero = 0x8040;  // both of factors and of sums
  const unsigned before = _mm_getcsr();
  if (!form.at_once) _mm_setcsr(before | kTinyIsZero);
#endif
  HWY_DYNAMIC_DISPATCH(multiply_pairs_all)(m, n, pairs, a, packed, initial, c, c_row, form);
#if defined(__x86_64__)
  if (!form.at_once) _mm_setcsr(before);
#endif
}

}  // namespace nas::kernels
#endif
