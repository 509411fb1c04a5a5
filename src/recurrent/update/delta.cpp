#include "nn/parts/state_options.hpp"
#include "ops/product.hpp"

namespace nas::nn {
namespace {

/// S_t = (I - beta_t k_t k_t') diag(alpha_t) S_{t-1} + beta_t k_t v_t', beta = sigmoid(w_h.x), doubled
/// by neg_eigen, so that a state may be reflected.
/// @see Yang et al. (2024), arXiv:2406.06484; Grazzi et al. (2024), arXiv:2411.12537.
class Delta final : public StateUpdate {
 public:
  Delta(const LayerContext& context, const ParameterScope& scope)
      : mode_(unrounded(scope.mode())),
        factor_(context.shape.sizes.integer("neg_eigen") == 1 ? 2.0 : 1.0),
        weight_(scope.add("beta.weight", {context.shape.heads, context.shape.width},
                          Start::normal(), Decay::yes)) {}

  void gate(const torch::Tensor& x, Recurrence& tokens) const override {
    const auto logits = linear(x, weight_, {}, mode_);
    tokens.erased = opened(tokens.keys, logits, factor_, mode_);
    tokens.values = opened(tokens.values, logits, factor_, mode_);
  }

  torch::Tensor naive(const torch::Tensor& decayed, const HeadToken& token) const override {
    const auto beta = factor_ * weight_[0][token.head].dot(token.x).sigmoid();
    const auto held = token.key.matmul(decayed);
    return decayed + beta * token.key.outer(token.value - held);
  }

 private:
  NumericalMode mode_;
  double factor_;
  torch::Tensor weight_;  // (M, H, D)
};

NAS_REGISTER_STATE_UPDATE(
    Delta, .key = "delta",
    .summary =
        "S <- (I - beta k k') alpha S + beta k v', beta = sigmoid(w_h.x) (Yang et al. 2024, "
        "arXiv:2406.06484)",
    .voids = {"feature", "position"},
    .parameters = [](const AttentionShape& shape) { return shape.heads * shape.width; },
    .flops =
        [](const AttentionShape& shape) {
          const auto reflects = shape.sizes.integer("neg_eigen") == 1 ? 2 : 1;
          return shape.at_each_token(shape.heads * (2 * shape.width + reflects));
        },
    .erases = true);

}  // namespace
}  // namespace nas::nn
