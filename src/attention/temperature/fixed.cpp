#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class Fixed final : public Temperature {
 public:
  torch::Tensor divisors(const torch::Tensor& /*x*/) const override { return one_; }
  bool times_start() const override { return true; }
  std::optional<FusedTemperature> fused() const override { return FusedTemperature{}; }

 private:
  // Of no dimension, so that it takes any device and type.
  torch::Tensor one_ = at::scalar_tensor(1.0, at::kDouble);
};

NAS_REGISTER_TEMPERATURE(
    Fixed, .key = "fixed",
    .summary =
        "s / T0; T0 = sqrt(d) for products, 1 for additive, 1 / "
        "log2(L^2 - L) for cosine",
    .flops = [](const AttentionShape& shape) { return shape.scores(); });

}  // namespace
}  // namespace nas::nn
