#include "instruments/state_statistics.hpp"

#include <cmath>
#include <limits>

namespace nas::nn {

Statistics decay_statistics(const torch::Tensor& log_decays) {
  const auto logs = log_decays.slice(2, kFirstQuery).to(at::kDouble);
  const auto of_channels = logs.mean(2);  // (B, H, C)
  return {{"memory_length", (1.0 / at::expm1(of_channels).abs()).mean(-1)},
          {"half_life", (std::log(2.0) / of_channels.abs()).mean(-1)},
          {"forget_mean", logs.exp().mean({2, 3})}};
}

Statistics update_statistics(const std::string& name, const torch::Tensor& gates) {
  const auto open = gates.slice(2, kFirstQuery).to(at::kDouble);
  const auto mean = open.mean({2, 3}, /*keepdim=*/true);
  return {{name + "_mean", mean.flatten(1)},
          {name + "_sd", (open - mean).square().mean({2, 3}).sqrt()}};
}

Statistics state_statistics(const torch::Tensor& states) {
  const auto squares = at::linalg_svdvals(states.to(at::kDouble)).square();
  const auto sums = squares.sum(-1, /*keepdim=*/true);
  const auto shares = squares / sums;
  // xlogy(0, 0) = 0, as the limit is.
  const auto used =
      (-at::xlogy(shares, shares).sum(-1)).exp() / static_cast<double>(states.size(2));
  return {{"state_used",
           used.masked_fill(sums.squeeze(-1) == 0.0, std::numeric_limits<double>::quiet_NaN())}};
}

}  // namespace nas::nn
