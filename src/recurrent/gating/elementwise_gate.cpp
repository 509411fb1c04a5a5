#include "nn/parts/state_options.hpp"

namespace nas::nn {
namespace {

/// o sigmoid(W x + b); at b = 0 it would start half closed.
/// @see Qiu et al. (2025), arXiv:2505.06708.
class ElementwiseGate final : public OutputGate {
 public:
  ElementwiseGate(const LayerContext& context, const ParameterScope& scope)
      : gate_(scope.child("head_gate"), context.shape.width, context.shape.inner(), Start::normal(),
              Start::constant(context.semantics == Semantics::published ? 0.0 : 2.0)) {}

  torch::Tensor logits(const torch::Tensor& x) const override { return gate_(x); }
  torch::Tensor naive(const torch::Tensor& output, const torch::Tensor& x) const override {
    return output * (gate_.weight()[0].mv(x) + gate_.bias()[0]).sigmoid();
  }

 private:
  Linear gate_;
};

NAS_REGISTER_OUTPUT_GATE(
    ElementwiseGate, .key = "elementwise_gate",
    .summary =
        "o sigmoid(W x + b) before the output projection, b starts at 2 (Qiu et al. 2025, "
        "arXiv:2505.06708)",
    .parameters = [](const AttentionShape& shape) { return shape.inner() * (shape.width + 1); },
    .flops =
        [](const AttentionShape& shape) {
          return shape.at_each_token(shape.inner() * (2 * shape.width + 3));
        });

}  // namespace
}  // namespace nas::nn
