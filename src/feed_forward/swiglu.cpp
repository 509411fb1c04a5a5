#include "nn/feed_forward.hpp"

namespace nas::nn {

namespace {

/// y = W_2 dropout(silu(W_g x) * W_1 x), element by element; silu(x) = x / (1 + e^-x). No biases.
class SwigluFeedForward final : public GatedFeedForward {
 public:
  SwigluFeedForward(const FeedForwardShape& shape, const ParameterScope& scope)
      : GatedFeedForward(shape, scope, /*biased=*/false) {}
};

NAS_REGISTER_FEED_FORWARD(
    SwigluFeedForward, .key = "swiglu",
    .summary = "W_2 (silu(W_g x) * W_1 x), without biases (Shazeer 2020, arXiv:2002.05202)",
    .parameters = [](const AttentionShape& shape) { return 3 * shape.width * shape.hidden; },
    .flops = flops_of_three_matrices);

}  // namespace

}  // namespace nas::nn
