#include <algorithm>
#include <cmath>

#include "nn/attention.hpp"

namespace nas::nn {
namespace {

/// @see Nakanishi (2025), Scalable-Softmax, arXiv:2501.19399. At least log 2, so that a query with
/// one key has a temperature, too: normalizations that do not sum to 1 see it.
class LogLength final : public Temperature {
 public:
  LogLength(const LayerContext& context, const ParameterScope& scope)
      : scale_(scope.add("length_scale", {context.shape.heads},
                         Start::constant(1.0 / std::log(static_cast<double>(std::max<std::int64_t>(
                                                   context.shape.context, 2)))),
                         Decay::no)) {}

  torch::Tensor divisors(const torch::Tensor& /*x*/) const override { return one_; }
  bool times_start() const override { return true; }
  bool has_factors() const override { return true; }
  torch::Tensor factors(const torch::Tensor& seen) const override {
    const auto logarithms =
        seen.clamp_min(2).to(at::kDouble).log().to(scale_.scalar_type()).unsqueeze(-1);
    return model_by_model(
        [&](const torch::Tensor& scale) {
          return scale.view({scale.size(0), 1, -1, 1, 1}) * logarithms;
        },
        scale_);
  }
  std::optional<FusedTemperature> fused() const override { return FusedTemperature{}; }

 private:
  torch::Tensor scale_;  // (M, H)
  // Of no dimension, so that it takes any device and type.
  torch::Tensor one_ = at::scalar_tensor(1.0, at::kDouble);
};

NAS_REGISTER_TEMPERATURE(
    LogLength, .key = "log_length",
    .summary =
        "s / T0 a_h log(max(n_i, 2)), n_i visible keys, a starts at 1 / log L (Nakanishi 2025, "
        "arXiv:2501.19399)",
    .parameters = [](const AttentionShape& shape) { return shape.heads; },
    .flops =
        [](const AttentionShape& shape) {
          return shape.scores() + shape.at_each_token(shape.heads);
        });

}  // namespace
}  // namespace nas::nn
