#include <cstring>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "kernels/cuda/elementwise.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/kernel_memory.hpp"

namespace nas::cuda {
namespace {

template <class Real>
class ElementwiseKernels : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(ElementwiseKernels, Reals);

constexpr std::int64_t kModels = 3;
// More than a block of the mask, and rows that are packs of four or not.
constexpr std::int64_t kRows = 547;
constexpr std::int64_t kWidth = 132;
constexpr std::int64_t kOddWidth = 131;
constexpr std::int64_t kSize = kRows * kWidth;
constexpr std::uint64_t kSite = 5;

/// What a map of ours and the CPU's give, the CPU's model by model.
template <class Real>
struct Both {
  std::int64_t width = kWidth;
  std::int64_t size = kRows * width;  ///< of a model
  Array<Real> ours = unwritten<Real>(kModels * size);
  Array<Real> expected = unwritten<Real>(kModels * size);
  Array<std::uint64_t> seeds{11, 12, 13};
  Dropout dropout;

  explicit Both(double share, std::int64_t columns = kWidth)
      : width(columns), dropout(Dropout::of(seeds.data(), kSite, share)) {}

  RowMap<Real> map(Map map, const Array<Real>& x, const Array<Real>& y) {
    RowMap<Real> rows{.map = map, .models = kModels, .rows = kRows, .width = width};
    rows.x = const_cast<Real*>(x.data());
    rows.y = const_cast<Real*>(y.data());
    rows.out = ours.data();
    rows.dropout = dropout;
    return rows;
  }

  void on_cpu(const std::function<void(std::int64_t, const kernels::Dropout&)>& run) const {
    for (std::int64_t r = 0; r < kModels; ++r) {
      run(r * size, {mix64(mix64(seeds[static_cast<std::size_t>(r)]) ^ kSite), dropout.threshold,
                     dropout.scale});
    }
  }
};

TYPED_TEST(ElementwiseKernels, EqualTheCpusWithAndWithoutDropout) {
  const auto x = random_numbers<TypeParam>(kModels * kSize, 1, 4.0);
  const auto y = random_numbers<TypeParam>(kModels * kSize, 2, 4.0);
  for (const auto width : {kWidth, kOddWidth}) {
    for (const double share : {0.0, 0.3}) {
      Both<TypeParam> both(share, width);
      for (const auto map : {Map::drop, Map::add_dropped, Map::gelu, Map::gelu_backward}) {
        map_rows<TypeParam>(both.map(map, x, y), AtOnce());
        both.on_cpu([&](std::int64_t at, const kernels::Dropout& dropout) {
          kernels::map_elements<TypeParam>(map, {x.data() + at, y.data() + at},
                                           both.expected.data() + at, 0, both.size, dropout);
        });
        const auto what = "map " + std::to_string(static_cast<int>(map));
        expect_close(both.ours, both.expected, what);
        for (std::size_t i = 0; i < both.ours.size(); ++i) {
          ASSERT_EQ(both.ours[i] == 0, both.expected[i] == 0) << what << ", mask of element " << i;
        }
      }
    }
  }
}

/// A part of a batch, from some element on, is masked as in the whole.
TYPED_TEST(ElementwiseKernels, GoOnWithAMask) {
  const Array<TypeParam> ones(static_cast<std::size_t>(kModels * kSize), 1);
  for (const std::int64_t first : {std::int64_t{1}, std::int64_t{65500}}) {
    Both<TypeParam> both(0.4);
    both.dropout.first = first;
    map_rows<TypeParam>(both.map(Map::drop, ones, ones), AtOnce());
    both.on_cpu([&](std::int64_t at, kernels::Dropout dropout) {
      dropout.first = first;
      kernels::map_elements<TypeParam>(Map::drop, {ones.data()}, both.expected.data() + at, 0,
                                       both.size, dropout);
    });
    EXPECT_EQ(both.ours, both.expected) << first;
  }
}

/// map(x + bias), and what it gives summed over rows, with and without writing it.
TYPED_TEST(ElementwiseKernels, AddBiasesAndSumRows) {
  const auto x = random_numbers<TypeParam>(kModels * kSize, 1, 4.0);
  const auto y = random_numbers<TypeParam>(kModels * kSize, 2, 4.0);
  const auto bias = random_numbers<TypeParam>(kModels * kWidth, 3);
  for (const auto width : {kWidth, kOddWidth}) {
    Both<TypeParam> both(0.3, width);
    auto with_bias = x;
    for (std::int64_t i = 0; i < kModels * both.size; ++i) {
      with_bias[static_cast<std::size_t>(i)] +=
          bias[static_cast<std::size_t>(i / both.size * width + i % width)];
    }
    for (const auto map : {Map::drop, Map::gelu_backward}) {
      map_rows<TypeParam>(both.map(map, with_bias, y), AtOnce());
      const auto expected = both.ours;
      Array<double> sums(static_cast<std::size_t>(kModels * width));
      for (std::int64_t i = 0; i < kModels * both.size; ++i) {
        sums[static_cast<std::size_t>(i / both.size * width + i % width)] +=
            expected[static_cast<std::size_t>(i)];
      }
      for (const bool writes : {true, false}) {
        both.ours = unwritten<TypeParam>(kModels * both.size);
        auto rows = both.map(map, x, y);
        rows.bias = bias.data();
        auto ours = unwritten<TypeParam>(kModels * width);
        auto scratch = unwritten<TypeParam>(map_scratch_size(rows));
        rows.sums = ours.data();
        rows.scratch = scratch.data();
        if (!writes) rows.out = {};
        in_both_orders([&] {
          map_rows<TypeParam>(rows, AtOnce());
          expect_close(ours, Array<TypeParam>(sums.begin(), sums.end()), "sums");
        });
        if (writes) {
          EXPECT_EQ(both.ours, expected);
        }
      }
    }
  }
}

TEST(ElementwiseArray, SumsOfAModelAreBitEqualAlone) {
  Both<float> both(0.3);
  const auto x = random_numbers<float>(kModels * kSize, 1, 4.0);
  auto rows = both.map(Map::drop, x, x);
  auto together = unwritten<float>(kModels * kWidth);
  auto alone = unwritten<float>(kWidth);
  auto scratch = unwritten<float>(map_scratch_size(rows));
  rows.scratch = scratch.data();
  rows.sums = together.data();
  map_rows(rows, AtOnce());
  rows.models = 1;
  rows.x = const_cast<float*>(x.data()) + 2 * kSize;
  rows.dropout.seeds += 2;
  rows.sums = alone.data();
  map_rows(rows, AtOnce());
  EXPECT_EQ(alone, Array<float>(together.end() - kWidth, together.end()));
}

/// The upper half of a float, to the nearest, of two equally near ones to the even one.
std::uint16_t rounded(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  const std::uint32_t below = bits & 0xffffU;
  const bool up = below > 0x8000U || (below == 0x8000U && (bits & 0x10000U) != 0);
  return static_cast<std::uint16_t>((bits >> 16U) + (up ? 1 : 0));
}

float of_bits(std::uint16_t half) {
  const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16U;
  float x = 0;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

TEST(RoundedElements, AreReadAndWrittenToTheNearest) {
  for (const auto width : {kWidth, kOddWidth}) {
    Both<float> both(0.3, width);
    auto x = random_numbers<float>(kModels * both.size, 1, 4.0);
    x[0] = of_bits(0x3f80) * (1.0F + 0x1.0p-8F);  // halfway, to an even one below
    x[1] = of_bits(0x3f81) + 0x1.0p-8F;           // halfway, to an even one above
    x[2] = std::numeric_limits<float>::infinity();
    x[3] = std::numeric_limits<float>::quiet_NaN();
    auto rows = both.map(Map::drop, x, x);
    rows.dropout = {};
    Array<std::uint16_t> bits(x.size());
    rows.out = {bits.data(), true};
    map_rows(rows, AtOnce());
    EXPECT_TRUE(std::isnan(of_bits(bits[3])));
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (i == 3) continue;
      ASSERT_EQ(bits[i], rounded(x[i])) << i << ": " << x[i];
    }
    rows.x = {bits.data(), true};
    rows.out = both.ours.data();
    map_rows(rows, AtOnce());
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (i == 3) continue;
      ASSERT_EQ(both.ours[i], of_bits(bits[i])) << i;
    }
  }
}

TEST(Dropout, ReadsTheSeedsWhenTheKernelRuns) {
  Both<float> both(0.5);
  const Array<float> ones(static_cast<std::size_t>(kModels * kSize), 1.0F);
  map_rows(both.map(Map::drop, ones, ones), AtOnce());
  const auto first = both.ours;
  both.seeds[1] = 99;
  map_rows(both.map(Map::drop, ones, ones), AtOnce());
  const auto differs = [&](std::int64_t model) {
    return !std::equal(first.begin() + model * kSize, first.begin() + (model + 1) * kSize,
                       both.ours.begin() + model * kSize);
  };
  EXPECT_FALSE(differs(0));
  EXPECT_TRUE(differs(1));
  EXPECT_FALSE(differs(2));
}

}  // namespace
}  // namespace nas::cuda
