#include <cmath>

#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class SqrtD final : public Temperature {
 public:
  SqrtD(const LayerContext& context, const ParameterScope& /*scope*/)
      : value_(std::sqrt(static_cast<double>(context.shape.head_width()))),
        temperature_(at::scalar_tensor(value_, at::kDouble)) {}

  torch::Tensor divisors(const torch::Tensor& /*x*/) const override { return temperature_; }
  std::optional<FusedTemperature> fused() const override {
    return FusedTemperature{.scale = value_};
  }

 private:
  double value_;
  torch::Tensor temperature_;  // of no dimension, so that it takes any device and type
};

NAS_REGISTER_TEMPERATURE(
    SqrtD, .key = "sqrt_d", .summary = "s / sqrt(d) for every similarity: the paper's 'fixed'",
    .flops = [](const AttentionShape& shape) { return shape.scores(); });

}  // namespace
}  // namespace nas::nn
