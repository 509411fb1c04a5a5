#include "nn/attention.hpp"

namespace nas::nn {
namespace {

/// The keys of positive weight, (B, H, T, T) bool: the largest k with 1 + k z_(k) > z_(1) + ... +
/// z_(k), z_(.) in descending order. A piecewise constant of the scores, so no gradient flows here.
torch::Tensor support(const torch::Tensor& z, const torch::Tensor& visible) {
  const at::NoGradGuard no_grad;
  const auto hidden = hide(z, visible);
  const auto sorted = std::get<0>(hidden.sort(-1, /*descending=*/true));
  const auto k = at::arange(1, z.size(-1) + 1, z.options());
  // Comparing -inf with -inf is false: hidden keys never count.
  const auto size = sorted.mul(k).add_(1.0).gt(sorted.cumsum(-1)).sum(-1, /*keepdim=*/true);
  return hidden.ge(sorted.gather(-1, size - 1));
}

class Sparsemax final : public Normalization {
 public:
  torch::Tensor weights(const torch::Tensor& scores, const torch::Tensor& visible) const override {
    // Adding a number to a row changes nothing; the largest at 0 keeps the sums exact.
    const auto z = scores - hide(scores.detach(), visible).amax(-1, /*keepdim=*/true);
    const auto outside = support(z.detach(), visible).logical_not_();
    const auto size = outside.logical_not().sum(-1, /*keepdim=*/true);
    const auto threshold = (z.masked_fill(outside, 0.0).sum(-1, /*keepdim=*/true) - 1.0) / size;
    return (z - threshold).masked_fill(outside, 0.0);
  }
  std::optional<kernels::RowNormalization> fused() const override { return kernels::sparsemax(); }
};

NAS_REGISTER_NORMALIZATION(
    Sparsemax, .key = "sparsemax",
    .summary =
        "w = Euclidean projection of s on the simplex, sparse (Martins & Astudillo 2016, "
        "arXiv:1602.02068)",
    .flops = [](const AttentionShape& shape) { return 6.0 * shape.scores(); });

}  // namespace
}  // namespace nas::nn
