#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "cuda/elementwise.hpp"
#include "cuda/kernel_memory.hpp"
#include "kernels/elementwise.hpp"

namespace nas::cuda {
namespace {

template <class Real>
class ElementwiseKernels : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(ElementwiseKernels, Reals);

constexpr std::int64_t kModels = 3;
constexpr std::int64_t kSize = 70001;  // more than a block of the mask, and no multiple of anything
constexpr std::uint64_t kSite = 5;

/// What a map of ours and the CPU's give, the CPU's model by model.
template <class Real>
struct Both {
  Array<Real> ours = unwritten<Real>(kModels * kSize);
  Array<Real> expected = unwritten<Real>(kModels * kSize);
  Array<std::uint64_t> seeds{11, 12, 13};
  Dropout dropout;

  explicit Both(double share) : dropout(Dropout::of(seeds.data(), kSite, share)) {}

  void on_cpu(const std::function<void(std::int64_t, const kernels::Dropout&)>& run) const {
    for (std::int64_t r = 0; r < kModels; ++r) {
      run(r * kSize, {mix64(mix64(seeds[static_cast<std::size_t>(r)]) ^ kSite), dropout.threshold,
                      dropout.scale});
    }
  }
};

TYPED_TEST(ElementwiseKernels, EqualTheCpusWithAndWithoutDropout) {
  const auto x = random_numbers<TypeParam>(kModels * kSize, 1, 4.0);
  const auto y = random_numbers<TypeParam>(kModels * kSize, 2, 4.0);
  for (const double share : {0.0, 0.3}) {
    Both<TypeParam> both(share);
    for (const auto map : {Map::drop, Map::add_dropped, Map::gelu, Map::gelu_backward}) {
      map_elements<TypeParam>(map, {x.data(), y.data()}, both.ours.data(), kModels, kSize,
                              both.dropout, AtOnce());
      both.on_cpu([&](std::int64_t at, const kernels::Dropout& dropout) {
        kernels::map_elements<TypeParam>(map, {x.data() + at, y.data() + at},
                                         both.expected.data() + at, 0, kSize, dropout);
      });
      const auto what = "map " + std::to_string(static_cast<int>(map));
      expect_close(both.ours, both.expected, what);
      for (std::size_t i = 0; i < both.ours.size(); ++i) {
        ASSERT_EQ(both.ours[i] == 0, both.expected[i] == 0) << what << ", mask of element " << i;
      }
    }
  }
}

TEST(Dropout, ReadsTheSeedsWhenTheKernelRuns) {
  Both<float> both(0.5);
  const Array<float> ones(static_cast<std::size_t>(kModels * kSize), 1.0F);
  map_elements<float>(Map::drop, {ones.data()}, both.ours.data(), kModels, kSize, both.dropout,
                      AtOnce());
  const auto first = both.ours;
  both.seeds[1] = 99;
  map_elements<float>(Map::drop, {ones.data()}, both.ours.data(), kModels, kSize, both.dropout,
                      AtOnce());
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
