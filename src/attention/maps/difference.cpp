#include <cmath>
#include <memory>

#include "nn/attention.hpp"
#include "nn/parts/head_maps.hpp"

namespace nas::nn {
namespace {

/// w = w_1 - lambda w_2, so that what both maps see of no use cancels; o <- RMSNorm(o) g (1 - lambda_0) of each head:
///
///   lambda = e^(l_q1 . l_k1) - e^(l_q2 . l_k2) + lambda_0,  lambda_0 = 0.8 - 0.6 e^(-0.3 layer)
///
/// One set of vectors l (d / 2) a layer, from N(0, 0.1^2).
/// @see Ye et al. (2024), Differential Transformer, arXiv:2410.05258, section 2.1.
class Difference final : public HeadMaps {
 public:
  Difference(const LayerContext& context, const ParameterScope& scope)
      : start_(0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(context.layer))),
        norm_(vector_norms().at("rms").make(context, scope.child("head_norm"))) {
    constexpr double kSpread = 0.1;
    const auto vector = [&](const char* name) {
      return scope.add(name, {context.shape.head_width() / 2}, Start::normal(kSpread), Decay::no);
    };
    q1_ = vector("lambda_q1");
    k1_ = vector("lambda_k1");
    q2_ = vector("lambda_q2");
    k2_ = vector("lambda_k2");
  }

  torch::Tensor combined(const std::array<torch::Tensor, 2>& maps) const override {
    return model_by_model(
        [this](const torch::Tensor& first, const torch::Tensor& second, const torch::Tensor& q1,
               const torch::Tensor& k1, const torch::Tensor& q2, const torch::Tensor& k2) {
          const auto lambda = (q1 * k1).sum(-1).exp() - (q2 * k2).sum(-1).exp() + start_;
          return first - lambda.view({-1, 1, 1, 1, 1}) * second;
        },
        maps[0], maps[1], q1_, k1_, q2_, k2_);
  }
  torch::Tensor normalised(const torch::Tensor& outputs) const override {
    return norm_->normalised(outputs) * (1.0 - start_);
  }

 private:
  double start_;  ///< lambda_0
  std::unique_ptr<VectorNorm> norm_;
  torch::Tensor q1_, k1_, q2_, k2_;  // (M, d / 2)
};

NAS_REGISTER_HEAD_MAPS(
    Difference, .key = "difference",
    .summary =
        "softmax(q_1 k_1') - lambda softmax(q_2 k_2') of halves of queries and keys, heads normed "
        "(Ye et al. 2024, arXiv:2410.05258)",
    .parameters = [](const AttentionShape& shape) { return 3 * shape.head_width(); },
    .flops =
        [](const AttentionShape& shape) {
          return 2.0 * shape.pairs() * static_cast<double>(shape.heads) +
                 shape.at_each_token(4 * shape.inner());
        },
    .fused = true);

}  // namespace
}  // namespace nas::nn
