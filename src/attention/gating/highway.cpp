#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class Highway final : public Gating {
 public:
  Highway(const LayerContext& context, const ParameterScope& scope)
      : gate_(scope.child("highway_gate"), context.shape.width, context.shape.width,
              Start::normal(), Start::constant(-1.0)) {}

  torch::Tensor increment(const torch::Tensor& attended, const torch::Tensor& x,
                          const torch::Tensor& residual) const override {
    return gate_(x).sigmoid() * (attended - residual);
  }

  std::optional<FusedGate> fused() const override {
    return FusedGate{
        {.attended = {0.0F, 1.0F}, .residual = {0.0F, -1.0F}}, gate_.weight(), gate_.bias()};
  }

 private:
  Linear gate_;
};

NAS_REGISTER_GATING(
    Highway, .key = "highway",
    .summary =
        "h + g (o - h), g = sigmoid(W x + b), b starts at -1 (Srivastava et al. 2015, "
        "arXiv:1505.00387)",
    .parameters = [](const AttentionShape& shape) { return shape.width * (shape.width + 1); },
    .flops =
        [](const AttentionShape& shape) {
          return shape.at_each_token(shape.width * (2 * shape.width + 4));
        });

}  // namespace
}  // namespace nas::nn
