#include "nn/norm.hpp"
#include "ops/norm.hpp"

namespace nas::nn {

namespace {

/// Root mean square normalisation: y = x / sqrt(mean(x^2) + eps) g.
class RmsNormalisation final : public Norm {
 public:
  RmsNormalisation(const NormShape& shape, const ParameterScope& scope)
      : mode_(scope.mode()),
        epsilon_(shape.epsilon),
        weight_(scope.add("weight", {shape.width}, Start::constant(1.0), Decay::no)) {}

  [[nodiscard]] torch::Tensor normalised(const torch::Tensor& x) const override {
    return rms_norm(x, weight_, epsilon_, mode_);
  }

 private:
  NumericalMode mode_;
  double epsilon_;
  torch::Tensor weight_;
};

NAS_REGISTER_NORM(
    RmsNormalisation, .key = "rms",
    .summary =
        "root mean square normalisation, with a gain (Zhang & Sennrich 2019, arXiv:1910.07467)",
    .parameters = [](const AttentionShape& shape) { return shape.width; });

}  // namespace

}  // namespace nas::nn
