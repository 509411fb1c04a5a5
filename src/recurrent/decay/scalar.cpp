#include <limits>

#include "nn/parts/state_options.hpp"
#include "ops/product.hpp"

namespace nas::nn {
namespace {

/// alpha_t = e^(-e^A softplus(w_h.x_t + b_h)) of each head.
/// @see Dao & Gu (2024), Mamba-2, arXiv:2405.21060.
class Scalar final : public StateDecay {
 public:
  Scalar(const LayerContext& context, const ParameterScope& scope)
      : mode_(unrounded(scope.mode())),
        weight_(scope.add("decay.weight", {context.shape.heads, context.shape.width},
                          Start::normal(), Decay::yes)),
        steps_(scope, context.shape.heads, context.shape.heads) {}

  torch::Tensor logarithms(const torch::Tensor& x) const override {
    return steps_.logarithms(linear(x, weight_, {}, mode_), kNone, mode_);
  }

  torch::Tensor naive(const HeadToken& token) const override {
    const auto logit = weight_[0][token.head].dot(token.x).view({1});
    return steps_.naive(logit, token.head, kNone).exp();
  }

 private:
  static constexpr double kNone = -std::numeric_limits<double>::infinity();

  NumericalMode mode_;
  torch::Tensor weight_;  // (M, H, D)
  SoftplusSteps steps_;
};

NAS_REGISTER_STATE_DECAY(
    Scalar, .key = "scalar",
    .summary = "alpha_t = e^(-e^A softplus(w_h.x_t + b_h)) (Dao & Gu 2024, arXiv:2405.21060)",
    .parameters = [](const AttentionShape& shape) { return shape.heads * (shape.width + 2); },
    .flops =
        [](const AttentionShape& shape) {
          return shape.at_each_token(shape.heads * (2 * shape.width + 4));
        });

}  // namespace
}  // namespace nas::nn
