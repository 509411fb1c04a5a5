#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/attention.hpp"

namespace nas::nn {
namespace {

/// Logits of gates that forget over tau tokens, f = e^(-1/tau), tau from 4 to the context in equal
/// ratios, one a head.
std::vector<double> start_logits(const AttentionShape& shape) {
  constexpr double kShortest = 4.0;
  const double longest = std::max(kShortest, static_cast<double>(shape.context));
  std::vector<double> logits;
  for (std::int64_t h = 0; h < shape.heads; ++h) {
    const double share =
        shape.heads > 1 ? static_cast<double>(h) / static_cast<double>(shape.heads - 1) : 0.0;
    const double tau = kShortest * std::pow(longest / kShortest, share);
    logits.push_back(-std::log(std::expm1(1.0 / tau)));
  }
  return logits;
}

/// Forget gates: s_ij + sum of log f_t over t = j + 1 .. i, f_t = sigmoid(w_h.x_t + b_h).
/// @see Lin et al. (2025), Forgetting Transformer, arXiv:2503.02130, section 3; biases as in its
/// fgate_bias_init, w from 0 in place of N(0, 0.02).
class Scalar final : public ScoreDecay {
 public:
  Scalar(const LayerContext& context, const ParameterScope& scope)
      : mode_(unrounded(scope.mode())),
        weight_(scope.add("forget.weight", {context.shape.heads, context.shape.width},
                          Start::constant(0.0), Decay::no)),
        bias_(scope.add("forget.bias", {context.shape.heads},
                        Start::listed(start_logits(context.shape)), Decay::no)) {}

  bool decays_scores() const override { return true; }

  torch::Tensor cumulative(const torch::Tensor& x) const override {
    return model_by_model(
        [](const torch::Tensor& logits) {
          return at::log_sigmoid(logits.to(at::kDouble)).cumsum(2).transpose(2, 3);
        },
        linear(x, weight_, Biases::of_all(bias_), mode_));
  }

 private:
  NumericalMode mode_;
  torch::Tensor weight_;  // (M, H, D)
  torch::Tensor bias_;    // (M, H)
};

NAS_REGISTER_DECAY(
    Scalar, .key = "scalar",
    .summary =
        "s_ij + sum_{t=j+1..i} log f_t, f_t = sigmoid(w_h.x_t + b_h), starts to forget over 4 .. L "
        "tokens (Lin et al. 2025, arXiv:2503.02130)",
    .parameters = [](const AttentionShape& shape) { return shape.heads * (shape.width + 1); },
    .flops =
        [](const AttentionShape& shape) {
          return shape.at_each_token(shape.heads * (2 * shape.width + 2)) + 2.0 * shape.scores();
        },
    .state_bytes = [](const AttentionShape& shape) { return 4 * shape.heads * shape.kept(); },
    .fused = true);

}  // namespace
}  // namespace nas::nn
