#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class OutputGate final : public Gating {
 public:
  // At 0 the gate would start half closed.
  OutputGate(const LayerContext& context, const ParameterScope& scope)
      : gate_(scope.child("out_gate"), context.shape.width, context.shape.width, Start::normal(),
              Start::constant(context.semantics == Semantics::published ? 0.0 : 2.0)) {}

  torch::Tensor increment(const torch::Tensor& attended, const torch::Tensor& x,
                          const torch::Tensor& /*residual*/) const override {
    return attended * gate_(x).sigmoid();
  }

  std::optional<FusedGate> fused() const override {
    return FusedGate{{.attended = {0.0F, 1.0F}}, gate_.weight(), gate_.bias()};
  }

 private:
  Linear gate_;
};

NAS_REGISTER_GATING(
    OutputGate, .key = "output_gate",
    .summary = "h + o sigmoid(W x + b); b starts at 2 (corrected) or 0 (published)",
    .parameters = [](const AttentionShape& shape) { return shape.width * (shape.width + 1); },
    .flops =
        [](const AttentionShape& shape) {
          return shape.at_each_token(shape.width * (2 * shape.width + 3));
        });

}  // namespace
}  // namespace nas::nn
