#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class NormedHighway final : public Gating {
 public:
  NormedHighway(const LayerContext& context, const ParameterScope& scope)
      : gate_(scope.child("highway_gate"), context.shape.width, context.shape.width) {}

  torch::Tensor increment(const torch::Tensor& attended, const torch::Tensor& x,
                          const torch::Tensor& /*residual*/) const override {
    const auto gate = gate_(x).sigmoid();
    return gate * attended + (1.0 - gate) * x;
  }

  std::optional<FusedGate> fused() const override {
    return FusedGate{
        {.attended = {0.0F, 1.0F}, .copied = {1.0F, -1.0F}}, gate_.weight(), gate_.bias()};
  }

 private:
  Linear gate_;
};

NAS_REGISTER_GATING(
    NormedHighway, .key = "normed_highway",
    .summary =
        "h + g o + (1 - g) x, g = sigmoid(W x + b): the paper's 'highway', which adds a "
        "normalised copy to the stream",
    .parameters = [](const AttentionShape& shape) { return shape.width * (shape.width + 1); },
    .flops =
        [](const AttentionShape& shape) {
          return shape.at_each_token(shape.width * (2 * shape.width + 6));
        });

}  // namespace
}  // namespace nas::nn
