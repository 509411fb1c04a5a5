#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "statistics/statistics.hpp"

/// Comparisons of pairs that hold however often one looks at them, and whenever one stops.
///
/// Of n independent differences with mean m, standard deviation s and t = sqrt(n) m / s,
///
///   E_n = A^(-1/2) ((1 + t^2 / (n - 1)) / (1 + t^2 / (A (n - 1))))^(n / 2),   A = 1 + g n
///
/// is the likelihood of an effect in standard deviations that is drawn from N(0, g), relative to no
/// effect, the standard deviation integrated out of both by its right Haar measure. Where there is no
/// effect, and differences are normal with any standard deviation, it is a martingale that begins at
/// 1, so that it ever exceeds 1 / alpha with probability alpha at most (Ville's inequality). 1 / E_n
/// is thus a p-value, and the differences d that E_n of the values minus d does not reject are an
/// interval, at every n at once. g = 4, by what the packed tables show of effects.
/// @see Robbins (1970), Statistical methods related to the law of the iterated logarithm; Lai (1976),
///      On confidence sequences, Annals of Statistics 4(2); Hendriksen, de Heide & Grunwald (2021),
///      Optional stopping with Bayes factors, Bayesian Analysis 16(3).

namespace nas {

/// The |t| of n values at which E_n = 1 / alpha: half of the interval in standard errors, sqrt((n - 1)
/// (c - 1) / (1 - c / A)) with c = (A^(1/2) / alpha)^(2 / n). Infinite where no t reaches it, as
/// up to 3 values at alpha = 0.05.
/// @param n at least 1. @param alpha in (0, 1).
double anytime_quantile(std::int64_t n, double alpha);

/// compare_paired() with the interval and the p-value of the sequence. Of pairs that all differ by
/// the same, p is as there.
PairedComparison compare_anytime(std::span<const double> a, std::span<const double> b,
                                 double confidence = 0.95);

/// p-value of the sequence for a mean at least `bound` from 0, > 0, in the unit of the differences: the
/// alpha at which the interval reaches the bound; 1 where the mean itself does. Of pairs that all
/// differ by the same, 2^(1 - n).
double p_beyond(const Estimate& difference, double bound);

/// What a sequence has come to. Within: nearer to 0 than the bound.
enum class Decision { open, better, worse, within };

/// @param difference  lower is better.
/// @param p, p_beyond  corrected for what else is decided, each among its like.
Decision decide(const Estimate& difference, double p, double p_beyond, double alpha);

/// Groups in which seeds are added: 4, 6, 8, 10, 12, 15, 18, 22, ..., a quarter each, never more
/// than `most`.
inline constexpr std::int64_t kFirstSeeds = 4;
std::int64_t next_seeds(std::int64_t seeds, std::int64_t most);

/// The most that is looked for.
inline constexpr std::int64_t kMostSeedsNeeded = 1000;

/// The least number of pairs above n whose t-test shows a difference of this size with a probability
/// of 0.8: t_{n-1}(1 - alpha / 2) + t_{n-1}(0.8) <= sqrt(n) |m| / s. Nothing where s or m is 0 or
/// unknown, and above kMostSeedsNeeded.
std::optional<std::int64_t> seeds_to_show(const Estimate& difference, double alpha);

/// The least number of pairs above n at which the sequence would decide, were mean and standard
/// deviation to stay as they are.
std::optional<std::int64_t> seeds_to_decide(const Estimate& difference, double alpha, double bound);

}  // namespace nas
