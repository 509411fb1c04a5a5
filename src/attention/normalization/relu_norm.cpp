#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class ReluNorm final : public Normalization {
 public:
  torch::Tensor weights(const torch::Tensor& scores, const torch::Tensor& visible) const override {
    const auto positive = scores.masked_fill(visible.logical_not(), 0.0).relu();
    return positive / (positive.sum(-1, /*keepdim=*/true) + 1e-8);
  }
  std::optional<kernels::RowNormalization> fused() const override { return kernels::relu_norm(); }
};

// Dividing all scores of a row by a number changes both sides of the fraction alike.
NAS_REGISTER_NORMALIZATION(
    ReluNorm, .key = "relu_norm",
    .summary =
        "w = relu(s) / (sum relu(s) + 1e-8): a row without a positive score is 0; the "
        "temperature cancels",
    .voids = {"temperature"},
    .flops = [](const AttentionShape& shape) { return 3.0 * shape.scores(); });

}  // namespace
}  // namespace nas::nn
