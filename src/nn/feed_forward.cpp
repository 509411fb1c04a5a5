#include "nn/feed_forward.hpp"

#include "core/define_registry.hpp"
#include "ops/product.hpp"

namespace nas::nn {

namespace {

Linear map(const ParameterScope& scope, std::int64_t in, std::int64_t out, bool biased,
           Start weight = Start::normal()) {
  return biased ? Linear(scope, in, out, weight)
                : Linear::with_biases_of(scope, in, out, {}, weight);
}

}  // namespace

GatedFeedForward::GatedFeedForward(const FeedForwardShape& shape, const ParameterScope& scope,
                                   bool biased)
    : fused_(scope.mode() != NumericalMode::reference),
      gate_(map(scope.child("gate"), shape.width, shape.hidden, biased)),
      expand_(map(scope.child("expand"), shape.width, shape.hidden, biased)),
      contract_(
          map(scope.child("contract"), shape.hidden, shape.width, biased, shape.output_start)) {}

torch::Tensor GatedFeedForward::forward(const torch::Tensor& x, const Masks& masks) const {
  const auto gate = gate_(x);
  const auto expanded = expand_(x);
  if (fused_) return contract_(dropped_swiglu(gate, expanded, masks));
  // LibTorch rounds elementary functions by a number's place in a tensor.
  const auto silu = [](const torch::Tensor& part) { return at::silu(part); };
  return contract_(dropout(model_by_model(silu, gate) * expanded, masks));
}

NAS_DEFINE_REGISTRY(FeedForwardRegistry, feed_forwards, "ffn")

}  // namespace nas::nn
