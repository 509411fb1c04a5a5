#include "indicators/indicators.hpp"

#include "core/seed.hpp"
#include "indicators/archive.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

// The example that moocore's documentation publishes.
const Points kSmall{{5, 5}, {4, 6}, {2, 7}, {7, 4}};

TEST(Indicators, HypervolumeOfThePublishedExample) {
  EXPECT_DOUBLE_EQ(hypervolume(kSmall, {10, 10}), 38.0);
  EXPECT_DOUBLE_EQ(hypervolume({{-5, -5}, {-4, -6}, {-2, -7}, {-7, -4}}, {0, 0}), 39.0);
}

TEST(Indicators, HypervolumeIgnoresWhatIsNotBetterThanTheReference) {
  EXPECT_DOUBLE_EQ(hypervolume({{5, 5}, {11, 0}, {10, 1}}, {10, 10}), 25.0);
  EXPECT_DOUBLE_EQ(hypervolume({{10, 10}}, {10, 10}), 0.0);
  EXPECT_DOUBLE_EQ(hypervolume({}, {10, 10}), 0.0);
  EXPECT_DOUBLE_EQ(hypervolume({{3}, {2}, {12}}, {10}), 8.0);
}

TEST(Indicators, HypervolumeOfTheTrueFrontsOfZdt) {
  constexpr int kPoints = 20000;
  Points convex;
  Points concave;
  for (int i = 0; i <= kPoints; ++i) {
    const double x = static_cast<double>(i) / kPoints;
    convex.push_back({x, 1 - std::sqrt(x)});
    concave.push_back({x, 1 - x * x});
  }
  EXPECT_NEAR(hypervolume(convex, {1, 1}), 0.66667, 5e-5);
  EXPECT_NEAR(hypervolume(convex, {1.1, 1.1}), 0.87667, 5e-5);
  EXPECT_NEAR(hypervolume(concave, {1, 1}), 0.33333, 5e-5);
}

TEST(Indicators, HypervolumeInThreeDimensionsAgreesWithCountingCells) {
  // On an integer grid the volume is a number of cells.
  RandomEngine random(7);
  Points points(12, Point(3));
  for (auto& point : points) {
    for (auto& value : point) value = static_cast<double>(random.below(6));
  }
  int cells = 0;
  for (int x = 0; x < 6; ++x) {
    for (int y = 0; y < 6; ++y) {
      for (int z = 0; z < 6; ++z) {
        for (const auto& p : points) {
          if (p[0] <= x && p[1] <= y && p[2] <= z) {
            ++cells;
            break;
          }
        }
      }
    }
  }
  EXPECT_DOUBLE_EQ(hypervolume(points, {6, 6, 6}), cells);
}

TEST(Indicators, NonDominatedKeepsTheFirstOfEqualPoints) {
  EXPECT_EQ(non_dominated({{1, 2}, {2, 1}, {1, 2}, {2, 2}, {0, 3}}),
            (std::vector<std::size_t>{0, 1, 4}));
  EXPECT_TRUE(dominates({1, 2}, {1, 3}));
  EXPECT_FALSE(dominates({1, 2}, {1, 2}));
  EXPECT_FALSE(dominates({1, 3}, {2, 2}));
}

TEST(Indicators, KneeBulgesTowardsTheIdeal) {
  EXPECT_EQ(knee({{0, 10}, {1, 2}, {10, 0}, {5, 1.5}}), 1U);
  EXPECT_EQ(knee({{3, 4}}), 0U);
  // The same whatever the units.
  EXPECT_EQ(knee({{0, 1e7}, {0.1, 2e6}, {1, 0}, {0.5, 1.5e6}}), 1U);
}

TEST(Archive, WhatIsTakenOutBringsOthersBack) {
  Archive archive;
  archive.insert("lucky", {1, 1});
  archive.insert("solid", {2, 2});
  archive.insert("poor", {3, 3});
  EXPECT_FALSE(archive.erase("poor"));
  EXPECT_FALSE(archive.erase("poor"));
  EXPECT_TRUE(archive.erase("lucky"));
  ASSERT_EQ(archive.front().size(), 1U);
  EXPECT_EQ(archive.front().front().first, "solid");
  EXPECT_EQ(archive.size(), 1U);
}

/// The archive by its definition: after each change all members come again, one by one.
class ArchiveByTurns {
 public:
  using Front = std::vector<std::pair<std::string, Point>>;

  bool insert(const std::string& candidate, const Point& point) {
    const auto place = places_.try_emplace(candidate, places_inserted_);
    if (place.second) ++places_inserted_;
    const auto [known, fresh] = members_.try_emplace(place.first->second, candidate, point);
    if (fresh) return come(known->second);
    if (known->second.second == point) return false;
    known->second.second = point;
    return come_again();
  }

  bool erase(const std::string& candidate) {
    const auto place = places_.find(candidate);
    if (place == places_.end()) return false;
    members_.erase(place->second);
    places_.erase(place);
    return come_again();
  }

  [[nodiscard]] const Front& front() const { return front_; }

 private:
  bool come(const std::pair<std::string, Point>& member) {
    const auto& point = member.second;
    for (const auto& other : front_) {
      if (other.second == point || dominates(other.second, point)) return false;
    }
    std::erase_if(front_, [&](const auto& other) { return dominates(point, other.second); });
    front_.push_back(member);
    return true;
  }

  bool come_again() {
    const auto before = std::exchange(front_, {});
    for (const auto& [place, member] : members_) come(member);
    return front_ != before;
  }

  std::map<std::string, std::size_t> places_;
  std::size_t places_inserted_ = 0;
  std::map<std::size_t, std::pair<std::string, Point>> members_;
  Front front_;
};

/// As text, in which a NaN equals itself and the sign of a zero counts.
std::string text(const ArchiveByTurns::Front& front) {
  std::ostringstream text;
  for (const auto& [candidate, point] : front) {
    text << candidate;
    for (const double value : point) text << ' ' << std::hexfloat << value;
    text << '\n';
  }
  return text.str();
}

/// @param special  values among which one coordinate of twenty is drawn.
void expect_front_of_definition(std::size_t m, std::int64_t options,
                                const std::vector<double>& special) {
  RandomEngine random(17 * m + static_cast<std::uint64_t>(options));
  Archive archive;
  ArchiveByTurns expected;
  for (int step = 0; step < 800; ++step) {
    const auto candidate = std::to_string(random.below(60));
    if (random.below(5) == 0) {
      ASSERT_EQ(archive.erase(candidate), expected.erase(candidate)) << m << " step " << step;
    } else {
      Point point(m);
      for (auto& value : point) {
        value = static_cast<double>(random.below(options));
        if (random.below(20) == 0) {
          value = special[static_cast<std::size_t>(random.below(std::ssize(special)))];
        }
      }
      ASSERT_EQ(archive.insert(candidate, point), expected.insert(candidate, point))
          << m << " step " << step;
    }
    ASSERT_EQ(text(archive.front()), text(expected.front())) << m << " step " << step;
    ASSERT_EQ(archive.front_size(), expected.front().size());
    Points points;
    for (const auto& member : expected.front()) points.push_back(member.second);
    if (points == points) {  // no NaN
      ASSERT_EQ(archive.front_points(), points);
    }
  }
}

TEST(Archive, HasTheFrontOfItsDefinitionAfterEveryChange) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (std::size_t m = 1; m <= 4; ++m) {
    for (const std::int64_t options : {3, 12, 1'000'000}) {
      expect_front_of_definition(m, options, {-0.0, kInfinity, -kInfinity});
    }
  }
}

TEST(Archive, TakesWhatIsNoNumberAsBefore) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t m = 1; m <= 3; ++m) expect_front_of_definition(m, 5, {1, 2, 3, kNan});
}

TEST(Archive, AChangedPointOfALargeFrontCostsWhatItChanges) {
  // 10,000 members, all on the front, of which 10,000 change: nothing where each made it anew.
  constexpr int kMembers = 10'000;
  Archive archive;
  const auto line = [](int i) { return Point{1.0 * i, -1.0 * i}; };
  for (int i = 0; i < kMembers; ++i) archive.insert(std::to_string(i), line(2 * i));
  for (int i = 0; i < kMembers; ++i) {
    ASSERT_TRUE(archive.insert(std::to_string(i), line(2 * i + 1)));
  }
  EXPECT_EQ(archive.front_size(), 10'000U);
  EXPECT_EQ(archive.front_points().front(), line(1));
}

}  // namespace
}  // namespace nas
