#include "statistics/failures.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/chi_squared.hpp>

namespace nas {

namespace {

/// Standard deviations of runs that solve a task, by which failures must lie apart from them.
constexpr double kApart = 4.0;

/// The value that a quarter of all do not exceed; those without a value are the largest.
double lower_quartile(std::span<const double> values) {
  auto sorted = finite_of(values);
  const auto place = values.size() / 4;
  if (place >= sorted.size()) return std::numeric_limits<double>::infinity();
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(place),
                   sorted.end());
  return sorted[place];
}

/// What the standard deviation within rows of the values up to a line is at most, with 90 % confidence:
/// few runs lie nearer together than more will. Infinite where no row has two of them.
double deviation_below(const std::vector<std::vector<double>>& rows, double line) {
  double squares = 0.0;
  double freedom = 0.0;
  for (const auto& row : rows) {
    auto below = finite_of(row);
    std::erase_if(below, [line](double value) { return value > line; });
    if (below.empty()) continue;
    const double mean = estimate(below).mean;
    for (const double value : below) squares += (value - mean) * (value - mean);
    freedom += static_cast<double>(below.size() - 1);
  }
  if (freedom == 0.0) return std::numeric_limits<double>::infinity();
  return std::sqrt(squares / boost::math::quantile(boost::math::chi_squared(freedom), 0.1));
}

}  // namespace

double Failures::cost() const { return std::max(0.0, plateau - solved); }

Failures failures_of(const std::vector<std::vector<double>>& rows, double plateau) {
  Failures failures{.solved = std::numeric_limits<double>::infinity()};
  if (!std::isnan(plateau)) failures.plateau = plateau;
  for (const auto& row : rows) {
    if (!row.empty()) failures.solved = std::min(failures.solved, lower_quartile(row));
  }
  if (!std::isfinite(failures.plateau) || !(failures.solved < failures.plateau)) return failures;
  const double half = failures.cost() / 2.0;
  const double line = failures.solved + half;
  if (half >= kApart * deviation_below(rows, line)) failures.line = line;
  return failures;
}

std::optional<std::int64_t> runs_to_exclude(double share, double alpha) {
  if (!(share > 0.0)) return std::nullopt;
  if (share >= 1.0) return 1;
  return static_cast<std::int64_t>(std::ceil(std::log(alpha) / std::log1p(-share)));
}

double share_not_excluded(std::int64_t n, double alpha) {
  return 1.0 - std::pow(alpha, 1.0 / static_cast<double>(n));
}

Share share_solved(std::span<const double> values, const Failures& failures) {
  Share share{.of = std::ssize(values)};
  share.count = std::count_if(values.begin(), values.end(),
                              [&](double value) { return !failures.fails(value); });
  std::tie(share.low, share.high) = share_interval(share.count, share.of);
  return share;
}

double compare_shares(std::span<const double> a, std::span<const double> b,
                      const Failures& failures) {
  double only_a = 0.0;
  double only_b = 0.0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const bool fails = failures.fails(a[i]);
    if (fails == failures.fails(b[i])) continue;
    (fails ? only_a : only_b) += 1.0;
  }
  const double pairs = only_a + only_b;
  if (pairs == 0.0) return 1.0;
  const boost::math::binomial_distribution<> coin(pairs, 0.5);
  return std::min(1.0, 2.0 * boost::math::cdf(coin, std::min(only_a, only_b)));
}

Estimate estimate_with_failures(std::span<const double> values, const std::vector<bool>& failed,
                                double plateau, double confidence) {
  auto result = estimate(values, confidence);
  std::vector<double> solved;
  std::vector<double> lost;
  for (std::size_t i = 0; i < values.size(); ++i) (failed[i] ? lost : solved).push_back(values[i]);
  if (solved.size() < 2) return result;
  const auto others = estimate(solved, confidence);
  const auto shares = share_interval(std::ssize(lost), result.n);
  std::vector<double> costs;
  if (!lost.empty()) costs.push_back(estimate(lost).mean);
  if (std::isfinite(plateau)) costs.push_back(plateau);
  if (costs.empty()) return result;
  result.low = std::numeric_limits<double>::infinity();
  result.high = -result.low;
  for (const double share : {shares.first, shares.second}) {
    for (const double cost : costs) {
      for (const double other : {others.low, others.high}) {
        const double mean = (1.0 - share) * other + share * cost;
        result.low = std::min(result.low, mean);
        result.high = std::max(result.high, mean);
      }
    }
  }
  return result;
}

}  // namespace nas
