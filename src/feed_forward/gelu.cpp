#include "nn/feed_forward.hpp"
#include "ops/product.hpp"

namespace nas::nn {

namespace {

/// y = W_2 dropout(gelu(W_1 x + b_1)) + b_2, gelu(x) = x Phi(x).
class GeluFeedForward final : public FeedForward {
 public:
  GeluFeedForward(const FeedForwardShape& shape, const ParameterScope& scope)
      : fused_(scope.mode() != NumericalMode::reference),
        expand_(scope.child("expand"), shape.width, shape.hidden),
        contract_(scope.child("contract"), shape.hidden, shape.width, shape.output_start) {}

  [[nodiscard]] torch::Tensor forward(const torch::Tensor& x, const Masks& masks) const override {
    if (fused_) return contract_(dropped_gelu(expand_.before_bias(x), masks));
    const auto expanded = expand_(x);
    // LibTorch rounds elementary functions of most elements by vectors and of the last few
    // otherwise: by a number's place in a tensor.
    const auto gelu = [](const torch::Tensor& part) { return at::gelu(part); };
    return contract_(dropout(model_by_model(gelu, expanded), masks));
  }

  [[nodiscard]] Biased before_bias(const torch::Tensor& x, const Masks& masks) const override {
    if (!fused_) return forward(x, masks);
    return contract_.before_bias(dropped_gelu(expand_.before_bias(x), masks));
  }

 private:
  bool fused_;
  Linear expand_, contract_;
};

NAS_REGISTER_FEED_FORWARD(
    GeluFeedForward, .key = "gelu",
    .summary =
        "W_2 gelu(W_1 x + b_1) + b_2 (Hendrycks & Gimpel 2016, arXiv:1606.08415): the paper's",
    .parameters = parameters_of_two_matrices, .flops = flops_of_two_matrices);

}  // namespace

}  // namespace nas::nn
