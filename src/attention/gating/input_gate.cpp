#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class InputGate final : public Gating {
 public:
  // At 0 the gate would start half closed, which also quarters the scores.
  InputGate(const LayerContext& context, const ParameterScope& scope)
      : gate_(scope.child("gate"), context.shape.width, context.shape.width, Start::normal(),
              Start::constant(context.semantics == Semantics::published ? 0.0 : 2.0)) {}

  torch::Tensor gated_input(const torch::Tensor& x) const override {
    return x * gate_(x).sigmoid();
  }

  std::optional<FusedGate> fused() const override {
    return FusedGate{{.input = {0.0F, 1.0F}}, gate_.weight(), gate_.bias()};
  }

 private:
  Linear gate_;
};

NAS_REGISTER_GATING(
    InputGate, .key = "input_gate",
    .summary = "x sigmoid(W x + b) before q, k and v; b starts at 2 (corrected) or 0 (published)",
    .parameters = [](const AttentionShape& shape) { return shape.width * (shape.width + 1); },
    .flops =
        [](const AttentionShape& shape) {
          return shape.at_each_token(shape.width * (2 * shape.width + 3));
        });

}  // namespace
}  // namespace nas::nn
