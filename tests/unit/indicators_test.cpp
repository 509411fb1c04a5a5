#include "indicators/indicators.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "core/seed.hpp"
#include "indicators/archive.hpp"

namespace nas {
namespace {

// The example that moocore's documentation publishes.
const Points kSmall{{5, 5}, {4, 6}, {2, 7}, {7, 4}};

Points random_points(std::size_t n, std::size_t m, std::uint64_t seed) {
  RandomEngine random(seed);
  Points points(n, Point(m));
  for (auto& point : points) {
    for (auto& value : point) value = random.uniform();
  }
  return points;
}

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

TEST(Archive, HoldsTheFrontOfEverythingInserted) {
  Archive archive;
  const auto points = random_points(300, 3, 11);
  for (std::size_t i = 0; i < points.size(); ++i) archive.insert(std::to_string(i), points[i]);
  std::vector<std::string> expected;
  for (const auto i : non_dominated(points)) expected.push_back(std::to_string(i));
  std::vector<std::string> found;
  for (const auto& [name, point] : archive.front()) found.push_back(name);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(archive.size(), 300U);
}

TEST(Archive, AReplacedPointCanLeaveTheFrontAndBringOthersBack) {
  Archive archive;
  EXPECT_TRUE(archive.insert("lucky", {1, 1}));
  EXPECT_FALSE(archive.insert("solid", {2, 2}));
  EXPECT_FALSE(archive.insert("lucky", {1, 1}));
  EXPECT_TRUE(archive.insert("lucky", {3, 3}));
  ASSERT_EQ(archive.front().size(), 1U);
  EXPECT_EQ(archive.front().front().first, "solid");
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

}  // namespace
}  // namespace nas
