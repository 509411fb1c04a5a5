#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class TopK final : public Normalization {
 public:
  torch::Tensor weights(const torch::Tensor& scores, const torch::Tensor& visible) const override {
    const auto tokens = scores.size(-1);
    // ceil(n / 4) of n = 1 .. T visible keys, at least one.
    const auto counts = at::arange(4, tokens + 4, scores.options().dtype(at::kLong))
                            .div(4, /*rounding_mode=*/"floor");
    return softmax_over(scores, largest(scores, visible, counts, (tokens + 3) / 4));
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
