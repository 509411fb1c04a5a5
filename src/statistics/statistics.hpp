#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// A mean with its uncertainty.
struct Estimate {
  double mean = 0.0;
  double standard_error = 0.0;  ///< s / sqrt(n); infinite for n = 1, which says nothing about it
  std::int64_t n = 0;
  double low = 0.0;  ///< of the confidence interval by Student's t; -infinity for n = 1
  double high = 0.0;
};

/// Those that are finite, in their order.
std::vector<double> finite_of(std::span<const double> values);

/// The middle one of the values, or the mean of the two in the middle. @param values  at least one.
double median(std::vector<double> values);

/// Interval of the median of a distribution by order statistics of independent values: the narrowest symmetric pair of which
/// binomial counts say at least the confidence; infinite where all of them say less (fewer than 6 values at 0.95).
std::pair<double, double> median_interval(std::vector<double> values, double confidence = 0.95);

/// Mean of independent values with its t-interval. @param confidence in (0, 1).
/// @throws std::logic_error for no values.
Estimate estimate(std::span<const double> values, double confidence = 0.95);

/// An estimate whose interval ends at the least and the most that its quantity can be; an infinite
/// end, of which nothing is known, stays.
Estimate within(double least, double most, Estimate estimate);

/// What is no more than this between some values is rounding: 1e-12 of the largest.
double rounding_of(std::span<const double> values);

/// 95 % confidence interval of a probability at which `count` of `of` independent draws hit: the exact
/// one of Clopper & Pearson (1934). @param count in [0, of], of at least 1.
std::pair<double, double> share_interval(std::int64_t count, std::int64_t of);

/// Two candidates measured on the same seeds.
struct PairedComparison {
  Estimate difference;  ///< of a - b
  /// Two-sided, of no difference, by Student's t on the pairs; 1 for n = 1. Where all pairs differ by
  /// the same, which says nothing of how far off another would be, by a sign test: 2^(1 - n).
  double p = 1.0;
  /// Mean difference in standard deviations of the differences, shrunk by Hedges'
  /// 1 - 3 / (4 (n - 1) - 1): d_z of Lakens (2013). 0 where all pairs are equal; NaN where they differ
  /// by the same, and for n < 3, of which that factor leaves nothing.
  double effect_size = 0.0;
};

/// Compares pair by pair: common random numbers cancel what the seeds do to both.
/// @throws std::logic_error unless both are of one length, at least 1.
PairedComparison compare_paired(std::span<const double> a, std::span<const double> b,
                                double confidence = 0.95);

/// Holm's step-down correction (1979): p-values of a family such that rejecting those below alpha
/// errs with probability alpha at most. In the order given; at most 1.
std::vector<double> holm(std::span<const double> p_values);

}  // namespace nas
