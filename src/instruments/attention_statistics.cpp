#include "instruments/attention_statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/seed.hpp"

namespace nas::nn {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// (T, T) int64 of i - j: below 0 for later keys.
torch::Tensor distances(std::int64_t tokens, torch::Device device) {
  const auto places = at::arange(tokens, at::TensorOptions(at::kLong).device(device));
  return places.unsqueeze(1) - places.unsqueeze(0);
}

/// Rows of the queries that count, of (..., T, C).
torch::Tensor counted(const torch::Tensor& rows) {
  return rows.slice(-2, kFirstQuery).to(at::kDouble);
}

void require_maps(const torch::Tensor& maps) {
  if (maps.dim() == 4 && maps.size(2) == maps.size(3) && maps.size(2) > kFirstQuery) return;
  std::string sizes;
  for (const auto size : maps.sizes()) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  throw std::invalid_argument("maps of the shape (" + sizes + "), must be (B, H, T, T) with T > " +
                              std::to_string(kFirstQuery));
}

/// a / b, NaN where b is 0.
torch::Tensor ratio(const torch::Tensor& a, const torch::Tensor& b) {
  return (a / b).masked_fill(b == 0.0, kNaN);
}

/// Slope of the least-squares line through the points that `there` marks, along the last dimension.
/// @param x  (N).   @param y, there  (B, H, N).   @return (B, H); NaN for fewer than 3 points.
torch::Tensor slopes(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& there) {
  const auto weight = there.to(at::kDouble);
  const auto count = weight.sum(-1, /*keepdim=*/true);
  const auto known = y.masked_fill(there.logical_not(), 0.0);
  const auto centred = (x - (x * weight).sum(-1, true) / count) * weight;
  const auto slope = (centred * known).sum(-1) / (centred * centred).sum(-1);
  return slope.masked_fill(count.squeeze(-1) < 3.0, kNaN);
}

/// Mean and standard deviation of the last two dimensions.
std::array<torch::Tensor, 2> moments(const torch::Tensor& values) {
  const auto mean = values.mean({-2, -1}, /*keepdim=*/true);
  const auto sd = (values - mean).square().mean({-2, -1}).sqrt();
  return {mean.squeeze(-1).squeeze(-1), sd};
}

}  // namespace

torch::Tensor mean_over_queries(const torch::Tensor& values) {
  return values.slice(-1, kFirstQuery).to(at::kDouble).nanmean(-1);
}

torch::Tensor row_masses(const torch::Tensor& maps) { return maps.to(at::kDouble).sum(-1); }

torch::Tensor row_entropies(const torch::Tensor& maps) {
  const auto sizes = maps.to(at::kDouble).abs();
  const auto sums = sizes.sum(-1, /*keepdim=*/true);
  const auto shares = sizes / sums;
  // xlogy(0, 0) = 0, as the limit is.
  return (-at::xlogy(shares, shares).sum(-1)).masked_fill(sums.squeeze(-1) == 0.0, kNaN);
}

torch::Tensor distance_profile(const torch::Tensor& maps) {
  require_maps(maps);
  const auto sizes = maps.to(at::kDouble).abs();
  const auto tokens = sizes.size(-1);
  auto profile = at::full({sizes.size(0), sizes.size(1), tokens}, kNaN, sizes.options());
  for (std::int64_t n = 0; n < tokens; ++n) {
    // Entry t of this diagonal is A_{n+t,t}.
    const auto diagonal = at::diagonal(sizes, -n, -2, -1);
    const auto first = std::max<std::int64_t>(kFirstQuery - n, 0);
    profile.select(-1, n).copy_(diagonal.slice(-1, first).mean(-1));
  }
  return profile;
}

Statistics map_statistics(const torch::Tensor& maps, const torch::Tensor& visible) {
  require_maps(maps);
  const auto tokens = maps.size(-1);
  const auto masses = row_masses(maps);
  const auto entropies = row_entropies(maps);
  const auto counts = visible.sum(-1).to(at::kDouble);
  const auto most = counts.log().masked_fill(counts <= 1.0, kNaN);
  Statistics found;
  found["row_mass"] = mean_over_queries(masses);
  found["light_rows"] = mean_over_queries((masses < kLightRow).to(at::kDouble));
  found["entropy"] = mean_over_queries(entropies);
  found["entropy_ratio"] = mean_over_queries(entropies / most);
  found["effective_keys"] = mean_over_queries(entropies.exp());
  found["sink_mass"] = mean_over_queries(maps.select(-1, 0));
  const auto sizes = counted(maps).abs();
  const auto total = sizes.sum({-2, -1});
  const auto apart = distances(tokens, maps.device()).slice(0, kFirstQuery);
  found["mean_distance"] = ratio((sizes * apart).sum({-2, -1}), total);
  for (const std::int64_t reach : {8, 32, 128}) {
    found["within_" + std::to_string(reach)] =
        ratio((sizes * (apart < reach)).sum({-2, -1}), total);
  }
  const auto profile = distance_profile(maps).slice(-1, 1, tokens / 2 + 1);
  const auto n = at::arange(1, tokens / 2 + 1, profile.options());
  found["distance_slope"] = slopes(n.log(), profile.log(), profile > 0.0);
  return found;
}

torch::Tensor sink_rate(const torch::Tensor& sink_mass) {
  return (sink_mass > kSinkMass).to(at::kDouble).mean(-1);
}

Statistics score_statistics(const torch::Tensor& scores, const torch::Tensor& visible) {
  require_maps(scores);
  const auto hidden = visible.logical_not();
  const auto counts = visible.sum(-1).to(at::kDouble);
  const auto seen = scores.to(at::kDouble).masked_fill(hidden, 0.0);
  const auto mean = (seen.sum(-1) / counts).unsqueeze(-1);
  const auto variance = (seen - mean).masked_fill(hidden, 0.0).square().sum(-1) / counts;
  return {{"score_sd", mean_over_queries(variance.sqrt())},
          {"score_maximum", counted(scores.masked_fill(hidden, -kInfinity)).amax({-2, -1})}};
}

Statistics gate_statistics(const torch::Tensor& gates) {
  const auto open = counted(gates);
  const auto [mean, sd] = moments(open);
  const auto share = [](const torch::Tensor& which) {
    return which.to(at::kDouble).mean({-2, -1});
  };
  return {{"gate_mean", mean},
          {"gate_sd", sd},
          {"gate_shut", share(open < 0.1)},
          {"gate_open", share(open > 0.9)}};
}

torch::Tensor gate_output_correlation(const torch::Tensor& gates, const torch::Tensor& outputs) {
  const auto sizes = counted(outputs).abs();
  const auto open = counted(gates).expand_as(sizes);
  const auto [mean_gate, sd_gate] = moments(open);
  const auto [mean_size, sd_size] = moments(sizes);
  const auto covariance = (open * sizes).mean({-2, -1}) - mean_gate * mean_size;
  return ratio(covariance, sd_gate * sd_size);
}

Statistics memory_statistics(const torch::Tensor& log_forget) {
  const auto logs = log_forget.to(at::kDouble);
  const auto summed = logs.cumsum(-1);
  // C_i - C_j is the sum over t = j + 1 .. i.
  const auto decay = summed.unsqueeze(-1) - summed.unsqueeze(-2);
  const auto later = distances(logs.size(-1), logs.device()) < 0;
  const auto kept = decay.exp().masked_fill(later, 0.0).sum(-1);
  const auto mean_log = mean_over_queries(logs);
  return {{"memory_length", mean_over_queries(kept)},
          {"half_life", -std::log(2.0) / mean_log},
          {"forget_mean", mean_over_queries(logs.exp())}};
}

RepeatedTokens repeated_tokens(std::int64_t sequences, std::int64_t length, std::int64_t vocabulary,
                               std::uint64_t seed) {
  if (sequences < 1 || length < 2 * kFirstQuery || vocabulary < 1) {
    throw std::invalid_argument(std::to_string(sequences) + " repeated sequences of " +
                                std::to_string(length) + " tokens from " +
                                std::to_string(vocabulary) + ", must be at least 1 of " +
                                std::to_string(2 * kFirstQuery) + " from 1");
  }
  const auto shortest = length / 4;
  const auto longest = length / 2;
  RandomEngine random(seed);
  RepeatedTokens repeated{at::empty({sequences, length}, at::kLong),
                          at::empty({sequences}, at::kLong)};
  auto* token = repeated.tokens.data_ptr<std::int64_t>();
  for (std::int64_t b = 0; b < sequences; ++b) {
    const auto period = shortest + random.below(longest - shortest + 1);
    repeated.periods.data_ptr<std::int64_t>()[b] = period;
    for (std::int64_t t = 0; t < length; ++t, ++token) {
      *token = t < period ? random.below(vocabulary) : token[-period];
    }
  }
  return repeated;
}

torch::Tensor previous_keys(const torch::Tensor& tokens) {
  return (distances(tokens.size(1), tokens.device()) == 1)
      .expand({tokens.size(0), tokens.size(1), tokens.size(1)});
}

torch::Tensor duplicate_keys(const torch::Tensor& tokens) {
  const auto equal = tokens.unsqueeze(2) == tokens.unsqueeze(1);
  return equal.logical_and(distances(tokens.size(1), tokens.device()) > 0);
}

torch::Tensor induction_keys(const torch::Tensor& tokens) {
  const auto equal = tokens.unsqueeze(2) == tokens.unsqueeze(1);
  // Column j of equal moves to j + 1, the key after the equal one.
  const auto none = at::zeros_like(equal.narrow(2, 0, 1));
  const auto after = at::cat({none, equal.narrow(2, 0, tokens.size(1) - 1)}, 2);
  return after.logical_and(distances(tokens.size(1), tokens.device()) >= 0);
}

torch::Tensor attended_share(const torch::Tensor& maps, const torch::Tensor& keys) {
  require_maps(maps);
  const auto looked_for = counted(keys).unsqueeze(1);
  const auto asked = looked_for.amax(-1, /*keepdim=*/true);
  const auto sizes = counted(maps).abs() * asked;
  return ratio((sizes * looked_for).sum({-2, -1}), sizes.sum({-2, -1}));
}

Statistics head_scores(const torch::Tensor& maps, const torch::Tensor& tokens) {
  return {{"previous_token", attended_share(maps, previous_keys(tokens))},
          {"duplicate_token", attended_share(maps, duplicate_keys(tokens))},
          {"induction", attended_share(maps, induction_keys(tokens))}};
}

torch::Tensor in_context_score(const torch::Tensor& nll, const torch::Tensor& periods) {
  const auto tokens = nll.size(1);
  const auto place = at::arange(tokens, periods.options()).unsqueeze(0);
  const auto period = periods.unsqueeze(1);
  // Position t predicts token t + 1, whose pair with token t lies in a copy unless that begins with
  // it. The last position predicts nothing that was drawn.
  const auto pair = (place + 1).remainder(period) != 0;
  const auto known = place < tokens - 1;
  const auto mean_over = [&](const torch::Tensor& copy) {
    const auto weight = copy.logical_and(pair).logical_and(known).to(at::kDouble);
    return ratio((nll.to(at::kDouble).masked_fill(weight == 0.0, 0.0)).sum(1), weight.sum(1));
  };
  return mean_over(place < period) - mean_over((place >= period).logical_and(place < 2 * period));
}

}  // namespace nas::nn
