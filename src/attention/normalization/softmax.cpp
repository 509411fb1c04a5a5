#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class Softmax final : public Normalization {
 public:
  torch::Tensor weights(const torch::Tensor& scores, const torch::Tensor& visible) const override {
    return softmax_over(scores, visible);
  }
  std::optional<kernels::RowNormalization> fused() const override { return kernels::softmax(); }
};

NAS_REGISTER_NORMALIZATION(
    Softmax, .key = "softmax", .summary = "w = exp(s) / sum exp(s) over the visible keys",
    .flops = [](const AttentionShape& shape) { return 4.0 * shape.scores(); });

}  // namespace
}  // namespace nas::nn
