#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class Fixed final : public Temperature {
 public:
  Fixed(const LayerContext& context, const ParameterScope& /*scope*/)
      : temperature_(context.start_temperature) {}

  torch::Tensor scaled(const torch::Tensor& scores, const torch::Tensor& /*x*/) const override {
    return scores / temperature_;
  }

 private:
  double temperature_;
};

NAS_REGISTER_TEMPERATURE(
    Fixed, .key = "fixed",
    .summary =
        "s / T0; T0 = sqrt(d) for products, 1 for additive, 1 / "
        "log2(L^2 - L) for cosine",
    .flops = [](const AttentionShape& shape) {
      return static_cast<double>(shape.heads * shape.context * shape.context);
    });

}  // namespace
}  // namespace nas::nn
