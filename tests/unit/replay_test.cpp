#include "table/replay.hpp"

#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "small_table.hpp"

namespace nas {
namespace {

using namespace testing;

class ReplayTest : public ::testing::Test {
 protected:
  static Table make() {
    const TemporaryFolder folder;
    write_table(small_content(), folder.path() / "small.table");
    return Table(folder.path() / "small.table");  // in memory, hence readable without its name
  }
  /// Replicates that answer the first evaluations of a mechanism.
  static std::vector<std::int64_t> first(const Replay& replay, std::int64_t mechanism,
                                         std::int64_t count) {
    std::vector<std::int64_t> replicates;
    for (std::int64_t n = 0; n < count; ++n) replicates.push_back(replay.replicate(mechanism, n));
    return replicates;
  }
  /// Orders of the pool that occur over many search seeds and mechanisms.
  std::set<std::vector<std::int64_t>> orders(ReplayMode mode, std::uint64_t seeds,
                                             std::int64_t mechanisms) {
    std::set<std::vector<std::int64_t>> found;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const Replay replay(table_, mode, seed);
      for (std::int64_t i = 0; i < mechanisms; ++i) found.insert(first(replay, i, 3));
    }
    return found;
  }

  Table table_ = make();
};

TEST_F(ReplayTest, DrawsWithoutReplacementThenStartsAgain) {
  const Replay replay(table_, ReplayMode::noisy, 5);
  for (std::int64_t i = 0; i < table_.num_mechanisms(); ++i) {
    const auto drawn = first(replay, i, 7);
    EXPECT_EQ(std::set<std::int64_t>(drawn.begin(), drawn.begin() + 3),
              (std::set<std::int64_t>{0, 1, 2}));
    for (std::size_t n = 3; n < 7; ++n) EXPECT_EQ(drawn[n], drawn[n - 3]);
  }
}

TEST_F(ReplayTest, NoisyOrdersDifferBetweenMechanismsAndSeeds) {
  EXPECT_GT(orders(ReplayMode::noisy, 1, 12).size(), 3U);
  EXPECT_EQ(orders(ReplayMode::noisy, 40, 1).size(), 6U);
}

TEST_F(ReplayTest, PairedOrdersDifferBetweenSeedsOnly) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Replay replay(table_, ReplayMode::paired, seed);
    for (std::int64_t i = 1; i < 12; ++i) EXPECT_EQ(first(replay, i, 4), first(replay, 0, 4));
  }
  EXPECT_EQ(orders(ReplayMode::paired, 40, 1).size(), 6U);
}

TEST_F(ReplayTest, EqualSeedsSeeEqualNoise) {
  const Replay once(table_, ReplayMode::noisy, 9);
  const Replay again(table_, ReplayMode::noisy, 9);
  for (std::int64_t i = 0; i < 12; ++i) EXPECT_EQ(first(once, i, 3), first(again, i, 3));
}

TEST_F(ReplayTest, AMeanIsNoReplicate) {
  EXPECT_THROW((void)Replay(table_, ReplayMode::mean, 0).replicate(0, 0), std::logic_error);
}

TEST(ReplayModes, HaveNames) {
  for (const auto mode : {ReplayMode::noisy, ReplayMode::mean, ReplayMode::paired}) {
    EXPECT_EQ(parse_replay_mode(to_string(mode)), mode);
  }
  EXPECT_THAT(
      [] { (void)parse_replay_mode("best"); },
      ::testing::ThrowsMessage<InputError>("mode = best, must be one of noisy, mean, paired"));
}

}  // namespace
}  // namespace nas
