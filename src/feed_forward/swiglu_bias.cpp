#include "nn/feed_forward.hpp"
#include "ops/product.hpp"

namespace nas::nn {

namespace {

/// y = W_2 dropout(silu(W_g x + b_g) * (W_1 x + b_1)) + b_2.
class BiasedSwigluFeedForward final : public FeedForward {
 public:
  BiasedSwigluFeedForward(const FeedForwardShape& shape, const ParameterScope& scope)
      : fused_(scope.mode() != NumericalMode::reference),
        gate_(scope.child("gate"), shape.width, shape.hidden),
        expand_(scope.child("expand"), shape.width, shape.hidden),
        contract_(scope.child("contract"), shape.hidden, shape.width, shape.output_start) {}

  [[nodiscard]] torch::Tensor forward(const torch::Tensor& x, const Masks& masks) const override {
    const auto gate = gate_(x);
    const auto expanded = expand_(x);
    if (fused_) return contract_(dropped_swiglu(gate, expanded, masks));
    // LibTorch rounds elementary functions by a number's place in a tensor.
    const auto opened =
        gate.device().is_cpu()
            ? for_each_model(gate.size(0), [&](auto r) { return at::silu(gate[r]); })
            : at::silu(gate);
    return contract_(dropout(opened * expanded, masks));
  }

 private:
  bool fused_;
  Linear gate_, expand_, contract_;
};

NAS_REGISTER_FEED_FORWARD(
    BiasedSwigluFeedForward, .key = "swiglu_bias",
    .summary =
        "W_2 (silu(W_g x + b_g) * (W_1 x + b_1)) + b_2 (after Shazeer 2020, arXiv:2002.05202)",
    .parameters =
        [](const AttentionShape& shape) {
          return 3 * shape.width * shape.hidden + 2 * shape.hidden + shape.width;
        },
    .flops =
        [](const AttentionShape& shape) {
          return 6.0 * static_cast<double>(shape.context * shape.width * shape.hidden);
        });

}  // namespace

}  // namespace nas::nn
