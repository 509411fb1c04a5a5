#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class Fixed final : public Temperature {
 public:
  Fixed(const LayerContext& context, const ParameterScope& /*scope*/)
      : temperature_(at::scalar_tensor(context.start_temperature, at::kDouble)) {}

  torch::Tensor divisors(const torch::Tensor& /*x*/) const override { return temperature_; }

 private:
  torch::Tensor temperature_;  // of no dimension, so that it takes any device and type
};

NAS_REGISTER_TEMPERATURE(
    Fixed, .key = "fixed",
    .summary =
        "s / T0; T0 = sqrt(d) for products, 1 for additive, 1 / "
        "log2(L^2 - L) for cosine",
    .flops =
        [](const AttentionShape& shape) {
          return static_cast<double>(shape.heads * shape.context * shape.context);
        },
    .placeless = true);

}  // namespace
}  // namespace nas::nn
