#include <optional>

#include "genotype/layer_rules.hpp"
#include "nn/parts/state_options.hpp"

namespace nas::nn {
namespace {

/// o sigmoid(W x + b), W = W_2 W_1 where gate_rank is not 0; at b = 0 it would start half closed.
/// @see Kimi Team (2025), arXiv:2510.26692.
class SigmoidGate final : public OutputGate {
 public:
  SigmoidGate(const LayerContext& context, const ParameterScope& scope) {
    const auto width = context.shape.width;
    const auto rank = context.shape.sizes.integer("gate_rank");
    if (rank > 0) down_ = Linear::with_biases_of(scope.child("gate_down"), width, rank, {});
    up_ = Linear(scope.child(down_ ? "gate_up" : "head_gate"), down_ ? rank : width,
                 context.shape.inner(), Start::normal(),
                 Start::constant(context.semantics == Semantics::published ? 0.0 : 2.0));
  }

  torch::Tensor logits(const torch::Tensor& x) const override {
    return up_(down_ ? (*down_)(x) : x);
  }
  torch::Tensor naive(const torch::Tensor& output, const torch::Tensor& x) const override {
    const auto of_rank = down_ ? down_->weight()[0].mv(x) : x;
    return output * (up_.weight()[0].mv(of_rank) + up_.bias()[0]).sigmoid();
  }
  static std::int64_t numbers(const AttentionShape& shape) {
    const auto rank = shape.sizes.integer("gate_rank");
    return rank > 0 ? rank * (shape.width + shape.inner()) : shape.width * shape.inner();
  }

 private:
  std::optional<Linear> down_;
  Linear up_;
};

NAS_REGISTER_OUTPUT_GATE(
    SigmoidGate, .key = "sigmoid_gate",
    .summary =
        "o sigmoid(W x + b) before the output projection, W = W_2 W_1 of rank gate_rank where that "
        "is not 0, b starts at 2 (Kimi Team 2025, arXiv:2510.26692)",
    .parameters =
        [](const AttentionShape& shape) { return SigmoidGate::numbers(shape) + shape.inner(); },
    .flops =
        [](const AttentionShape& shape) {
          return shape.at_each_token(2 * SigmoidGate::numbers(shape) + 3 * shape.inner());
        },
    .sizes = {integer("gate_rank", "rank of the gate's matrix; 0: full", 0, 0, 3)});

}  // namespace
}  // namespace nas::nn
