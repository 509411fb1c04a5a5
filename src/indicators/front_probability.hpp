#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "indicators/indicators.hpp"

namespace nas {

/// Probability that each candidate is really non-dominated among all of them, where some objectives
/// are means over seeds: a non-parametric bootstrap that keeps the pairs of one seed together.
///
/// A resample draws n - 1 of the n seeds, with replacement and for all candidates alike (common
/// random numbers), and takes each candidate's mean over them. n - 1 draws give such means the
/// variance s^2 / n that they have; n draws would give them (n - 1) / n of it, which matters at
/// five seeds. A candidate that could not be measured at one of the drawn seeds is dominated, as it
/// would have failed with these; where an objective judges failures, the other seeds are its mean.
/// An objective that no seed changes stays what it is. With one objective it is the probability of
/// being the best, which equal ones share. Nothing random: the resamples come from a fixed seed.
/// Cost: resamples times candidates times (seeds + candidates).
///
/// Few seeds show few outcomes: a candidate that is better at every one of n seeds gets probability
/// 1, at five seeds as at fifty.
///
/// @param samples  by candidate and seed the point at that seed, minimised; an empty one where it
///                 could not be measured. As many seeds for each candidate.
/// @param judged   whether an objective judges what could not be measured.
/// @return a probability for each candidate; none where there are fewer than two seeds, which tell
/// nothing.
/// @see Efron (1979), Bootstrap methods: another look at the jackknife, Annals of Statistics 7(1);
///      McCarthy & Snowden (1985), The bootstrap and finite population sampling, on n - 1 draws.
std::optional<std::vector<double>> front_probability(const std::vector<Points>& samples,
                                                     bool judged = false,
                                                     std::int64_t resamples = 10000);

}  // namespace nas
