#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <torch/types.h>

namespace nas::nn {

// What the attention of a model looks like. Conventions: B sequences, H heads, T tokens, queries i,
// keys j, both from 0. A map A (B, H, T, T) holds what query i takes of value j, o_i = sum_j A_ij
// v_j: rows need not sum to 1, weights may be negative (differences of two maps), hidden keys have
// exactly 0. visible (T, T) or (B, H, T, T) bool marks the keys V_i of each query, n_i = |V_i|, all
// of them j <= i.
//
// Everything is computed in float64. A statistic is one number for each sequence and head, (B, H),
// so that intervals over sequences are the caller's; NaN where it is not defined (a row whose
// weights are all 0 has no entropy). The first kFirstQuery queries, which see few keys, are left
// out of everything.

/// The first query that counts.
inline constexpr std::int64_t kFirstQuery = 8;
/// A head whose first token has more than this of a row, on average, has a sink.
inline constexpr double kSinkMass = 0.3;
/// Rows of less mass than this abstain.
inline constexpr double kLightRow = 0.5;

/// Numbers by name, each (B, H).
using Statistics = std::map<std::string, torch::Tensor>;

/// The mean over the queries that count of what is defined.
/// @param values  (B, H, T).   @return (B, H); NaN where no query has a value.
torch::Tensor mean_over_queries(const torch::Tensor& values);

/// m_i = sum_j A_ij: below 1 where a normalization lets queries abstain.
/// @return (B, H, T).
torch::Tensor row_masses(const torch::Tensor& maps);

/// E_i = -sum_j p_ij log p_ij, p_i = |A_i| / sum_j |A_ij|, in nats.
/// @return (B, H, T); NaN where all weights of a row are 0.
torch::Tensor row_entropies(const torch::Tensor& maps);

/// a(n) = mean of |A_{i,i-n}| over the queries i >= n that count.
/// @return (B, H, T), by n = 0 .. T - 1; NaN where no query that counts reaches back so far, which
/// happens for no n of T > kFirstQuery.
torch::Tensor distance_profile(const torch::Tensor& maps);

/// What one set of maps says of itself:
///
///   row_mass         mean m_i
///   light_rows       share of the queries with m_i < kLightRow
///   entropy          mean E_i, nats
///   entropy_ratio    mean E_i / log n_i over the queries with n_i > 1; 1: uniform over V_i
///   effective_keys   mean exp E_i
///   sink_mass        a_h = mean A_i0
///   mean_distance    sum_ij |A_ij| (i - j) / sum_ij |A_ij|
///   within_N         share of sum_ij |A_ij| at i - j < N, N = 8, 32, 128
///   distance_slope   least-squares slope of log a(n) on log n over 1 <= n <= T / 2, where at least
///                    about half of the queries reach; NaN for fewer than three positive a(n)
///
/// @param maps  (B, H, T, T).   @param visible  (T, T) or (B, H, T, T) bool.
/// @throws std::invalid_argument for maps that are not of this shape, or T <= kFirstQuery.
/// @see Gu et al. (2024), arXiv:2410.10781, and Xiao et al. (2023), arXiv:2309.17453 (sinks).
Statistics map_statistics(const torch::Tensor& maps, const torch::Tensor& visible);

/// The share of a sequence's heads with a sink, a_h > kSinkMass.
/// @param sink_mass  (B, H): of all heads of one layer, or of several.   @return (B).
torch::Tensor sink_rate(const torch::Tensor& sink_mass);

/// How sharp scores are, what an effective temperature amounts to:
///
///   score_sd        mean over queries of the standard deviation of s_ij over V_i (of the
///                   population: divided by n_i)
///   score_maximum   the largest s_ij over V_i of all queries, which grows where training becomes unstable
///
/// @param scores  (B, H, T, T), what the normalization reads: divided by the temperature, biases by
///                position added.
/// @see Dehghani et al. (2023), arXiv:2302.05442 (growth of logits).
Statistics score_statistics(const torch::Tensor& scores, const torch::Tensor& visible);

/// How open gates are, over the queries and channels of a head:
///
///   gate_mean, gate_sd   mean and standard deviation (of the population)
///   gate_shut            share below 0.1
///   gate_open            share above 0.9
///
/// @param gates  (B, H, T, C) in [0, 1]; C = 1 for a gate of a whole head.
/// @see Qiu et al. (2025), arXiv:2505.06708.
Statistics gate_statistics(const torch::Tensor& gates);

/// How gates go with the size of what they multiply: Pearson's correlation of the gates with |o|,
/// over the queries and channels of a head.
/// @param gates    (B, H, T, C) or (B, H, T, 1).
/// @param outputs  (B, H, T, C), before the gate.
/// @return (B, H); NaN where one of both does not vary.
torch::Tensor gate_output_correlation(const torch::Tensor& gates, const torch::Tensor& outputs);

/// How long forget gates remember:
///
///   memory_length   mean over queries of sum_{j <= i} exp(sum_{t = j+1 .. i} log f_t): the number
///                   of tokens that are not forgotten, 1 / (1 - f) after long for constant f
///   half_life       ln 2 / -(mean log f_t), in tokens; infinite where nothing is forgotten
///   forget_mean     mean f_t
///
/// @param log_forget  (B, H, T), log f_t <= 0.
/// @see Lin et al. (2025), arXiv:2503.02130.
Statistics memory_statistics(const torch::Tensor& log_forget);

/// Sequences of random tokens that repeat themselves: token t is token t mod P.
struct RepeatedTokens {
  torch::Tensor tokens;   ///< (B, T) int64
  torch::Tensor periods;  ///< (B) int64, P of each sequence
};

/// Draws repeated sequences: tokens uniform over the vocabulary, periods uniform in [T / 4, T / 2],
/// which is 32 .. 64 for T = 128. A fixed period could be learned by position alone; this one must
/// be read off the tokens.
///
/// @param seed  of its own generator: equal seeds give equal sequences everywhere.
/// @throws std::invalid_argument for T < 2 kFirstQuery, where too little is left, or sizes below 1.
/// @see Olsson et al. (2022), arXiv:2209.11895.
RepeatedTokens repeated_tokens(std::int64_t sequences, std::int64_t length, std::int64_t vocabulary,
                               std::uint64_t seed);

/// Keys that heads of a known kind look at, (B, T, T) bool, of tokens (B, T).
///
///   previous    j = i - 1
///   duplicate   token j = token i, j < i
///   induction   token j - 1 = token i, 1 <= j <= i: what followed token i when it came before
torch::Tensor previous_keys(const torch::Tensor& tokens);
torch::Tensor duplicate_keys(const torch::Tensor& tokens);
torch::Tensor induction_keys(const torch::Tensor& tokens);

/// How much of what maps give goes to some keys: sum_ij |A_ij| M_ij / sum_ij |A_ij| over the queries
/// that have such a key (and count), in [0, 1]. For weights that are not negative this is the
/// head detector's `mul` of TransformerLens, which sums over all queries, also those that cannot
/// have such a key.
/// @param keys  M (B, T, T) bool.   @return (B, H); NaN where no query has such a key.
torch::Tensor attended_share(const torch::Tensor& maps, const torch::Tensor& keys);

/// The same for the three kinds: previous_token, duplicate_token, induction.
/// @param tokens  (B, T), what the maps (B, H, T, T) were computed from.
Statistics head_scores(const torch::Tensor& maps, const torch::Tensor& tokens);

/// What a model gains from having seen the sequence once: mean nll of the first copy minus that of
/// the second, nats, over the P - 1 pairs of neighbours that lie within a copy.
/// @param nll  (B, T), of the token after each (the last one is not read).   @return (B); NaN where
/// no second copy begins.
/// @see Olsson et al. (2022), arXiv:2209.11895.
torch::Tensor in_context_score(const torch::Tensor& nll, const torch::Tensor& periods);

}  // namespace nas::nn
