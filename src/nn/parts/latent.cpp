#include "nn/parts/latent.hpp"

namespace nas::nn {

Latent::Latent(const LayerContext& context, const ParameterScope& scope, std::int64_t rank,
               bool rotates)
    : heads_(context.shape.heads), rotated_(rotates ? context.shape.head_width() / 2 : 0) {
  const auto& shape = context.shape;
  const auto map = [&](const char* name, std::int64_t in, std::int64_t out) {
    return Linear::with_biases_of(scope.child(name), in, out, {});
  };
  kv_down_ = map("kv_down", shape.width, rank);
  auto of_latent = context;
  of_latent.shape.of_head = rank;
  norm_ = vector_norms().at("rms").make(of_latent, scope.child("kv_norm"));
  k_up_ = map("k_up", rank, shape.inner());
  v_up_ = map("v_up", rank, shape.inner());
  if (!rotates) return;
  q_rope_ = map("q_rope", shape.width, heads_ * rotated_);
  k_rope_ = map("k_rope", shape.width, rotated_);
}

torch::Tensor Latent::compressed(const torch::Tensor& x) const {
  return norm_->normalised(kv_down_(x).unsqueeze(3)).squeeze(3);
}

torch::Tensor Latent::absorbed(const torch::Tensor& queries) const {
  return queries.matmul(k_up_.weight()[0].view({heads_, queries.size(-1), -1}));
}

torch::Tensor Latent::expanded(const torch::Tensor& mixed) const {
  return mixed.matmul(v_up_.weight()[0].view({heads_, -1, mixed.size(-1)}).transpose(1, 2));
}

}  // namespace nas::nn
