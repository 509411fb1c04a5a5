#include "nn/parts/state_options.hpp"
#include "ops/product.hpp"

namespace nas::nn {
namespace {

/// S_t = (I - k_t (b_t . k_t)') diag(alpha_t) S_{t-1} + k_t (w_t . v_t)', b and w = sigmoid(W x), b
/// doubled by neg_eigen.
/// @see Gated DeltaNet-2 (2026), arXiv:2605.22791.
class Delta2 final : public StateUpdate {
 public:
  Delta2(const LayerContext& context, const ParameterScope& scope)
      : mode_(unrounded(scope.mode())),
        heads_(context.shape.heads),
        factor_(context.shape.sizes.integer("neg_eigen") == 1 ? 2.0 : 1.0),
        erase_(scope.add("erase.weight",
                         {heads_ * context.shape.key_entries(), context.shape.width},
                         Start::normal(), Decay::yes)),
        write_(scope.add("write.weight", {context.shape.inner(), context.shape.width},
                         Start::normal(), Decay::yes)) {}

  void gate(const torch::Tensor& x, Recurrence& tokens) const override {
    tokens.erased = opened(tokens.keys, linear(x, erase_, {}, mode_), factor_, mode_);
    tokens.values = opened(tokens.values, linear(x, write_, {}, mode_), 1.0, mode_);
  }

  torch::Tensor naive(const torch::Tensor& decayed, const HeadToken& token) const override {
    const auto erase = factor_ * of_head(erase_, token.head, heads_).mv(token.x).sigmoid();
    const auto write = of_head(write_, token.head, heads_).mv(token.x).sigmoid();
    const auto held = (erase * token.key).matmul(decayed);
    return decayed + token.key.outer(write * token.value - held);
  }

 private:
  NumericalMode mode_;
  std::int64_t heads_;
  double factor_;
  torch::Tensor erase_, write_;  // (M, H d_k, D), (M, H d, D)
};

NAS_REGISTER_STATE_UPDATE(
    Delta2, .key = "delta2",
    .summary =
        "S <- (I - k (b k)') alpha S + k (w v)', b and w = sigmoid(W x) of each entry (Gated "
        "DeltaNet-2, arXiv:2605.22791)",
    .voids = {"feature", "position"},
    .parameters =
        [](const AttentionShape& shape) {
          return shape.width * (shape.heads * shape.key_entries() + shape.inner());
        },
    .flops =
        [](const AttentionShape& shape) {
          const auto reflects = shape.sizes.integer("neg_eigen") == 1 ? 2 : 1;
          const auto keys = shape.heads * shape.key_entries();
          return shape.at_each_token(2 * shape.width * (keys + shape.inner()) +
                                     keys * (reflects + 1) + shape.inner());
        },
    .erases = true);

}  // namespace
}  // namespace nas::nn
