#include "indicators/front_probability.hpp"

#include <algorithm>

#include "core/seed.hpp"

namespace nas {

namespace {

/// Mean over the drawn seeds; empty where one of them has no point, or, if that is judged, all.
Point mean_over(const Points& points, const std::vector<std::size_t>& seeds, bool judged) {
  Point sum;
  double n = 0.0;
  for (const auto seed : seeds) {
    const auto& point = points[seed];
    if (point.empty() && !judged) return {};
    if (point.empty()) continue;
    sum.resize(point.size(), 0.0);
    for (std::size_t i = 0; i < point.size(); ++i) sum[i] += point[i];
    n += 1.0;
  }
  for (auto& value : sum) value /= n;
  return sum;
}

/// Candidates that no other one dominates, equal ones all; none without a point.
std::vector<std::size_t> front_of(const Points& points) {
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].empty()) continue;
    const bool dominated = std::any_of(
        points.begin(), points.end(),
        [&points, i](const Point& other) { return !other.empty() && dominates(other, points[i]); });
    if (!dominated) front.push_back(i);
  }
  return front;
}

}  // namespace

std::optional<std::vector<double>> front_probability(const std::vector<Points>& samples,
                                                     bool judged, std::int64_t resamples) {
  const std::size_t num_seeds = samples.empty() ? 0 : samples.front().size();
  if (num_seeds < 2) return std::nullopt;
  RandomEngine random(derive_seed(0, 0, "front probability", 0));
  std::vector<double> shares(samples.size(), 0.0);
  std::vector<std::size_t> drawn(num_seeds - 1);
  Points means(samples.size());
  for (std::int64_t resample = 0; resample < resamples; ++resample) {
    for (auto& seed : drawn) {
      seed = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(num_seeds)));
    }
    std::transform(samples.begin(), samples.end(), means.begin(),
                   [&](const Points& points) { return mean_over(points, drawn, judged); });
    const auto front = front_of(means);
    for (const auto i : front) {
      shares[i] += means[i].size() == 1 ? 1.0 / static_cast<double>(front.size()) : 1.0;
    }
  }
  for (auto& share : shares) share /= static_cast<double>(resamples);
  return shares;
}

}  // namespace nas
