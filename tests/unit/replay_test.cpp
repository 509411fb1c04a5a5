#include "table/replay.hpp"

#include <stdexcept>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "small_table.hpp"

namespace nas {
namespace {

using namespace testing;
using ::testing::IsSubsetOf;
using ::testing::UnorderedElementsAre;

class ReplayTest : public ::testing::Test {
 protected:
  static Table make(std::vector<Evaluation> cells = small_cells()) {
    const TemporaryFolder folder;
    write_table(small_content(std::move(cells)), folder.path() / "small.table");
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

TEST_F(ReplayTest, FromTheFirstHeldOutOneOnReplicatesAnswerByTheirNumbers) {
  const Replay replay(make(unequal_cells()), ReplayMode::noisy, 5, Draw{.seed = 1, .number = 2});
  for (std::int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(replay.replicate(0, kFirstHeldOutReplicate + i), i);
  }
}

/// Of a table in which all mechanisms have three replicates, the first eight, the second five.
class DrawTest : public ReplayTest {
 protected:
  using Numbers = std::vector<std::int64_t>;
  [[nodiscard]] Numbers redrawn(std::int64_t mechanism, const Draw& draw) const {
    return redrawn_replicates(unequal_, mechanism, draw);
  }
  Table unequal_ = make(unequal_cells());
};

TEST_F(DrawTest, ReplicatesThatChoseAreLeftOutWhereThereAreMoreOthers) {
  ASSERT_EQ(unequal_.num_replicates(), 3);
  EXPECT_THAT(redrawn_replicates(unequal_, 0), ElementsAre(3, 4, 5, 6, 7));
  EXPECT_THAT(redrawn_replicates(unequal_, 1), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(redrawn_replicates(unequal_, 2), ElementsAre(0, 1, 2));
}

TEST_F(DrawTest, NoneIsLeftOutWhereAsManyOthersWouldLeaveNoJudge) {
  auto cells = unequal_cells();
  std::erase_if(cells, [](const Evaluation& cell) { return cell.replicate > 5; });
  EXPECT_EQ(redrawn_replicates(make(cells), 0).size(), 6U);
}

TEST_F(DrawTest, APermutationIsAFunctionOfSeedAndNumberAlone) {
  const Table again = make(unequal_cells());
  for (std::int64_t mechanism = 0; mechanism < 3; ++mechanism) {
    std::set<Numbers> found;
    for (std::int64_t number = 0; number < 40; ++number) {
      const auto order = redrawn(mechanism, {.seed = 7, .number = number});
      EXPECT_EQ(redrawn_replicates(again, mechanism, {.seed = 7, .number = number}), order);
      EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), order.size());
      EXPECT_THAT(order, IsSubsetOf(redrawn_replicates(unequal_, mechanism)));
      EXPECT_EQ(order.size(), redrawn_replicates(unequal_, mechanism).size());
      found.insert(order);
    }
    EXPECT_GE(found.size(), mechanism == 2 ? 6U : 30U);
  }
  EXPECT_NE(redrawn(0, {.seed = 7, .number = 0}), redrawn(0, {.seed = 8, .number = 0}));
  EXPECT_NE(redrawn(0, {.seed = 7, .number = 1}), redrawn(0, {.seed = 7, .number = 0}));
}

/// python/attnas/analysis/replay.py has it likewise, and its test the same numbers.
TEST_F(DrawTest, HasTheseNumbers) {
  EXPECT_THAT(redrawn(0, {.seed = 7, .number = 11}), ElementsAre(6, 5, 7, 4, 3));
  EXPECT_THAT(redrawn(1, {.seed = 7, .number = 11}), ElementsAre(3, 0, 4, 1, 2));
}

TEST_F(DrawTest, ThoseThatAnswerSearchesAreNotThoseThatJudge) {
  std::set<std::int64_t> taking_part;
  for (std::int64_t number = 0; number < 20; ++number) {
    const Draw draw{.seed = 7, .number = number};
    const auto order = redrawn(0, draw);
    const std::set<std::int64_t> answering(order.begin(), order.begin() + 3);
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const auto seen = first(Replay(unequal_, ReplayMode::noisy, seed, draw), 0, 5);
      EXPECT_EQ(std::set<std::int64_t>(seen.begin(), seen.end()), answering);
      taking_part.insert(seen.begin(), seen.end());
    }
  }
  EXPECT_THAT(taking_part, UnorderedElementsAre(3, 4, 5, 6, 7));
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
