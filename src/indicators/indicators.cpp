#include "indicators/indicators.hpp"

#include <algorithm>
#include <limits>

#include <pagmo/utils/hypervolume.hpp>

namespace nas {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

bool dominates(const Point& a, const Point& b) {
  bool better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    better = better || a[i] < b[i];
  }
  return better;
}

std::vector<std::size_t> non_dominated(const Points& points) {
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < points.size(); ++i) {
    bool beaten = false;
    for (std::size_t j = 0; j < points.size() && !beaten; ++j) {
      beaten = dominates(points[j], points[i]) || (j < i && points[j] == points[i]);
    }
    if (!beaten) front.push_back(i);
  }
  return front;
}

double hypervolume(const Points& points, const Point& reference) {
  Points inside;
  for (const auto& point : points) {
    bool better = true;
    for (std::size_t i = 0; i < point.size(); ++i) better = better && point[i] < reference[i];
    if (better) inside.push_back(point);
  }
  if (inside.empty()) return 0.0;
  if (reference.size() == 1) {
    return reference[0] - std::min_element(inside.begin(), inside.end())->front();
  }
  return pagmo::hypervolume(inside, /*verify=*/false).compute(reference);
}

std::size_t knee(const Points& front) {
  if (front.size() < 3) return 0;
  const std::size_t m = front.front().size();
  Point low(m, kInfinity);
  Point high(m, -kInfinity);
  for (const auto& point : front) {
    for (std::size_t i = 0; i < m; ++i) {
      low[i] = std::min(low[i], point[i]);
      high[i] = std::max(high[i], point[i]);
    }
  }
  // In scaled coordinates the plane through the extremes is sum = 1: the knee has the least sum.
  std::size_t best = 0;
  double least = kInfinity;
  for (std::size_t k = 0; k < front.size(); ++k) {
    double sum = 0.0;
    for (std::size_t i = 0; i < m; ++i) {
      if (high[i] > low[i]) sum += (front[k][i] - low[i]) / (high[i] - low[i]);
    }
    if (sum < least) {
      least = sum;
      best = k;
    }
  }
  return best;
}

}  // namespace nas
