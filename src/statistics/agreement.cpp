#include "statistics/agreement.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <boost/math/distributions/normal.hpp>

#include "statistics/statistics.hpp"

namespace nas {

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

double sum_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

bool any_nan(std::span<const double> values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
}

/// @param values  without NaN, which has no place in an order.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [values](std::size_t i, std::size_t j) { return values[i] < values[j]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double shared = static_cast<double>(begin + end - 1) / 2.0;
    for (; begin < end; ++begin) ranks[order[begin]] = shared;
  }
  return ranks;
}

}  // namespace

double intraclass_correlation(const std::vector<std::vector<double>>& groups) {
  double total = 0.0;
  double count = 0.0;
  double squared_sizes = 0.0;
  double num_groups = 0.0;
  std::vector<double> all;
  for (const auto& group : groups) {
    if (group.empty()) continue;
    all.insert(all.end(), group.begin(), group.end());
    const auto size = static_cast<double>(group.size());
    total += sum_of(group);
    count += size;
    squared_sizes += size * size;
    num_groups += 1.0;
  }
  if (num_groups < 2.0 || count == num_groups) return kUndefined;
  double between = 0.0;
  double within = 0.0;
  for (const auto& group : groups) {
    if (group.empty()) continue;
    const auto size = static_cast<double>(group.size());
    const double mean = sum_of(group) / size;
    between += size * (mean - total / count) * (mean - total / count);
    for (const double value : group) within += (value - mean) * (value - mean);
  }
  between /= num_groups - 1.0;
  within /= count - num_groups;
  const double rounding = rounding_of(all);
  if (!(within > rounding * rounding)) return kUndefined;
  const double size = (count - squared_sizes / count) / (num_groups - 1.0);
  return (between - within) / (between + (size - 1.0) * within);
}

double consistency_correlation(const std::vector<std::vector<double>>& groups) {
  const auto size = groups.empty() ? 0 : groups.front().size();
  if (groups.size() < 2 || size < 2) return kUndefined;
  const auto rows = static_cast<double>(groups.size());
  const auto columns = static_cast<double>(size);
  std::vector<double> all;
  std::vector<double> of_columns(size, 0.0);
  for (const auto& group : groups) {
    all.insert(all.end(), group.begin(), group.end());
    for (std::size_t j = 0; j < size; ++j) of_columns[j] += group.at(j) / rows;
  }
  const double mean = sum_of(all) / (rows * columns);
  double between = 0.0;
  double rest = 0.0;
  for (const auto& group : groups) {
    const double own = sum_of(group) / columns;
    between += columns * (own - mean) * (own - mean);
    for (std::size_t j = 0; j < size; ++j) {
      const double left = group[j] - own - of_columns[j] + mean;
      rest += left * left;
    }
  }
  between /= rows - 1.0;
  rest /= (rows - 1.0) * (columns - 1.0);
  const double rounding = rounding_of(all);
  if (!(rest > rounding * rounding)) return kUndefined;
  return (between - rest) / (between + (columns - 1.0) * rest);
}

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) throw std::logic_error("rank_correlation: not one length");
  if (any_nan(a) || any_nan(b)) return kUndefined;
  const auto ranks_a = ranks(a);
  const auto ranks_b = ranks(b);
  const double mean = (static_cast<double>(a.size()) - 1.0) / 2.0;
  double product = 0.0;
  double square_a = 0.0;
  double square_b = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += (ranks_a[i] - mean) * (ranks_b[i] - mean);
    square_a += (ranks_a[i] - mean) * (ranks_a[i] - mean);
    square_b += (ranks_b[i] - mean) * (ranks_b[i] - mean);
  }
  if (square_a == 0.0 || square_b == 0.0) return kUndefined;
  return product / std::sqrt(square_a * square_b);
}

std::pair<double, double> rank_correlation_interval(double r, std::int64_t n) {
  if (std::isnan(r)) return {r, r};
  if (n <= 3) return {-1.0, 1.0};
  const double quantile = boost::math::quantile(boost::math::normal(), (1.0 + 0.95) / 2.0);
  const auto pairs = static_cast<double>(n);
  const double half = quantile * std::sqrt((1.0 + r * r / 2.0) / (pairs - 3.0));
  // Of equal or opposite orders as of those in which two neighbours are exchanged: z is infinite.
  const double most = 1.0 - 12.0 / (pairs * (pairs * pairs - 1.0));
  const double z = std::atanh(std::clamp(r, -most, most));
  return {r <= -most ? -1.0 : std::tanh(z - half), r >= most ? 1.0 : std::tanh(z + half)};
}

}  // namespace nas
