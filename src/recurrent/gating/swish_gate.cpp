#include "nn/parts/state_options.hpp"

namespace nas::nn {
namespace {

/// o SiLU(W x).
/// @see Sun et al. (2023), RetNet, arXiv:2307.08621, section 3.1.
class SwishGate final : public OutputGate {
 public:
  SwishGate(const LayerContext& context, const ParameterScope& scope)
      : gate_(Linear::with_biases_of(scope.child("head_gate"), context.shape.width,
                                     context.shape.inner(), {})) {}

  torch::Tensor logits(const torch::Tensor& x) const override { return gate_(x); }
  GateForm form() const override { return GateForm::silu; }
  torch::Tensor naive(const torch::Tensor& output, const torch::Tensor& x) const override {
    const auto logits = gate_.weight()[0].mv(x);
    return output * logits * logits.sigmoid();
  }

 private:
  Linear gate_;
};

NAS_REGISTER_OUTPUT_GATE(
    SwishGate, .key = "swish_gate",
    .summary = "o SiLU(W x) before the output projection (Sun et al. 2023, arXiv:2307.08621)",
    .parameters = [](const AttentionShape& shape) { return shape.inner() * shape.width; },
    .flops =
        [](const AttentionShape& shape) {
          return shape.at_each_token(shape.inner() * (2 * shape.width + 3));
        });

}  // namespace
}  // namespace nas::nn
