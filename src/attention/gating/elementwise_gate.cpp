#include "nn/attention.hpp"

namespace nas::nn {
namespace {

/// A gate for each entry of the heads' outputs, before the output projection.
/// @see Qiu et al. (2025), arXiv:2505.06708, section 2.2, position G1.
class ElementwiseGate final : public Gating {
 public:
  // At 0 the gate would start half closed.
  ElementwiseGate(const LayerContext& context, const ParameterScope& scope)
      : gate_(scope.child("head_gate"), context.shape.width, context.shape.inner(), Start::normal(),
              Start::constant(context.semantics == Semantics::published ? 0.0 : 2.0)) {}

  bool gates_heads() const override { return true; }
  torch::Tensor gated_heads(const torch::Tensor& mixed, const torch::Tensor& x) const override {
    return model_by_model([](const torch::Tensor& part,
                             const torch::Tensor& logits) { return part * logits.sigmoid(); },
                          mixed, gate_(x));
  }
  // Nothing but gated_heads().
  std::optional<FusedGate> fused() const override { return FusedGate{}; }

 private:
  Linear gate_;
};

NAS_REGISTER_GATING(
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
