#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product.cpp"
#include <algorithm>
#include <bit>
#include <chrono>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <hwy/foreach_target.h>

#include "kernels/instruction_set.hpp"
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

template <class Op, class Real>
void multiply_by(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<Real> a,
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
          multiply_panel<Op>(rows, width, depth, a.at(top, begin), block + first * depth,
                             begin == 0 ? initial.at(top, first) : Initial<Real>{out, c_row}, out,
                             c_row);
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
// exact in float32, so that it does not matter whether its addition is fused.

/// sum + a_1 b_1, rounded, + a_0 b_0.
struct Pairs {
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
};

#if HWY_TARGET == HWY_AVX3
/// The same by VDPBF16PS, which takes numbers below 2^-126 for 0.
struct PairsAtOnce {
  template <class D>
  static HWY_INLINE Vector<D> add(D /*d*/, Vector<D> a, Vector<D> b, Vector<D> sum) {
    asm("vdpbf16ps %2, %1, %0"
        : "+v"(sum.raw)
        : "v"(a.raw), "v"(b.raw));  // NOLINT(hicpp-no-assembler)
    return sum;
  }
};
#else
using PairsAtOnce = Pairs;
#endif

void multiply_pairs_all(bool at_once, std::int64_t m, std::int64_t n, std::int64_t k,
                        const float* a, const float* packed, float* c, std::int64_t c_row) {
  const MatrixView<float> rows{a, k, 1};
  if (at_once) {
    multiply_by<PairsAtOnce>(m, n, k, rows, packed, Initial<float>{}, c, c_row);
  } else {
    multiply_by<Pairs>(m, n, k, rows, packed, Initial<float>{}, c, c_row);
  }
}

/// To the nearest, ties to even; NaN stays NaN.
inline std::uint32_t rounded_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return x != x ? 0x7fc00000U : bits + 0x7fffU + ((bits >> 16U) & 1U);
}

void pair_up(std::int64_t k, const float* HWY_RESTRICT x, float* HWY_RESTRICT pairs) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const Wide<float> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto rounded = [&](const float* from) {
    const auto number = hn::LoadU(d, from);
    const auto all = hn::BitCast(bits, number);
    const auto odd = hn::And(hn::ShiftRight<16>(all), hn::Set(bits, 1U));
    const auto sum = hn::BitCast(d, hn::Add(all, hn::Add(odd, hn::Set(bits, 0x7fffU))));
    const auto nan = hn::BitCast(d, hn::Set(bits, 0x7fc00000U));
    return hn::BitCast(bits, hn::IfThenElse(hn::IsNaN(number), nan, sum));
  };
  for (; i + 2 * lanes <= k; i += 2 * lanes) {
    const auto first = rounded(x + i), second = rounded(x + i + lanes);
    const auto even = hn::ConcatEven(bits, second, first), odd = hn::ConcatOdd(bits, second, first);
    hn::StoreU(
        hn::BitCast(d, hn::Or(hn::ShiftRight<16>(even), hn::And(odd, hn::Set(bits, 0xffff0000U)))),
        d, pairs + i / 2);
  }
#endif
  for (; i < k; i += 2) {
    const auto high = i + 1 < k ? rounded_bits(x[i + 1]) & 0xffff0000U : 0U;
    pairs[i / 2] = std::bit_cast<float>(high | rounded_bits(x[i]) >> 16U);
  }
}

void round_pairs_all(std::int64_t m, std::int64_t k, const float* x, float* pairs) {
  for (std::int64_t i = 0; i < m; ++i) pair_up(k, x + i * k, pairs + i * ((k + 1) / 2));
}

void pack_pairs_all(const float* w, std::int64_t row, std::int64_t k, std::int64_t n,
                    float* HWY_RESTRICT packed) {
  HWY_ALIGN float block[kPanel<float> * kDepth];
  const std::int64_t pairs = (k + 1) / 2, columns = panels<float>(n) * kPanel<float>;
  for (std::int64_t first = 0; first < n; first += kPanel<float>) {
    const std::int64_t width = std::min(kPanel<float>, n - first);
    for (std::int64_t begin = 0; begin < pairs; begin += kDepth) {
      const std::int64_t depth = std::min(kDepth, pairs - begin);
      for (std::int64_t j = 0; j < width; ++j) {
        pair_up(std::min(2 * depth, k - 2 * begin), w + (first + j) * row + 2 * begin,
                block + j * kDepth);
      }
      std::fill(block + width * kDepth, block + kPanel<float> * kDepth, 0.0F);
      transpose(depth, kPanel<float>, block, kDepth, packed + begin * columns + first * depth,
                kPanel<float>);
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
HWY_EXPORT(multiply_pairs_all);
HWY_EXPORT(round_pairs_all);
HWY_EXPORT(pack_pairs_all);

bool has_pair_products() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0 && instruction_set() == "AVX3";
#else
  return false;
#endif
}

static bool has_tiles() {
#if defined(__x86_64__)
  constexpr unsigned kFeatures = 7, kBfloat16Tiles = 1U << 22U;  // of edx
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) != 0 && (d & kBfloat16Tiles) != 0;
#else
  return false;
#endif
}

bool pairs_are_faster() {
  static const bool faster = [] {
    if (!has_pair_products() || has_tiles()) return false;
    constexpr std::int64_t kSize = 256;
    const auto size = static_cast<std::size_t>(packed_size(kSize, kSize));
    std::vector<float> a(size), b(size), c(size);
    const auto best = [](const auto& product) {
      auto least = std::chrono::steady_clock::duration::max();
      for (int i = 0; i < 7; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        product();
        least = std::min(least, std::chrono::steady_clock::now() - begin);
      }
      return least;
    };
    const auto in_pairs = best([&] {
      multiply_pairs(kSize, kSize, kSize / 2, a.data(), b.data(), c.data(), kSize, true);
    });
    const auto in_float32 = best([&] {
      multiply<float>(kSize, kSize, kSize, {a.data(), kSize, 1}, b.data(), {}, c.data(), kSize);
    });
    return in_pairs < in_float32 * 3 / 4;
  }();
  return faster;
}

void round_pairs(std::int64_t m, std::int64_t k, const float* x, float* pairs) {
  HWY_DYNAMIC_DISPATCH(round_pairs_all)(m, k, x, pairs);
}

void pack_pairs(const float* w, std::int64_t row, std::int64_t k, std::int64_t n, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack_pairs_all)(w, row, k, n, packed);
}

void multiply_pairs(std::int64_t m, std::int64_t n, std::int64_t pairs, const float* a,
                    const float* packed, float* c, std::int64_t c_row, bool at_once) {
  HWY_DYNAMIC_DISPATCH(multiply_pairs_all)(at_once, m, n, pairs, a, packed, c, c_row);
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
