#include "nn/attention.hpp"

#include <limits>

namespace nas::nn {

OptionRegistry<Similarity>& similarities() {
  static OptionRegistry<Similarity> registry("similarity");
  return registry;
}

OptionRegistry<Normalization>& normalizations() {
  static OptionRegistry<Normalization> registry("normalization");
  return registry;
}

OptionRegistry<Gating>& gatings() {
  static OptionRegistry<Gating> registry("gating");
  return registry;
}

OptionRegistry<Temperature>& temperatures() {
  static OptionRegistry<Temperature> registry("temperature");
  return registry;
}

torch::Tensor hide(const torch::Tensor& scores, const torch::Tensor& visible) {
  return scores.masked_fill(visible.logical_not(), -std::numeric_limits<double>::infinity());
}

torch::Tensor softmax_over(const torch::Tensor& scores, const torch::Tensor& kept) {
  return hide(scores, kept).softmax(-1);
}

torch::Tensor largest(const torch::Tensor& scores, const torch::Tensor& visible,
                      const torch::Tensor& counts, std::int64_t most) {
  const at::NoGradGuard no_grad;
  const auto indices = std::get<1>(hide(scores, visible).topk(most));
  const auto taken = at::arange(most, counts.options()).unsqueeze(0).lt(counts.unsqueeze(1));
  return at::zeros_like(scores, scores.options().dtype(at::kBool))
      .scatter_(-1, indices, taken.expand(indices.sizes()))
      .logical_and_(visible);
}

namespace {

Linear projection(const ParameterScope& scope, std::int64_t width, bool bias) {
  return bias ? Linear(scope, width, width) : Linear::without_bias(scope, width, width);
}

}  // namespace

AttentionLayer::AttentionLayer(const Mechanism& mechanism, const AttentionShape& shape,
                               Semantics semantics, const ParameterScope& scope, Start output_start)
    : num_heads_(shape.heads),
      dropout_(mechanism.attention_dropout),
      mode_(scope.mode()),
      q_proj_(projection(scope.child("q_proj"), shape.width, mechanism.bias)),
      k_proj_(projection(scope.child("k_proj"), shape.width, mechanism.bias)),
      v_proj_(projection(scope.child("v_proj"), shape.width, mechanism.bias)),
      out_proj_(scope.child("out_proj"), shape.width, shape.width, output_start) {
  LayerContext context{shape, semantics};
  similarity_ = similarities().at(mechanism.similarity).make(context, scope);
  context.start_temperature = similarity_->start_temperature(shape);
  normalization_ = normalizations().at(mechanism.normalization).make(context, scope);
  gating_ = gatings().at(mechanism.gating).make(context, scope);
  temperature_ = temperatures().at(mechanism.temperature).make(context, scope);
}

torch::Tensor AttentionLayer::heads(const torch::Tensor& projected) const {
  return projected.view({projected.size(0), projected.size(1), num_heads_, -1}).transpose(1, 2);
}

const torch::Tensor& AttentionLayer::visible(std::int64_t tokens, torch::Device device) {
  if (!visible_.defined() || visible_.size(0) != tokens || visible_.device() != device) {
    visible_ = at::ones({tokens, tokens}, at::TensorOptions(at::kBool).device(device)).tril();
  }
  return visible_;
}

torch::Tensor AttentionLayer::forward(const torch::Tensor& x, const torch::Tensor& residual,
                                      const Pass& pass, std::uint64_t site) {
  const auto input = gating_->gated_input(x);
  const auto attended =
      out_proj_(mixed(heads(q_proj_(input)), heads(k_proj_(input)), heads(v_proj_(input)),
                      temperature_->divisors(input), pass, site));
  return gating_->increment(attended, input, residual);
}

torch::Tensor AttentionLayer::mixed(const torch::Tensor& q, const torch::Tensor& k,
                                    const torch::Tensor& v, const torch::Tensor& divisors,
                                    const Pass& pass, std::uint64_t site) {
  if (mode_ != NumericalMode::reference && q.device().is_cpu()) {
    const auto normalization = normalization_->fused();
    const auto scores = normalization ? similarity_->fused(q, k) : std::nullopt;
    if (scores) {
      return fused_attention(*scores, *normalization, divisors, v,
                             dropout_mask(dropout_, pass, site));
    }
  }
  const auto scores = similarity_->scores(q, k) / divisors;
  const auto weights = normalization_->weights(scores, visible(q.size(2), q.device()));
  return dropout(weights, dropout_, pass, site).matmul(v).transpose(1, 2).flatten(2);
}

}  // namespace nas::nn
