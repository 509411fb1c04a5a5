#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class SigmoidNorm final : public Normalization {
 public:
  torch::Tensor weights(const torch::Tensor& scores, const torch::Tensor& visible) const override {
    const auto open = scores.sigmoid().masked_fill(visible.logical_not(), 0.0);
    return open / (open.sum(-1, /*keepdim=*/true) + 1e-8);
  }
  std::optional<kernels::RowNormalization> fused() const override {
    return kernels::sigmoid_norm();
  }
};

NAS_REGISTER_NORMALIZATION(
    SigmoidNorm, .key = "sigmoid_norm", .summary = "w = sigmoid(s) / (sum sigmoid(s) + 1e-8)",
    .flops = [](const AttentionShape& shape) { return 3.0 * shape.scores(); });

}  // namespace
}  // namespace nas::nn
