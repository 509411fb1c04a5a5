#include "nn/norm.hpp"
#include "ops/norm.hpp"

namespace nas::nn {

namespace {

/// Root mean square normalisation: y = x / sqrt(mean(x^2) + 1e-5) g.
class RmsNormalisation final : public Norm {
 public:
  RmsNormalisation(std::int64_t width, const ParameterScope& scope)
      : mode_(scope.mode()),
        weight_(scope.add("weight", {width}, Start::constant(1.0), Decay::no)) {}

  [[nodiscard]] torch::Tensor normalised(const torch::Tensor& x) const override {
    return rms_norm(x, weight_, kEpsilon, mode_);
  }

 private:
  static constexpr double kEpsilon = 1e-5;

  NumericalMode mode_;
  torch::Tensor weight_;
};

NAS_REGISTER_NORM(
    RmsNormalisation, .key = "rms",
    .summary =
        "root mean square normalisation, with a gain (Zhang & Sennrich 2019, arXiv:1910.07467)",
    .parameters = [](const AttentionShape& shape) { return shape.width; });

}  // namespace

}  // namespace nas::nn
