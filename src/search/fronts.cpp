#include "search/fronts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <pagmo/utils/multi_objective.hpp>

#include "search/genetic_variation.hpp"

namespace nas {

std::vector<Points> fronts_of(const ByPoint& points) {
  std::vector<Points> fronts;
  for (const auto& [point, whose] : points) {
    const auto front =
        std::partition_point(fronts.begin(), fronts.end(), [&point = point](const Points& members) {
          return std::any_of(members.rbegin(), members.rend(),
                             [&point](const Point& member) { return dominates(member, point); });
        });
    (front == fronts.end() ? fronts.emplace_back() : *front).push_back(point);
  }
  return fronts;
}

std::vector<double> crowding(const Points& front) {
  if (front.size() <= 2) {
    return std::vector<double>(front.size(), std::numeric_limits<double>::infinity());
  }
  const auto differing = differing_objectives(front);
  // Points of which none dominates another differ in two objectives at least, pagmo's need, or none.
  if (differing.front().size() < 2) return std::vector<double>(front.size(), 0.0);
  auto distances = pagmo::crowding_distance(differing);
  // Infinite objectives leave NaN, which cannot be sorted.
  std::replace_if(
      distances.begin(), distances.end(), [](double distance) { return std::isnan(distance); },
      0.0);
  return distances;
}

}  // namespace nas
