#include "statistics/sequential.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <boost/math/distributions/students_t.hpp>

namespace nas {

namespace {

/// Variance of effects, in squared standard deviations of a difference.
constexpr double kEffects = 4.0;
/// Probability with which a difference is to be shown.
constexpr double kPower = 0.8;

double spread(std::int64_t n) { return 1.0 + kEffects * static_cast<double>(n); }

/// ln E_n.
double log_evidence(std::int64_t n, double t) {
  const double free = static_cast<double>(n) - 1.0;
  const double a = spread(n);
  return -0.5 * std::log(a) +
         0.5 * static_cast<double>(n) * (std::log1p(t * t / free) - std::log1p(t * t / (a * free)));
}

/// The least number of pairs above those of an estimate for which `holds`, given the standard error
/// of so many.
template <class Holds>
std::optional<std::int64_t> least_seeds(const Estimate& difference, Holds holds) {
  if (difference.n < 2 || !(difference.standard_error > 0.0) ||
      !std::isfinite(difference.standard_error)) {
    return std::nullopt;
  }
  const double deviation = difference.standard_error * std::sqrt(static_cast<double>(difference.n));
  for (auto n = difference.n + 1; n <= kMostSeedsNeeded; ++n) {
    if (holds(n, deviation / std::sqrt(static_cast<double>(n)))) return n;
  }
  return std::nullopt;
}

}  // namespace

double anytime_quantile(std::int64_t n, double alpha) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (n < 2) return kInfinity;
  const double a = spread(n);
  const double c = std::pow(std::sqrt(a) / alpha, 2.0 / static_cast<double>(n));
  if (c >= a) return kInfinity;
  return std::sqrt((static_cast<double>(n) - 1.0) * (c - 1.0) / (1.0 - c / a));
}

PairedComparison compare_anytime(std::span<const double> a, std::span<const double> b,
                                 double confidence) {
  auto result = compare_paired(a, b, confidence);
  auto& difference = result.difference;
  if (difference.n < 2 || difference.standard_error == 0.0) return result;
  const double half = anytime_quantile(difference.n, 1.0 - confidence) * difference.standard_error;
  difference.low = difference.mean - half;
  difference.high = difference.mean + half;
  const double t = difference.mean / difference.standard_error;
  result.p = std::min(1.0, std::exp(-log_evidence(difference.n, t)));
  return result;
}

double p_beyond(const Estimate& difference, double bound) {
  const double left = bound - std::abs(difference.mean);
  if (difference.n < 2 || !(left > 0.0)) return 1.0;
  if (difference.standard_error == 0.0) return std::exp2(1.0 - static_cast<double>(difference.n));
  const double t = left / difference.standard_error;
  return std::min(1.0, std::exp(-log_evidence(difference.n, t)));
}

Decision decide(const Estimate& difference, double p, double p_beyond, double alpha) {
  if (p <= alpha) return difference.mean < 0.0 ? Decision::better : Decision::worse;
  const bool within = p_beyond <= alpha && difference.n >= kFirstSeeds;
  return within ? Decision::within : Decision::open;
}

std::int64_t next_seeds(std::int64_t seeds, std::int64_t most) {
  return std::min(most, seeds + std::max<std::int64_t>(2, seeds / 4));
}

std::optional<std::int64_t> seeds_to_show(const Estimate& difference, double alpha) {
  return least_seeds(difference, [&](std::int64_t n, double standard_error) {
    const boost::math::students_t t(static_cast<double>(n) - 1.0);
    const double needed =
        boost::math::quantile(t, 1.0 - alpha / 2.0) + boost::math::quantile(t, kPower);
    return needed * standard_error <= std::abs(difference.mean);
  });
}

std::optional<std::int64_t> seeds_to_decide(const Estimate& difference, double alpha,
                                            double bound) {
  const double size = std::abs(difference.mean);
  return least_seeds(difference, [&](std::int64_t n, double standard_error) {
    const double half = anytime_quantile(n, alpha) * standard_error;
    return half <= size || size + half <= bound;
  });
}

}  // namespace nas
