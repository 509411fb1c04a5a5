#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class Softmax1 final : public Normalization {
 public:
  torch::Tensor weights(const torch::Tensor& scores, const torch::Tensor& visible) const override {
    // The one in the denominator is one more key of score 0, whose weight is dropped.
    const auto nothing = at::zeros_like(scores.narrow(-1, 0, 1));
    return at::cat({hide(scores, visible), nothing}, -1).softmax(-1).narrow(-1, 0, scores.size(-1));
  }
  std::optional<kernels::RowNormalization> fused() const override { return kernels::softmax1(); }
};

NAS_REGISTER_NORMALIZATION(
    Softmax1, .key = "softmax1",
    .summary =
        "w = exp(s) / (1 + sum exp(s)): may attend to nothing (Miller 2023, 'softmax off by "
        "one')",
    .flops = [](const AttentionShape& shape) {
      return 4.0 * (shape.scores() + shape.at_each_token(shape.heads * shape.maps));
    });

}  // namespace
}  // namespace nas::nn
