#include "nn/feed_forward.hpp"

namespace nas::nn {

namespace {

/// y = W_2 dropout(max(W_1 x + b_1, 0)^2) + b_2.
class SquaredReluFeedForward final : public FeedForward {
 public:
  SquaredReluFeedForward(const FeedForwardShape& shape, const ParameterScope& scope)
      : expand_(scope.child("expand"), shape.width, shape.hidden),
        contract_(scope.child("contract"), shape.hidden, shape.width, shape.output_start) {}

  [[nodiscard]] torch::Tensor forward(const torch::Tensor& x, const Masks& masks) const override {
    const auto positive = at::relu(expand_(x));
    return contract_(dropout(positive * positive, masks));
  }

 private:
  Linear expand_, contract_;
};

NAS_REGISTER_FEED_FORWARD(
    SquaredReluFeedForward, .key = "relu2",
    .summary = "W_2 max(W_1 x + b_1, 0)^2 + b_2 (So et al. 2021, Primer, arXiv:2109.08668)",
    .parameters = parameters_of_two_matrices, .flops = flops_of_two_matrices);

}  // namespace

}  // namespace nas::nn
