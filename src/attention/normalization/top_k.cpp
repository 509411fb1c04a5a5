#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class TopK final : public Normalization {
 public:
  torch::Tensor weights(const torch::Tensor& scores, const torch::Tensor& visible) const override {
    // ceil(n / 4) of n visible keys, at least one.
    const auto counts = visible.sum(-1).add(3).div(4, /*rounding_mode=*/"floor");
    return softmax_over(scores, largest(scores, visible, counts, (scores.size(-1) + 3) / 4));
  }
  std::optional<kernels::RowNormalization> fused() const override { return kernels::top_k(); }
};

NAS_REGISTER_NORMALIZATION(
    TopK, .key = "top_k",
    .summary =
        "softmax over the ceil(n/4) largest of n visible scores: topk_quarter made "
        "independent of the length",
    .flops = [](const AttentionShape& shape) { return 4.0 * shape.scores(); });

}  // namespace
}  // namespace nas::nn
