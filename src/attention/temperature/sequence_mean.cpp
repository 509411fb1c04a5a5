#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class SequenceMean final : public Temperature {
 public:
  SequenceMean(const LayerContext& context, const ParameterScope& scope)
      : mode_(unrounded(scope.mode())),
        weight_(
            scope.add("temp_proj.weight", {1, context.shape.width}, Start::normal(), Decay::no)),
        bias_(scope.add("temp_proj.bias", {1}, Start::constant(0.0), Decay::no)) {}

  torch::Tensor divisors(const torch::Tensor& x) const override {
    const auto logits = linear(x.mean(2), weight_, Biases::of_all(bias_), mode_);  // (M, B, 1)
    return (logits.sigmoid() + 0.5).unsqueeze(-1).unsqueeze(-1);
  }
  std::optional<FusedTemperature> fused() const override {
    return FusedTemperature{
        .function = DivisorFunction::logistic, .weight = weight_, .bias = bias_, .of_mean = true};
  }

 private:
  NumericalMode mode_;
  torch::Tensor weight_;  // (M, 1, D)
  torch::Tensor bias_;    // (M, 1)
};

NAS_REGISTER_TEMPERATURE(
    SequenceMean, .key = "sequence_mean",
    .summary = "s / (sigmoid(w.mean_t x_t + b) + 0.5): the paper's 'adaptive'; sees the future",
    .parameters = [](const AttentionShape& shape) { return shape.width + 1; },
    .flops =
        [](const AttentionShape& shape) {
          return shape.at_each_token(shape.width) + shape.scores();
        },
    .causal = false, .prefix_consistent = false);

}  // namespace
}  // namespace nas::nn
