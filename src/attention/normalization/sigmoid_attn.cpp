#include "nn/attention.hpp"

namespace nas::nn {
namespace {

/// @see Ramapuram et al. (2024), arXiv:2409.04431, with one bias -log n for all rows; ours depends on
/// the row, so that a prefix keeps its outputs.
class SigmoidAttention final : public Normalization {
 public:
  torch::Tensor weights(const torch::Tensor& scores, const torch::Tensor& visible) const override {
    const auto counts = visible.sum(-1, /*keepdim=*/true).to(scores.scalar_type());
    return (scores - counts.log()).sigmoid().masked_fill(visible.logical_not(), 0.0);
  }
  std::optional<kernels::RowNormalization> fused() const override {
    return kernels::sigmoid_attn();
  }
};

NAS_REGISTER_NORMALIZATION(
    SigmoidAttention, .key = "sigmoid_attn",
    .summary =
        "w = sigmoid(s - log n), n visible keys: no sum over the row (Ramapuram et al. 2024, "
        "arXiv:2409.04431)",
    .flops = [](const AttentionShape& shape) { return 4.0 * shape.scores(); });

}  // namespace
}  // namespace nas::nn
