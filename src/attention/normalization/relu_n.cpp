#include "nn/attention.hpp"

namespace nas::nn {
namespace {

/// @see Wortsman et al. (2023), arXiv:2309.08586.
class ReluN final : public Normalization {
 public:
  torch::Tensor weights(const torch::Tensor& scores, const torch::Tensor& visible) const override {
    const auto counts = visible.sum(-1, /*keepdim=*/true).to(scores.scalar_type());
    return scores.masked_fill(visible.logical_not(), 0.0).relu() / counts;
  }
  std::optional<kernels::RowNormalization> fused() const override { return kernels::relu_n(); }
};

NAS_REGISTER_NORMALIZATION(
    ReluN, .key = "relu_n",
    .summary = "w = max(s, 0) / n, n visible keys (Wortsman et al. 2023, arXiv:2309.08586)",
    .flops = [](const AttentionShape& shape) { return 2.0 * shape.scores(); });

}  // namespace
}  // namespace nas::nn
