#include "indicators/indicators.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <pagmo/utils/hypervolume.hpp>

namespace nas {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// max over the reference set of the min over the points of `distance`.
template <class Distance>
double worst_best(const Points& points, const Points& reference_set, Distance distance) {
  double worst = -kInfinity;
  for (const auto& reference : reference_set) {
    double best = kInfinity;
    for (const auto& point : points) best = std::min(best, distance(point, reference));
    worst = std::max(worst, best);
  }
  return worst;
}

template <class Distance>
double mean_best(const Points& points, const Points& reference_set, Distance distance) {
  double sum = 0.0;
  for (const auto& reference : reference_set) {
    double best = kInfinity;
    for (const auto& point : points) best = std::min(best, distance(point, reference));
    sum += best;
  }
  return sum / static_cast<double>(reference_set.size());
}

double tchebycheff(const Point& point, const Point& ideal, const Point& weights) {
  double worst = -kInfinity;
  for (std::size_t i = 0; i < point.size(); ++i) {
    worst = std::max(worst, weights[i] * (point[i] - ideal[i]));
  }
  return worst;
}

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

double igd(const Points& points, const Points& reference_set) {
  return mean_best(points, reference_set, [](const Point& point, const Point& reference) {
    double squares = 0.0;
    for (std::size_t i = 0; i < point.size(); ++i) {
      squares += (point[i] - reference[i]) * (point[i] - reference[i]);
    }
    return std::sqrt(squares);
  });
}

double igd_plus(const Points& points, const Points& reference_set) {
  return mean_best(points, reference_set, [](const Point& point, const Point& reference) {
    double squares = 0.0;
    for (std::size_t i = 0; i < point.size(); ++i) {
      const double worse = std::max(point[i] - reference[i], 0.0);
      squares += worse * worse;
    }
    return std::sqrt(squares);
  });
}

double additive_epsilon(const Points& points, const Points& reference_set) {
  return worst_best(points, reference_set, [](const Point& point, const Point& reference) {
    double largest = -kInfinity;
    for (std::size_t i = 0; i < point.size(); ++i) {
      largest = std::max(largest, point[i] - reference[i]);
    }
    return largest;
  });
}

double multiplicative_epsilon(const Points& points, const Points& reference_set) {
  return worst_best(points, reference_set, [](const Point& point, const Point& reference) {
    double largest = -kInfinity;
    for (std::size_t i = 0; i < point.size(); ++i) {
      largest = std::max(largest, point[i] / reference[i]);
    }
    return largest;
  });
}

// The lower envelope of the points' functions max(w x, (1 - w) y) changes its form only where some
// point's function turns (w x = (1 - w) y) and where a rising branch of one point meets a falling
// one of the other. Sorted by x, a front's falling branches (1 - w) y hold up to the turn of their
// own point, its rising branch w x up to the meeting with the next point's falling one.
double r2(const Points& points, const Point& ideal) {
  if (ideal.size() != 2) {
    throw std::invalid_argument("r2: exact for two objectives, got " +
                                std::to_string(ideal.size()));
  }
  std::vector<std::pair<double, double>> front;
  for (const auto i : non_dominated(points)) {
    front.emplace_back(points[i][0] - ideal[0], points[i][1] - ideal[1]);
  }
  // Large w weighs the first objective: there the points of small x are best. From w = 0 on, those
  // of large x and small y.
  std::sort(front.begin(), front.end(), std::greater<>());
  // Area under (1 - w) y, and under w x, between two weights.
  const auto falling = [](double y, double from, double to) {
    return y * ((to - from) - (to * to - from * from) / 2.0);
  };
  const auto rising = [](double x, double from, double to) {
    return x * (to * to - from * from) / 2.0;
  };
  const auto meeting = [](double x, double y) { return x + y > 0.0 ? y / (x + y) : 0.0; };
  double sum = 0.0;
  double from = 0.0;
  for (std::size_t i = 0; i < front.size(); ++i) {
    const auto& [x, y] = front[i];
    const double turn = meeting(x, y);
    const double end = i + 1 < front.size() ? meeting(x, front[i + 1].second) : 1.0;
    sum += falling(y, from, turn) + rising(x, turn, end);
    from = end;
  }
  return sum;
}

double r2(const Points& points, const Point& ideal, const Points& weights) {
  double sum = 0.0;
  for (const auto& weight : weights) {
    double best = kInfinity;
    for (const auto& point : points) best = std::min(best, tchebycheff(point, ideal, weight));
    sum += best;
  }
  return sum / static_cast<double>(weights.size());
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
