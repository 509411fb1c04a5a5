#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace nas {

/// Intraclass correlation of a one-way random effects model, ICC(1): the share of the variance of
/// one measurement that is between groups and not within them.
///
///   (B - W) / (B + (n0 - 1) W),   n0 = (N - sum n_i^2 / N) / (a - 1)
///
/// B and W: mean squares between the a groups and within them; n_i: sizes, N their sum. Negative
/// where groups differ less than chance lets them.
/// @return NaN for fewer than two groups, none of more than one value, or no variance within groups
/// but that of rounding, against which nothing can be set.
/// @see Shrout & Fleiss (1979), doi:10.1037/0033-2909.86.2.420.
double intraclass_correlation(const std::vector<std::vector<double>>& groups);

/// Intraclass correlation of a two-way model, ICC(C,1): the same without what a column does to all groups
/// alike, (B - E) / (B + (n - 1) E), E the mean square of groups by columns.
///
/// @param groups  of one length n, value j of each from column j, say of one seed.
/// @return NaN for fewer than two groups or columns, or no variance of groups by columns.
/// @see McGraw & Wong (1996), doi:10.1037/1082-989X.1.1.30.
double consistency_correlation(const std::vector<std::vector<double>>& groups);

/// Spearman's rank correlation; equal values share their mean rank.
/// @return NaN for fewer than two pairs, where one side is constant, or has a NaN.
/// @throws std::logic_error unless both are of one length.
double rank_correlation(std::span<const double> a, std::span<const double> b);

/// 95 % confidence interval of such a correlation over n pairs, by Fisher's z with the variance
/// (1 + r^2 / 2) / (n - 3); for equal or opposite orders from those of two exchanged neighbours to 1 or
/// -1; [-1, 1] for n <= 3, NaN where r is.
/// @see Bonett & Wright (2000), doi:10.1007/BF02294183.
std::pair<double, double> rank_correlation_interval(double r, std::int64_t n);

}  // namespace nas
