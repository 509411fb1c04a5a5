// What judging sets of points costs: once per generation for the hypervolume of a search.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/seed.hpp"
#include "indicators/archive.hpp"
#include "indicators/indicators.hpp"

namespace nas {

namespace {

constexpr std::size_t kFrontSize = 100;
constexpr double kTolerance = 1e-12;

bool near(double a, double b) { return std::abs(a - b) <= kTolerance * std::max(1.0, std::abs(b)); }

/// Points of the unit cube, drawn uniformly.
Points cloud(std::size_t size, std::size_t num_objectives) {
  RandomEngine random(derive_seed(1, 0, "points", "cloud"));
  Points points(size, Point(num_objectives));
  for (auto& point : points) {
    for (auto& value : point) value = random.uniform();
  }
  return points;
}

/// Points whose coordinates sum to 1, drawn uniformly: none dominates another.
Points flat_front(std::size_t size, std::size_t num_objectives) {
  RandomEngine random(derive_seed(1, 0, "points", "flat front"));
  Points points(size, Point(num_objectives));
  for (auto& point : points) {
    double sum = 0.0;
    for (auto& value : point) sum += value = -std::log(1.0 - random.uniform());
    for (auto& value : point) value /= sum;
  }
  return points;
}

/// The hypervolume by its definition, slice by slice along the last objective. Slow and readable.
double sliced_hypervolume(Points points, const Point& reference, std::size_t num_objectives) {
  if (num_objectives == 0) return points.empty() ? 0.0 : 1.0;
  const auto last = num_objectives - 1;
  std::sort(points.begin(), points.end(),
            [last](const Point& a, const Point& b) { return a[last] < b[last]; });
  double volume = 0.0;
  Points above;
  for (std::size_t i = 0; i < points.size() && points[i][last] < reference[last]; ++i) {
    above.push_back(points[i]);
    const double end =
        i + 1 < points.size() ? std::min(points[i + 1][last], reference[last]) : reference[last];
    if (end > points[i][last]) {
      volume += (end - points[i][last]) * sliced_hypervolume(above, reference, last);
    }
  }
  return volume;
}

Point reference_point(std::size_t num_objectives) { return Point(num_objectives, 1.1); }

void hypervolume_of_front(benchmark::State& state) {
  const auto num_objectives = static_cast<std::size_t>(state.range(0));
  const auto points = flat_front(kFrontSize, num_objectives);
  const auto reference = reference_point(num_objectives);
  static std::map<std::size_t, double> expected;  // the slow way costs a second at m = 4
  const auto [known, fresh] = expected.try_emplace(num_objectives);
  if (fresh) known->second = sliced_hypervolume(points, reference, num_objectives);
  if (!near(hypervolume(points, reference), known->second)) {
    state.SkipWithError("must be the volume by slices");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(hypervolume(points, reference));
}
BENCHMARK(hypervolume_of_front)
    ->ArgName("m")
    ->Arg(2)
    ->Arg(3)
    ->Arg(4)
    ->Unit(benchmark::kMicrosecond);

/// A search's bookkeeping: every candidate enters the archive, and after each generation the
/// hypervolume of its front is taken anew.
double search_hypervolume(const std::vector<std::string>& candidates, const Points& points,
                          const Point& reference) {
  constexpr std::size_t kPopulation = 12;
  Archive archive;
  double volume = 0.0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    archive.insert(candidates[i], points[i]);
    if ((i + 1) % kPopulation == 0) volume = hypervolume(archive.front_points(), reference);
  }
  return volume;
}

void archive_and_hypervolume(benchmark::State& state) {
  constexpr std::size_t kAsks = 480;  // 40 generations
  const auto num_objectives = static_cast<std::size_t>(state.range(0));
  const auto points = cloud(kAsks, num_objectives);
  const auto reference = reference_point(num_objectives);
  std::vector<std::string> candidates;
  for (std::size_t i = 0; i < kAsks; ++i) {
    candidates.push_back("dot|softmax|none|fixed|bias|" + std::to_string(i));
  }
  if (!near(search_hypervolume(candidates, points, reference), hypervolume(points, reference))) {
    state.SkipWithError("the archive's front must dominate what all candidates dominate");
    return;
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(search_hypervolume(candidates, points, reference));
  }
  state.counters["per_ask"] =
      benchmark::Counter(static_cast<double>(kAsks), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}
BENCHMARK(archive_and_hypervolume)
    ->ArgName("m")
    ->Arg(2)
    ->Arg(3)
    ->Arg(4)
    ->Unit(benchmark::kMicrosecond);

/// Whether the indices are those of the points that no point dominates. For different points.
bool is_non_dominated_part(const Points& points, const std::vector<std::size_t>& indices) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool dominated = std::any_of(points.begin(), points.end(), [&](const Point& other) {
      return dominates(other, points[i]);
    });
    if (std::binary_search(indices.begin(), indices.end(), i) == dominated) return false;
  }
  return true;
}

void non_dominated_part(benchmark::State& state, Points (*make)(std::size_t, std::size_t)) {
  constexpr std::size_t kSize = 1'000;
  const auto points = make(kSize, static_cast<std::size_t>(state.range(0)));
  const auto indices = non_dominated(points);
  if (!is_non_dominated_part(points, indices)) {
    state.SkipWithError("must be the points that no point dominates");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(non_dominated(points));
  state.counters["front"] = static_cast<double>(indices.size());
}
BENCHMARK_CAPTURE(non_dominated_part, cloud, cloud)
    ->ArgName("m")
    ->Arg(2)
    ->Arg(3)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(non_dominated_part, all, flat_front)
    ->ArgName("m")
    ->Arg(2)
    ->Arg(3)
    ->Unit(benchmark::kMicrosecond);

}  // namespace

}  // namespace nas
