#include "nn/feed_forward.hpp"
#include "ops/product.hpp"

namespace nas::nn {

namespace {

/// y = W_2 dropout(gelu(W_1 x + b_1)) + b_2, gelu(x) = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
class GeluTanhFeedForward final : public FeedForward {
 public:
  GeluTanhFeedForward(const FeedForwardShape& shape, const ParameterScope& scope)
      : expand_(scope.child("expand"), shape.width, shape.hidden),
        contract_(scope.child("contract"), shape.hidden, shape.width, shape.output_start) {}

  [[nodiscard]] torch::Tensor forward(const torch::Tensor& x, const Masks& masks) const override {
    const auto expanded = expand_(x);
    // LibTorch rounds elementary functions by a number's place in a tensor.
    const auto gelu = [](const torch::Tensor& part) { return at::gelu(part, "tanh"); };
    return contract_(dropout(model_by_model(gelu, expanded), masks));
  }

 private:
  Linear expand_, contract_;
};

NAS_REGISTER_FEED_FORWARD(
    GeluTanhFeedForward, .key = "gelu_tanh",
    .summary =
        "gelu by its tanh form (Hendrycks & Gimpel 2016, arXiv:1606.08415, section 2): GPT-2's",
    .parameters = parameters_of_two_matrices, .flops = flops_of_two_matrices);

}  // namespace

}  // namespace nas::nn
