#include "nn/attention.hpp"

namespace nas::nn {
namespace {

/// Threshold of the k largest, whose count, mean and mean square are given: the tau with
/// sum (z - tau)^2 = 1 that lies below their mean.
torch::Tensor threshold(const torch::Tensor& count, const torch::Tensor& mean,
                        const torch::Tensor& mean_square) {
  return mean - (1.0 / count - (mean_square - mean.square())).clamp_min(0.0).sqrt();
}

/// The keys of positive weight, (B, H, T, T) bool: the largest k with z_(k) >= tau(k), z_(.) in
/// descending order. A piecewise constant of the scores, so no gradient flows here.
torch::Tensor support(const torch::Tensor& z, const torch::Tensor& visible) {
  const at::NoGradGuard no_grad;
  const auto hidden = hide(z, visible);
  const auto sorted = std::get<0>(hidden.sort(-1, /*descending=*/true));
  const auto k = at::arange(1, z.size(-1) + 1, z.options());
  const auto tau = threshold(k, sorted.cumsum(-1) / k, sorted.square().cumsum(-1) / k);
  // Once hidden keys are in the sums, tau is NaN and the comparison false.
  const auto size = sorted.ge(tau).sum(-1, /*keepdim=*/true);
  return hidden.ge(sorted.gather(-1, size - 1));
}

class Entmax15 final : public Normalization {
 public:
  torch::Tensor weights(const torch::Tensor& scores, const torch::Tensor& visible) const override {
    // Adding a number to a row changes nothing; the largest at 0 keeps the squares exact.
    const auto z = (scores - hide(scores.detach(), visible).amax(-1, /*keepdim=*/true)) / 2.0;
    const auto outside = support(z.detach(), visible).logical_not_();
    const auto inside = z.masked_fill(outside, 0.0);
    const auto count = outside.logical_not().sum(-1, /*keepdim=*/true).to(z.scalar_type());
    const auto tau = threshold(count, inside.sum(-1, /*keepdim=*/true) / count,
                               inside.square().sum(-1, /*keepdim=*/true) / count);
    return (z - tau).masked_fill(outside, 0.0).square();
  }
  std::optional<kernels::RowNormalization> fused() const override { return kernels::entmax15(); }
};

NAS_REGISTER_NORMALIZATION(
    Entmax15, .key = "entmax15",
    .summary =
        "w = max(s/2 - tau, 0)^2, sum 1: between softmax and sparsemax (Peters et al. 2019, "
        "arXiv:1905.05702)",
    .flops = [](const AttentionShape& shape) { return 17.0 * shape.scores(); });

}  // namespace
}  // namespace nas::nn
