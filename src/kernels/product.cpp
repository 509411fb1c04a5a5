#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product.cpp"
#include <algorithm>
#include <bit>
#include <type_traits>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

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

template <class Real>
void multiply_all(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<Real> a,
                  const Real* packed, Initial<Real> initial, Real* c, std::int64_t c_row) {
  multiply_by<Numbers>(m, n, k, a, packed, initial, c, c_row);
}

// Pairs of bfloat16 numbers, the first in the lower half, lie where floats would: sums of two products. Each product is
// exact in float32 or below 2^-126, so that it does not matter whether its addition is fused.

/// To the nearest, ties to even, numbers below 2^-126 to 0; NaN stays NaN.
inline std::uint32_t rounded_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7f800000U) == 0) return bits & 0x80000000U;
  return x != x ? 0x7fc00000U : bits + 0x7fffU + ((bits >> 16U) & 1U);
}

struct Pairs {
  /// sum + a_1 b_1, rounded, + a_0 b_0.
  template <class D>
  static HWY_INLINE Vector<D> add(D d, Vector<D> a, Vector<D> b, Vector<D> sum) {
    const hn::RebindToUnsigned<D> bits;
    const auto high = hn::Set(bits, 0xffff0000U);
    const auto upper = [&](auto x) { return hn::BitCast(d, hn::And(hn::BitCast(bits, x), high)); };
    const auto lower = [&](auto x) {
      return hn::BitCast(d, hn::ShiftLeft<16>(hn::BitCast(bits, x)));
    };
    return hn::MulAdd(lower(a), lower(b), hn::MulAdd(upper(a), upper(b), sum));
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

/// Pairs of neighbours of k numbers.
template <class Op>
void pair_up(std::int64_t k, const float* HWY_RESTRICT x, float* HWY_RESTRICT pairs) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const Wide<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto at = [&](const float* from) {
    return Op::along(d, hn::LoadU(d, from), hn::LoadU(d, from + lanes));
  };
  for (; i + 2 * lanes <= k; i += 2 * lanes) hn::StoreU(at(x + i), d, pairs + i / 2);
  if (i < k) {
    HWY_ALIGN float rest[2 * hn::MaxLanes(d)] = {};
    std::copy_n(x + i, k - i, rest);
    hn::Store(at(rest), d, rest);
    std::copy_n(rest, (k - i + 1) / 2, pairs + i / 2);
  }
#else
  for (; i < k; i += 2) {
    const auto high = i + 1 < k ? rounded_bits(x[i + 1]) & 0xffff0000U : 0U;
    pairs[i / 2] = std::bit_cast<float>(high | rounded_bits(x[i]) >> 16U);
  }
#endif
}

/// Pairs of elements of two rows of n numbers.
template <class Op>
HWY_INLINE void pair_rows(std::int64_t n, const float* low, const float* high, float* pairs) {
  std::int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const Wide<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; j + lanes <= n; j += lanes) {
    hn::StoreU(Op::across(d, hn::LoadU(d, low + j), hn::LoadU(d, high + j)), d, pairs + j);
  }
#endif
  for (; j < n; ++j) {
    pairs[j] =
        std::bit_cast<float>((rounded_bits(high[j]) & 0xffff0000U) | rounded_bits(low[j]) >> 16U);
  }
}

template <class Op>
void pack_columns(const float* b, std::int64_t column, std::int64_t k, std::int64_t n,
                  float* HWY_RESTRICT packed) {
  HWY_ALIGN float block[kPanel<float> * kDepth];
  const std::int64_t pairs = (k + 1) / 2, columns = panels<float>(n) * kPanel<float>;
  for (std::int64_t first = 0; first < n; first += kPanel<float>) {
    const std::int64_t width = std::min(kPanel<float>, n - first);
    for (std::int64_t begin = 0; begin < pairs; begin += kDepth) {
      const std::int64_t depth = std::min(kDepth, pairs - begin);
      for (std::int64_t j = 0; j < width; ++j) {
        pair_up<Op>(std::min(2 * depth, k - 2 * begin), b + (first + j) * column + 2 * begin,
                    block + j * kDepth);
      }
      std::fill(block + width * kDepth, block + kPanel<float> * kDepth, 0.0F);
      transpose(depth, kPanel<float>, block, kDepth, packed + begin * columns + first * depth,
                kPanel<float>);
    }
  }
}

template <class Op>
void pack_rows(const float* b, std::int64_t row, std::int64_t k, std::int64_t n,
               std::int64_t first_row, std::int64_t end_row, float* HWY_RESTRICT packed) {
  HWY_ALIGN static constexpr float kZeros[kPanel<float>] = {};
  const std::int64_t pairs = (k + 1) / 2, columns = panels<float>(n) * kPanel<float>;
  for (std::int64_t first = 0; first < n; first += kPanel<float>) {
    const std::int64_t width = std::min(kPanel<float>, n - first);
    for (std::int64_t p = first_row / 2; p < (end_row + 1) / 2; ++p) {
      const std::int64_t begin = p / kDepth * kDepth, depth = std::min(kDepth, pairs - begin);
      float* to = packed + begin * columns + first * depth + (p - begin) * kPanel<float>;
      const float* low = b + 2 * p * row + first;
      pair_rows<Op>(width, low, 2 * p + 1 < k ? low + row : kZeros, to);
      std::fill(to + width, to + kPanel<float>, 0.0F);
    }
  }
}

template <class Op>
void round_by(std::int64_t m, std::int64_t k, const float* x, std::int64_t row, float* pairs) {
  for (std::int64_t i = 0; i < m; ++i) pair_up<Op>(k, x + i * row, pairs + i * ((k + 1) / 2));
}

template <class Op>
void pack_by(MatrixView<float> b, std::int64_t k, std::int64_t n, std::int64_t first,
             std::int64_t end, float* packed) {
  if (b.column == 1) {
    pack_rows<Op>(b.data, b.row, k, n, first, end, packed);
  } else {
    pack_columns<Op>(b.data, b.column, k, n, packed);
  }
}

template <class Op>
void multiply_pairs_by(std::int64_t m, std::int64_t n, std::int64_t pairs, LeftPairs a,
                       const float* packed, Initial<float> initial, float* c, std::int64_t c_row) {
  if (a.of == 0) {
    multiply_by<Op>(m, n, pairs, MatrixView<float>{a.data, pairs, 1}, packed, initial, c, c_row);
  } else {
    const PackedLeft left{a.data, panels<float>(a.of) * kPanel<float>, a.first};
    multiply_by<Op>(m, n, pairs, left, packed, initial, c, c_row);
  }
}

constexpr bool kHasPairProducts = HWY_TARGET == HWY_AVX3;
bool of_pairs() { return kHasPairProducts; }

void round_pairs_all(bool at_once, std::int64_t m, std::int64_t k, const float* x, std::int64_t row,
                     float* pairs) {
  (at_once ? round_by<PairsAtOnce> : round_by<Pairs>)(m, k, x, row, pairs);
}

void pack_pairs_all(bool at_once, MatrixView<float> b, std::int64_t k, std::int64_t n,
                    std::int64_t first, std::int64_t end, float* packed) {
  (at_once ? pack_by<PairsAtOnce> : pack_by<Pairs>)(b, k, n, first, end, packed);
}

void multiply_pairs_all(bool at_once, std::int64_t m, std::int64_t n, std::int64_t pairs,
                        LeftPairs a, const float* packed, Initial<float> initial, float* c,
                        std::int64_t c_row) {
  (at_once ? multiply_pairs_by<PairsAtOnce> : multiply_pairs_by<Pairs>)(m, n, pairs, a, packed,
                                                                        initial, c, c_row);
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
HWY_EXPORT(of_pairs);
HWY_EXPORT(multiply_pairs_all);
HWY_EXPORT(round_pairs_all);
HWY_EXPORT(pack_pairs_all);

bool has_pair_products() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0 && HWY_DYNAMIC_DISPATCH(of_pairs)();
#else
  return false;
#endif
}

void round_pairs(std::int64_t m, std::int64_t k, const float* x, std::int64_t row, float* pairs,
                 bool at_once) {
  HWY_DYNAMIC_DISPATCH(round_pairs_all)(at_once, m, k, x, row, pairs);
}

void pack_pairs(MatrixView<float> b, std::int64_t k, std::int64_t n, std::int64_t first,
                std::int64_t end, float* packed, bool at_once) {
  HWY_DYNAMIC_DISPATCH(pack_pairs_all)(at_once, b, k, n, first, end, packed);
}

void multiply_pairs(std::int64_t m, std::int64_t n, std::int64_t pairs, LeftPairs a,
                    const float* packed, Initial<float> initial, float* c, std::int64_t c_row,
                    bool at_once) {
#if defined(__x86_64__)
  constexpr unsigned kTinyIsZero = 0x8040;  // both of factors and of sums
  const unsigned before = _mm_getcsr();
  if (!at_once) _mm_setcsr(before | kTinyIsZero);
#endif
  HWY_DYNAMIC_DISPATCH(multiply_pairs_all)(at_once, m, n, pairs, a, packed, initial, c, c_row);
#if defined(__x86_64__)
  if (!at_once) _mm_setcsr(before);
#endif
}

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
