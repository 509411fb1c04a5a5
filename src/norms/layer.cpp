#include <utility>

#include "nn/norm.hpp"
#include "ops/norm.hpp"

namespace nas::nn {

namespace {

/// Layer normalisation: y = (x - mean(x)) / sqrt(variance(x) + eps) g + b.
class LayerNormalisation final : public Norm {
 public:
  LayerNormalisation(const NormShape& shape, const ParameterScope& scope)
      : mode_(scope.mode()),
        epsilon_(shape.epsilon),
        weight_(scope.add("weight", {shape.width}, Start::constant(1.0), Decay::no)),
        bias_(scope.add("bias", {shape.width}, Start::constant(0.0), Decay::no)) {}

  [[nodiscard]] torch::Tensor normalised(const torch::Tensor& x) const override {
    return layer_norm(x, weight_, bias_, epsilon_, mode_);
  }
  [[nodiscard]] NormBranch branch(const torch::Tensor& stream) const override {
    auto [y, x] = layer_norm_branch(stream, weight_, bias_, epsilon_, mode_);
    return {std::move(y), std::move(x)};
  }

 private:
  NumericalMode mode_;
  double epsilon_;
  torch::Tensor weight_, bias_;
};

NAS_REGISTER_NORM(
    LayerNormalisation, .key = "layer",
    .summary = "layer normalisation, with gain and bias (Ba et al. 2016, arXiv:1607.06450)",
    .parameters = [](const AttentionShape& shape) { return 2 * shape.width; });

}  // namespace

}  // namespace nas::nn
