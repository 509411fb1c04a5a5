#include "nn/feed_forward.hpp"

namespace nas::nn {

namespace {

/// y = W_2 dropout(silu(W_g x + b_g) * (W_1 x + b_1)) + b_2.
class BiasedSwigluFeedForward final : public GatedFeedForward {
 public:
  BiasedSwigluFeedForward(const FeedForwardShape& shape, const ParameterScope& scope)
      : GatedFeedForward(shape, scope, /*biased=*/true) {}
};

NAS_REGISTER_FEED_FORWARD(
    BiasedSwigluFeedForward, .key = "swiglu_bias",
    .summary =
        "W_2 (silu(W_g x + b_g) * (W_1 x + b_1)) + b_2 (after Shazeer 2020, arXiv:2002.05202)",
    .parameters =
        [](const AttentionShape& shape) {
          return 3 * shape.width * shape.hidden + 2 * shape.hidden + shape.width;
        },
    .flops = flops_of_three_matrices);

}  // namespace

}  // namespace nas::nn
