#include "nn/attention.hpp"

namespace nas::nn {
namespace {

/// x / sqrt(mean x^2 + eps) g over the d entries of each head, g shared by the heads.
/// @see Zhang & Sennrich (2019), arXiv:1910.07467; of q and k, Dehghani et al. (2023), ViT-22B,
/// arXiv:2302.05442, section 2. eps is qk_eps, beside other vectors 1e-5.
class Rms final : public VectorNorm {
 public:
  Rms(const LayerContext& context, const ParameterScope& scope)
      : epsilon_(context.gene == "qk_norm" ? context.shape.sizes.real("qk_eps") : 1e-5),
        gain_(scope.add("weight", {context.shape.head_width()}, Start::constant(1.0), Decay::no)) {}

  torch::Tensor normalised(const torch::Tensor& vectors) const override {
    return model_by_model(
        [this](const torch::Tensor& part, const torch::Tensor& gain) {
          const auto mean_square = part.square().mean(-1, /*keepdim=*/true);
          return part * (mean_square + epsilon_).rsqrt() * gain.view({-1, 1, 1, 1, part.size(-1)});
        },
        vectors, gain_);
  }

 private:
  double epsilon_;
  torch::Tensor gain_;  // (M, d)
};

NAS_REGISTER_VECTOR_NORM(
    Rms, .key = "rms",
    .summary = "x / sqrt(mean x^2 + eps) g of each head, g starts at 1 (arXiv:1910.07467)",
    .parameters = [](const AttentionShape& shape) { return shape.head_width(); },
    .flops = [](const AttentionShape& shape) { return 4.0 * shape.at_each_token(shape.inner()); });

}  // namespace
}  // namespace nas::nn
