#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class Learned final : public Temperature {
 public:
  Learned(const LayerContext& context, const ParameterScope& scope)
      : start_(context.start_temperature),
        mode_(scope.mode()),
        theta_(scope.add("temperature.theta", {context.shape.heads}, Start::constant(0.0),
                         Decay::no)) {}

  torch::Tensor divisors(const torch::Tensor& /*x*/) const override {
    return (nn::exp(theta_, mode_) * start_).view({theta_.size(0), 1, -1, 1, 1});
  }

 private:
  double start_;
  NumericalMode mode_;
  torch::Tensor theta_;  // (M, H)
};

NAS_REGISTER_TEMPERATURE(
    Learned, .key = "learned", .summary = "s / (T0 exp(theta_h)), one theta a head, starts at 0",
    .parameters = [](const AttentionShape& shape) { return shape.heads; },
    .flops =
        [](const AttentionShape& shape) {
          return static_cast<double>(shape.heads * shape.context * shape.context);
        },
    .placeless = true);

}  // namespace
}  // namespace nas::nn
