// Products of bfloat16 pairs by tiles of 16 x 16 sums, once per instruction set.

#if defined(NAS_KERNELS_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NAS_KERNELS_TILES_INL_H_
#undef NAS_KERNELS_TILES_INL_H_
#else
#define NAS_KERNELS_TILES_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include <hwy/highway.h>

#include "kernels/pairs.hpp"
#include "kernels/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

constexpr std::int64_t kMostParts = 3;
constexpr std::int64_t kTilePairs = 16;  // of factors that a tile holds

/// The first elements of pairs, and the second, as float32.
template <class D>
HWY_INLINE Vector<D> lower(D d, Vector<D> pairs) {
  const hn::RebindToUnsigned<D> bits;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::BitCast(bits, pairs)));
}
template <class D>
HWY_INLINE Vector<D> upper(D d, Vector<D> pairs) {
  const hn::RebindToUnsigned<D> bits;
  return hn::BitCast(d, hn::And(hn::BitCast(bits, pairs), hn::Set(bits, 0xffff0000U)));
}

/// Factors of kPanelRows x kPanel sums, `pairs` deep, a multiple of kTilePairs.
struct TileFactors {
  const float* a;  ///< (rows, ...), rows a_row apart, parts a_part
  std::int64_t a_row, a_part;
  const float* b;  ///< (pairs, kPanel), parts b_part apart
  std::int64_t b_part, pairs;
  std::int64_t parts;
};

/// Calls add(i, j) for the products x_i y_j of P parts in their order.
template <class Add>
HWY_INLINE void for_parts(std::int64_t parts, const Add& add) {
  for (auto j = parts - 1; j >= 0; --j) {
    for (auto i = parts - 1 - j; i >= 0; --i) add(i, j);
  }
}

struct TilesByVectors {
  static void begin() {}
  static void end() {}

  static void multiply(std::int64_t rows, const TileFactors& f, Initial<float> initial, float* c,
                       std::int64_t c_row) {
    const Wide<float> d;
    constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t at = 0; at < kPanel<float>; at += kLanes) {
        auto sum = initial.data == nullptr ? hn::Zero(d)
                                           : hn::LoadU(d, initial.data + i * initial.row + at);
        for (std::int64_t first = 0; first < f.pairs; first += kTilePairs) {
          for_parts(f.parts, [&](std::int64_t x, std::int64_t y) {
            const float* const a = f.a + i * f.a_row + x * f.a_part;
            const float* const b = f.b + y * f.b_part + at;
            auto even = hn::Zero(d), odd = hn::Zero(d);
            for (auto p = first; p < first + kTilePairs; ++p) {
              const auto factor = hn::Set(d, a[p]), row = hn::LoadU(d, b + p * kPanel<float>);
              even = hn::MulAdd(lower(d, factor), lower(d, row), even);
              odd = hn::MulAdd(upper(d, factor), upper(d, row), odd);
            }
            sum = hn::Add(sum, hn::Add(even, odd));
          });
        }
        hn::StoreU(sum, d, c + i * c_row + at);
      }
    }
  }
};

#if HWY_TARGET == HWY_AVX3
// NOLINTBEGIN(hicpp-no-assembler)
/// By AMX: registers 0 to 3 are sums of 32 x 32, 4 and 5 hold rows of A, 6 and 7 columns of B.
struct TilesAtOnce {
  static void begin() {
    struct alignas(64) Shapes {  // eight tiles of 16 rows of 64 bytes
      std::uint8_t palette = 1, start = 0, reserved[14] = {};
      std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    };
    static constexpr Shapes kShapes;
    asm volatile("ldtilecfg %0" : : "m"(kShapes));
  }
  /// Others of the thread find no tiles in use, and the system none to save.
  static void end() { asm volatile("tilerelease"); }

  static void multiply(std::int64_t /*rows*/, const TileFactors& f, Initial<float> initial,
                       float* c, std::int64_t c_row) {
    if (initial.data == nullptr) {
      asm volatile("tilezero %tmm0\n\ttilezero %tmm1\n\ttilezero %tmm2\n\ttilezero %tmm3");
    } else {
      const float* const lower = initial.data + 16 * initial.row;
      load<0>(initial.data, initial.row);
      load<1>(initial.data + 16, initial.row);
      load<2>(lower, initial.row);
      load<3>(lower + 16, initial.row);
    }
    for (std::int64_t first = 0; first < f.pairs; first += kTilePairs) {
      std::int64_t column = -1;  // the part of B that is loaded
      for_parts(f.parts, [&](std::int64_t x, std::int64_t y) {
        const float* const a = f.a + x * f.a_part + first;
        if (y != column) {
          const float* const b = f.b + y * f.b_part + first * kPanelRows;
          load<6>(b, kPanelRows);
          load<7>(b + 16, kPanelRows);
          column = y;
        }
        load<4>(a, f.a_row);
        load<5>(a + 16 * f.a_row, f.a_row);
        asm volatile(
            "tdpbf16ps %tmm6, %tmm4, %tmm0\n\ttdpbf16ps %tmm7, %tmm4, %tmm1\n\t"
            "tdpbf16ps %tmm6, %tmm5, %tmm2\n\ttdpbf16ps %tmm7, %tmm5, %tmm3");
      });
    }
    store<0>(c, c_row);
    store<1>(c + 16, c_row);
    store<2>(c + 16 * c_row, c_row);
    store<3>(c + 16 * c_row + 16, c_row);
  }

 private:
  template <int kTile>
  static HWY_INLINE void load(const float* from, std::int64_t row) {
    asm volatile("tileloadd (%0,%1,4), %%tmm%c2" : : "r"(from), "r"(row), "i"(kTile) : "memory");
  }
  template <int kTile>
  static HWY_INLINE void store(float* to, std::int64_t row) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,4)" : : "r"(to), "r"(row), "i"(kTile) : "memory");
  }
};
// NOLINTEND(hicpp-no-assembler)
#else
using TilesAtOnce = TilesByVectors;
#endif

/// Some rows of parts (parts, rows, depth) of a left factor, filled up with zeros where it ends.
struct TileRows {
  HWY_ALIGN float numbers[static_cast<std::size_t>(kMostParts * kPanelRows * kDepth)];
  static constexpr std::int64_t kPart = kPanelRows * kDepth;

  /// @param packed  their panel of A': (depth, kPanel), parts depth x kPanel apart, and the next ones.
  void take_packed(std::int64_t rows, std::int64_t depth, std::int64_t parts, const float* packed) {
    for (std::int64_t first = 0; first < kPanelRows; first += kPanel<float>) {
      for (std::int64_t q = 0; q < parts; ++q) {
        float* const to = numbers + q * kPart + first * kDepth;
        if (first >= rows) {
          std::fill_n(to, kPanel<float> * kDepth, 0.0F);
        } else {
          transpose(kPanel<float>, depth, packed + (first * parts + q * kPanel<float>)*depth,
                    kPanel<float>, to, kDepth);
        }
      }
    }
    fill_up(depth, parts);
  }

  void take(std::int64_t rows, std::int64_t depth, std::int64_t parts, const float* a,
            std::int64_t a_row, std::int64_t a_part) {
    for (std::int64_t q = 0; q < parts; ++q) {
      for (std::int64_t i = 0; i < kPanelRows; ++i) {
        float* const to = numbers + q * kPart + i * kDepth;
        if (i < rows) {
          std::copy_n(a + i * a_row + q * a_part, depth, to);
        } else {
          std::fill_n(to, depth, 0.0F);
        }
      }
    }
    fill_up(depth, parts);
  }

 private:
  void fill_up(std::int64_t depth, std::int64_t parts) {
    const auto end = (depth + kTilePairs - 1) / kTilePairs * kTilePairs;
    for (std::int64_t i = 0; i < parts * kPanelRows; ++i) {
      std::fill(numbers + i * kDepth + depth, numbers + i * kDepth + end, 0.0F);
    }
  }
};

/// C (m, n) = initial + A B of factors in parts; what a tile would reach beyond their ends is copied.
template <class Op>
void multiply_in_tiles(std::int64_t m, std::int64_t n, std::int64_t pairs, LeftPairs a,
                       const float* packed, Initial<float> initial, float* c, std::int64_t c_row,
                       std::int64_t parts) {
  constexpr std::int64_t kRows =
      256;  // of C, which with their rows of A stay in the second-level cache
  constexpr auto kWidth = kPanel<float>;
  TileRows left;
  HWY_ALIGN float right[static_cast<std::size_t>(kMostParts * kDepth * kWidth)];
  HWY_ALIGN float sums[static_cast<std::size_t>(kPanelRows * kWidth)];
  const auto columns = parts * panels<float>(n) * kWidth;
  const auto a_row = a.row > 0 ? a.row : parts * pairs;
  const auto left_columns = parts * panels<float>(a.of) * kWidth;

  /// A panel of B, and C's.
  const auto multiply_panel = [&](std::int64_t rows, std::int64_t width, TileFactors factors,
                                  std::int64_t depth, Initial<float> from, float* to) {
    if (depth != factors.pairs) {
      for (std::int64_t q = 0; q < parts; ++q) {
        float* const part = right + q * kDepth * kWidth;
        std::copy_n(factors.b + q * factors.b_part, depth * kWidth, part);
        std::fill(part + depth * kWidth, part + factors.pairs * kWidth, 0.0F);
      }
      factors.b = right;
      factors.b_part = kDepth * kWidth;
    }
    if (rows == kPanelRows && width == kWidth) {
      Op::multiply(rows, factors, from, to, c_row);
      return;
    }
    std::fill_n(sums, kPanelRows * kWidth, 0.0F);
    for (std::int64_t i = 0; from.data != nullptr && i < rows; ++i) {
      std::copy_n(from.data + i * from.row, width, sums + i * kWidth);
    }
    Op::multiply(rows, factors, {sums, kWidth}, sums, kWidth);
    for (std::int64_t i = 0; i < rows; ++i) std::copy_n(sums + i * kWidth, width, to + i * c_row);
  };

  Op::begin();
  for (std::int64_t side = 0; side < n; side += kColumnBlock) {
    for (std::int64_t top = 0; top < m; top += kRows) {
      for (std::int64_t begin = 0; begin < pairs; begin += kDepth) {
        const auto depth = std::min(kDepth, pairs - begin);
        const auto whole = (depth + kTilePairs - 1) / kTilePairs * kTilePairs;
        for (auto i = top; i < std::min(m, top + kRows); i += kPanelRows) {
          const auto rows = std::min(kPanelRows, m - i);
          TileFactors factors{left.numbers, kDepth, TileRows::kPart, nullptr, depth * kWidth,
                              whole,        parts};
          const float* const of_rows = a.data + i * a_row + begin;
          if (a.of != 0) {
            left.take_packed(rows, depth, parts,
                             a.data + begin * left_columns + (a.first + i) * parts * depth);
          } else if (rows < kPanelRows || depth != whole) {
            left.take(rows, depth, parts, of_rows, a_row, pairs);
          } else {
            factors.a = of_rows;
            factors.a_row = a_row;
            factors.a_part = pairs;
          }
          for (auto first = side; first < std::min(n, side + kColumnBlock); first += kWidth) {
            factors.b = packed + begin * columns + first * parts * depth;
            float* const out = c + i * c_row + first;
            multiply_panel(rows, std::min(kWidth, n - first), factors, depth,
                           begin == 0 ? initial.at(i, first) : Initial<float>{out, c_row}, out);
          }
        }
      }
    }
  }
  Op::end();
}

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#endif  // NAS_KERNELS_TILES_INL_H_
