#include "nn/attention.hpp"

namespace nas::nn {
namespace {

/// @see OpenAI (2025), gpt-oss, arXiv:2508.10925.
class Sink final : public Normalization {
 public:
  Sink(const LayerContext& context, const ParameterScope& scope)
      : sink_(scope.add("sink", {context.shape.heads}, Start::constant(0.0), Decay::no)) {}

  torch::Tensor weights(const torch::Tensor& scores, const torch::Tensor& visible) const override {
    // One more key of score c_h, whose weight is dropped.
    const auto sinks = sink_.view({sink_.size(0), 1, -1, 1, 1})
                           .expand({-1, scores.size(1), -1, scores.size(3), 1});
    return at::cat({hide(scores, visible), sinks}, -1).softmax(-1).narrow(-1, 0, scores.size(-1));
  }
  std::optional<kernels::RowNormalization> fused() const override { return kernels::sink(); }
  torch::Tensor sinks() const override { return sink_; }

 private:
  torch::Tensor sink_;  // (M, H)
};

NAS_REGISTER_NORMALIZATION(
    Sink, .key = "sink",
    .summary =
        "w = exp(s) / (exp(c_h) + sum exp(s)), c starts at 0: a learned share for nothing (gpt-oss "
        "2025, arXiv:2508.10925)",
    .parameters = [](const AttentionShape& shape) { return shape.heads; },
    .flops =
        [](const AttentionShape& shape) {
          return 4.0 * (shape.scores() + shape.at_each_token(shape.heads * shape.maps));
        });

}  // namespace
}  // namespace nas::nn
