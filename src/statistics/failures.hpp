#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "statistics/statistics.hpp"

/// Training runs that fail beside others that solve the same task: a second mode, which a mean and
/// Student's t do not know of until it has been seen.

namespace nas {

/// Where runs of a task fail. Values are losses or shares of errors: less is better.
///
/// s is what runs reach that solve it: the least lower quartile of the rows that are compared. The
/// plateau P is the best mean that needs no attention. A run fails where it ends above the line
/// (s + P) / 2, or has no value. There is no such line where its distance from s is less than four
/// times what the standard deviation of the runs below it, within rows, is at most with 90 %
/// confidence: then runs differ continuously.
struct Failures {
  double solved = 0.0;
  double plateau = std::numeric_limits<double>::infinity();
  double line = std::numeric_limits<double>::infinity();

  /// What a run that fails loses, P - s; at least 0.
  [[nodiscard]] double cost() const;
  [[nodiscard]] bool fails(double value) const { return !(value <= line); }
};

/// @param rows     runs of each model, NaN where one came to nothing.
/// @param plateau  NaN or infinite where it is not known.
/// @return no line where no row has a value.
Failures failures_of(const std::vector<std::vector<double>>& rows, double plateau);

/// The least number of runs without a failure that exclude a share: (1 - share)^n <= alpha. 1 for a
/// share of 1 and above; nothing for 0, which no number excludes.
std::optional<std::int64_t> runs_to_exclude(double share, double alpha = 0.05);

/// The largest share of failures that n runs without one do not exclude: 1 - alpha^(1 / n).
double share_not_excluded(std::int64_t n, double alpha = 0.05);

/// How many of some runs solved a task, with the exact 95 % interval of that share.
struct Share {
  std::int64_t count = 0, of = 0;
  double low = 0.0, high = 1.0;
};
Share share_solved(std::span<const double> values, const Failures& failures);

/// Two-sided exact p that one of two models solves more often than the other, run by run on equal
/// seeds: a sign test of the pairs of which one fails (McNemar 1947); 1 where there is none.
double compare_shares(std::span<const double> a, std::span<const double> b,
                      const Failures& failures);

/// A mean of values of which some fail: its interval takes the share of failures by Clopper &
/// Pearson, and the mean of the others by Student's t. Failures seen count with their mean, those
/// that may still come with that or the plateau, whichever is farther.
/// @param values   in any sense. @param failed  of each, whether it fails.
/// @param plateau  what a failure has, in the same sense; NaN: not known.
Estimate estimate_with_failures(std::span<const double> values, const std::vector<bool>& failed,
                                double plateau, double confidence = 0.95);

}  // namespace nas
