#pragma once

#include <string>

#include <torch/types.h>

#include "instruments/attention_statistics.hpp"

namespace nas::nn {

/// How long the states of recurrent heads remember, by the geometric mean alpha of a channel's decays
/// over the queries that count:
///
///   memory_length   1 / (1 - alpha): tokens that are not forgotten, after long
///   half_life       ln 2 / -log alpha, tokens
///   forget_mean     mean alpha_t
///
/// each a mean over the channels of a head; the first two are infinite where a channel forgets nothing.
/// @param log_decays  (B, H, T, C), log alpha_t <= 0; C = 1 for a decay of a whole head.
Statistics decay_statistics(const torch::Tensor& log_decays);

/// NAME_mean, NAME_sd (of the population): of a gate of the update, over queries and channels.
/// @param gates  (B, H, T, C).
Statistics update_statistics(const std::string& name, const torch::Tensor& gates);

/// state_used: exp of the entropy of p_i = sigma_i^2 / sum_i sigma_i^2 over f, sigma the singular values
/// of a state. 1 / f: keys and values of a single direction; min(f, d) / f: all of what there is.
/// @param states  (B, H, f, d).   @return NaN where a state is 0.
Statistics state_statistics(const torch::Tensor& states);

}  // namespace nas::nn
