#include "statistics/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace nas {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

std::vector<double> finite_of(std::span<const double> values) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
               [](double value) { return std::isfinite(value); });
  return finite;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2.0;
}

std::pair<double, double> median_interval(std::vector<double> values, double confidence) {
  std::sort(values.begin(), values.end());
  const boost::math::binomial_distribution<> below(static_cast<double>(values.size()), 0.5);
  std::size_t outside = 0;  // values beyond each end
  while (boost::math::cdf(below, static_cast<double>(outside)) <= (1.0 - confidence) / 2.0) {
    ++outside;
  }
  if (outside == 0) return {-kInfinity, kInfinity};
  return {values[outside - 1], values[values.size() - outside]};
}

Estimate estimate(std::span<const double> values, double confidence) {
  if (values.empty()) throw std::logic_error("estimate: no values");
  const auto n = static_cast<double>(values.size());
  Estimate result;
  result.n = static_cast<std::int64_t>(values.size());
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (result.n == 1) {
    result.standard_error = kInfinity;
    result.low = -kInfinity;
    result.high = kInfinity;
    return result;
  }
  double squares = 0.0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.standard_error = std::sqrt(squares / (n - 1.0) / n);
  const boost::math::students_t distribution(n - 1.0);
  const double half =
      result.standard_error * boost::math::quantile(distribution, 0.5 + confidence / 2.0);
  result.low = result.mean - half;
  result.high = result.mean + half;
  return result;
}

Estimate within(double least, double most, Estimate estimate) {
  for (double* end : {&estimate.low, &estimate.high}) {
    if (std::isfinite(*end)) *end = std::clamp(*end, least, most);
  }
  return estimate;
}

double rounding_of(std::span<const double> values) {
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return 1e-12 * largest;
}

std::pair<double, double> share_interval(std::int64_t count, std::int64_t of) {
  using Binomial = boost::math::binomial_distribution<>;
  const auto n = static_cast<double>(of);
  const auto k = static_cast<double>(count);
  constexpr double each = (1.0 - 0.95) / 2.0;
  return {Binomial::find_lower_bound_on_p(n, k, each), Binomial::find_upper_bound_on_p(n, k, each)};
}

namespace {

/// What differences are that are equal but for the rounding of the values they come from, whose rest
/// would pass for noise beside which anything is significant; else nothing.
std::optional<double> equal_difference(std::span<const double> differences,
                                       std::span<const double> a, std::span<const double> b) {
  const double rounding = std::max(rounding_of(a), rounding_of(b));
  const auto [least, most] = std::minmax_element(differences.begin(), differences.end());
  if (differences.size() < 2 || !(*most - *least <= rounding)) return std::nullopt;
  return std::abs(*least) <= rounding ? 0.0 : *least;
}

}  // namespace

PairedComparison compare_paired(std::span<const double> a, std::span<const double> b,
                                double confidence) {
  if (a.size() != b.size()) throw std::logic_error("compare_paired: not one length");
  std::vector<double> differences;
  for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(a[i] - b[i]);
  PairedComparison result{.difference = estimate(differences, confidence)};
  if (const auto equal = equal_difference(differences, a, b)) {
    result.difference = {.mean = *equal,
                         .standard_error = 0.0,
                         .n = result.difference.n,
                         .low = *equal,
                         .high = *equal};
  }
  const auto& [mean, standard_error, count, low, high] = result.difference;
  const auto n = static_cast<double>(count);
  if (count == 1) {
    result.effect_size = std::numeric_limits<double>::quiet_NaN();
  } else if (standard_error == 0.0) {
    result.p = mean == 0.0 ? 1.0 : std::exp2(1.0 - n);
    result.effect_size = mean == 0.0 ? 0.0 : std::numeric_limits<double>::quiet_NaN();
  } else {
    const boost::math::students_t distribution(n - 1.0);
    result.p = 2.0 * boost::math::cdf(
                         boost::math::complement(distribution, std::abs(mean / standard_error)));
    result.effect_size =
        mean / (standard_error * std::sqrt(n)) * (1.0 - 3.0 / (4.0 * (n - 1.0) - 1.0));
  }
  // Hedges' factor is 0 for two pairs.
  if (count == 2) result.effect_size = std::numeric_limits<double>::quiet_NaN();
  return result;
}

std::vector<double> holm(std::span<const double> p_values) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto left = static_cast<double>(order.size() - i);
    largest = std::max(largest, std::min(1.0, left * p_values[order[i]]));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

}  // namespace nas
