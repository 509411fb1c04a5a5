#include "core/seed.hpp"

#include "prelude.hpp"

namespace nas {
namespace {

TEST(Mix64, IsTheFinaliserOfSplitMix64) {
  // First outputs of SplitMix64 with seed 0 (Steele, Lea & Flood 2014; Vigna's splitmix64.c).
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafULL);
  RandomEngine engine(0);
  EXPECT_EQ(engine(), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(engine(), 0x6e789e6aa1b965f4ULL);
  EXPECT_EQ(engine(), 0x06c45d188009454fULL);
}

// A change of these numbers changes every result that was ever recorded.
TEST(DeriveSeed, FixedValues) {
  EXPECT_EQ(derive_seed(42, 0, "init", "embedding"), 0x864c4fe179d70607ULL);
  EXPECT_EQ(derive_seed(42, 0, "dropout", std::int64_t{7}), 0x3d768ea1f35d4f82ULL);
}

TEST(DeriveSeed, EveryArgumentMatters) {
  const std::set<std::uint64_t> seeds{derive_seed(42, 0, "init", "w"),
                                      derive_seed(43, 0, "init", "w"),
                                      derive_seed(42, 1, "init", "w"),
                                      derive_seed(42, 0, "batch", "w"),
                                      derive_seed(42, 0, "init", "v"),
                                      derive_seed(42, 0, "init", std::int64_t{0}),
                                      derive_seed(42, 0, "init", std::int64_t{1})};
  EXPECT_EQ(seeds.size(), 7U);
}

TEST(RandomEngine, UniformIsInRangeAndUniform) {
  RandomEngine engine(1);
  double sum = 0.0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = engine.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * 0.289 / std::sqrt(kDraws));
}

TEST(RandomEngine, BelowReachesEveryNumberEquallyOften) {
  RandomEngine engine(2);
  std::vector<int> counts(7, 0);
  constexpr int kDraws = 70000;
  for (int i = 0; i < kDraws; ++i) ++counts.at(static_cast<std::size_t>(engine.below(7)));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 5 * 93);
  EXPECT_EQ(engine.below(1), 0);
}

}  // namespace
}  // namespace nas
