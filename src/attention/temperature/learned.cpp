#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class Learned final : public Temperature {
 public:
  Learned(const LayerContext& context, const ParameterScope& scope)
      : theta_(scope.add("temperature.theta", {context.shape.heads}, Start::constant(0.0),
                         Decay::no)) {}

  torch::Tensor divisors(const torch::Tensor& /*x*/) const override {
    return theta_.exp().view({theta_.size(0), 1, -1, 1, 1});
  }
  bool times_start() const override { return true; }
  std::optional<FusedTemperature> fused() const override {
    return FusedTemperature{.function = DivisorFunction::exponential, .parameter = theta_};
  }

 private:
  torch::Tensor theta_;  // (M, H)
};

NAS_REGISTER_TEMPERATURE(
    Learned, .key = "learned", .summary = "s / (T0 exp(theta_h)), one theta a head, starts at 0",
    .parameters = [](const AttentionShape& shape) { return shape.heads; },
    .flops = [](const AttentionShape& shape) { return shape.scores(); });

}  // namespace
}  // namespace nas::nn
