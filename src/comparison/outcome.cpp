#include "comparison/outcome.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "search/belief.hpp"
#include "search/search.hpp"

namespace nas {

namespace {

double volume(const Points& points) {
  return hypervolume(points, Point(points.front().size(), kReferencePoint));
}

}  // namespace

Truth::Truth(const ObjectiveSet& objectives, Points truth)
    : objectives_(objectives), truth_(std::move(truth)) {
  for (const auto& point : truth_) scaled_.push_back(objectives_.scaled(point));
  best_ = several() ? volume(scaled_) : (*std::min_element(truth_.begin(), truth_.end())).front();
}

double Truth::outcome(const Trajectory& trajectory, bool mean_of_answers) const {
  const auto width = static_cast<std::ptrdiff_t>(objectives_.objectives.size());
  std::map<std::int32_t, Belief> seen;
  auto fitness = trajectory.fitness.begin();
  for (const auto candidate : trajectory.candidates) {
    seen[candidate].add(Point(fitness, fitness + width), mean_of_answers);
    fitness += width;
  }
  if (seen.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (!several()) {
    const auto chosen = std::min_element(
        seen.begin(), seen.end(),
        [](const auto& a, const auto& b) { return a.second.point < b.second.point; });
    return truth_[static_cast<std::size_t>(chosen->first)].front() - best_;
  }
  std::vector<std::size_t> candidates;
  Points points;
  for (const auto& [candidate, belief] : seen) {
    candidates.push_back(static_cast<std::size_t>(candidate));
    points.push_back(belief.point);
  }
  Points chosen;
  for (const auto i : non_dominated(points)) chosen.push_back(scaled_[candidates[i]]);
  return volume(chosen) / best_;
}

}  // namespace nas
