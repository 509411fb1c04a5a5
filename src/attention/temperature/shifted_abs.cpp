#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class ShiftedAbs final : public Temperature {
 public:
  ShiftedAbs(const LayerContext& /*context*/, const ParameterScope& scope)
      : p_(scope.add("temperature", {1}, Start::constant(1.0), Decay::no)) {}

  torch::Tensor divisors(const torch::Tensor& /*x*/) const override {
    return (p_.abs() + 0.5).view({-1, 1, 1, 1, 1});
  }
  std::optional<FusedTemperature> fused() const override {
    return FusedTemperature{.function = DivisorFunction::absolute, .parameter = p_};
  }

 private:
  torch::Tensor p_;  // (M, 1)
};

NAS_REGISTER_TEMPERATURE(
    ShiftedAbs, .key = "shifted_abs",
    .summary = "s / (|p| + 0.5), one p a layer, starts at 1: the paper's 'learned'",
    .parameters = [](const AttentionShape& /*shape*/) { return std::int64_t{1}; },
    .flops = [](const AttentionShape& shape) { return shape.scores(); });

}  // namespace
}  // namespace nas::nn
