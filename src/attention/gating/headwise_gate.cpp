#include "nn/attention.hpp"

namespace nas::nn {
namespace {

/// A gate for each head's output, before the output projection.
/// @see Qiu et al. (2025), arXiv:2505.06708, section 2.2, position G1, headwise.
class HeadwiseGate final : public Gating {
 public:
  // At 0 the gate would start half closed.
  HeadwiseGate(const LayerContext& context, const ParameterScope& scope)
      : gate_(scope.child("head_gate"), context.shape.width, context.shape.heads, Start::normal(),
              Start::constant(context.semantics == Semantics::published ? 0.0 : 2.0)) {}

  bool gates_heads() const override { return true; }
  torch::Tensor gated_heads(const torch::Tensor& mixed, const torch::Tensor& x) const override {
    return model_by_model(
        [](const torch::Tensor& part, const torch::Tensor& logits) {
          const auto of_heads =
              part.view({part.size(0), part.size(1), part.size(2), logits.size(-1), -1});
          return (of_heads * logits.sigmoid().unsqueeze(-1)).flatten(3);
        },
        mixed.contiguous(), gate_(x));
  }
  // Nothing but gated_heads().
  std::optional<FusedGate> fused() const override { return FusedGate{}; }

 private:
  Linear gate_;
};

NAS_REGISTER_GATING(
    HeadwiseGate, .key = "headwise_gate",
    .summary =
        "o_h sigmoid(w_h.x + b_h) before the output projection, b starts at 2 (Qiu et al. 2025, "
        "arXiv:2505.06708)",
    .parameters = [](const AttentionShape& shape) { return shape.heads * (shape.width + 1); },
    .flops =
        [](const AttentionShape& shape) {
          return shape.at_each_token(shape.heads * (2 * shape.width + 2) + shape.inner());
        });

}  // namespace
}  // namespace nas::nn
