#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class PerQuery final : public Temperature {
 public:
  PerQuery(const LayerContext& context, const ParameterScope& scope)
      : mode_(unrounded(scope.mode())),
        weight_(scope.add("temperature.weight", {context.shape.heads, context.shape.width},
                          Start::constant(0.0), Decay::no)),
        bias_(scope.add("temperature.bias", {context.shape.heads}, Start::constant(0.0),
                        Decay::no)) {}

  torch::Tensor divisors(const torch::Tensor& x) const override {
    const auto logits = linear(x, weight_, Biases::of_all(bias_), mode_);
    return (logits.sigmoid() + 0.5).transpose(2, 3).unsqueeze(-1);
  }
  bool times_start() const override { return true; }
  std::optional<FusedTemperature> fused() const override {
    return FusedTemperature{
        .function = DivisorFunction::logistic, .weight = weight_, .bias = bias_};
  }

 private:
  NumericalMode mode_;
  torch::Tensor weight_;  // (M, H, D)
  torch::Tensor bias_;    // (M, H)
};

NAS_REGISTER_TEMPERATURE(
    PerQuery, .key = "per_query",
    .summary = "s_ij / (T0 (sigmoid(w_h.x_i + b_h) + 0.5)), w and b start at 0",
    .parameters = [](const AttentionShape& shape) { return shape.heads * (shape.width + 1); },
    .flops =
        [](const AttentionShape& shape) {
          return shape.at_each_token(shape.heads) * static_cast<double>(2 * shape.width + 3) +
                 shape.scores();
        });

}  // namespace
}  // namespace nas::nn
