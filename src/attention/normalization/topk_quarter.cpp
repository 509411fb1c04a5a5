#include <algorithm>

#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class TopkQuarter final : public Normalization {
 public:
  torch::Tensor weights(const torch::Tensor& scores, const torch::Tensor& visible) const override {
    const auto tokens = scores.size(-1);
    const auto count = std::max<std::int64_t>(1, tokens / 4);
    const auto counts = at::full({tokens}, count, scores.options().dtype(at::kLong));
    return softmax_over(scores, largest(scores, visible, counts, count));
  }
  std::optional<kernels::RowNormalization> fused() const override {
    return kernels::topk_quarter();
  }
};

NAS_REGISTER_NORMALIZATION(
    TopkQuarter, .key = "topk_quarter",
    .summary =
        "softmax over the max(1, floor(T/4)) largest scores of a row: the paper's "
        "'sparsemax'; depends on the length",
    .flops = [](const AttentionShape& shape) { return 4.0 * shape.scores(); },
    .prefix_consistent = false);

}  // namespace
}  // namespace nas::nn
