#include <vector>

#include "nn/parts/state_options.hpp"
#include "ops/product.hpp"

namespace nas::nn {
namespace {

/// As many identity matrices as heads, row by row.
std::vector<double> identities(const AttentionShape& shape) {
  std::vector<double> values;
  for (std::int64_t h = 0; h < shape.heads; ++h) {
    for (std::int64_t i = 0; i < shape.head_width(); ++i) {
      for (std::int64_t j = 0; j < shape.head_width(); ++j) values.push_back(i == j ? 1.0 : 0.0);
    }
  }
  return values;
}

/// phi(u) = softmax([z, -z]), z = W_h u + b_h, W_h of queries and of keys, of each head.
/// @see Zhang et al. (2024), arXiv:2402.04347, section 4.2.
class Hedgehog final : public FeatureMap {
 public:
  Hedgehog(const LayerContext& context, const ParameterScope& scope)
      : queries_(context.shape, scope.child("q_map")), keys_(context.shape, scope.child("k_map")) {}

  torch::Tensor of_queries(const torch::Tensor& q) const override { return queries_.mapped(q); }
  torch::Tensor of_keys(const torch::Tensor& k) const override { return keys_.mapped(k); }

 private:
  struct Map {
    Map(const AttentionShape& shape, const ParameterScope& scope)
        : weight(scope.add("weight", {shape.heads, shape.head_width(), shape.head_width()},
                           Start::listed(identities(shape)), Decay::yes)),
          bias(scope.add("bias", {shape.heads, shape.head_width()}, Start::constant(0.0),
                         Decay::no)) {}

    [[nodiscard]] torch::Tensor mapped(const torch::Tensor& vectors) const {
      return model_by_model(
          [](const torch::Tensor& u, const torch::Tensor& w, const torch::Tensor& b) {
            // (M, H, B T, d_k) by head
            const auto of_heads = u.permute({0, 3, 1, 2, 4}).flatten(2, 3);
            const auto z = of_heads.matmul(w.transpose(-2, -1)) + b.unsqueeze(2);
            return at::cat({z, z.neg()}, -1)
                .softmax(-1)
                .view({u.size(0), u.size(3), u.size(1), u.size(2), -1})
                .permute({0, 2, 3, 1, 4});
          },
          vectors, weight, bias);
    }

    torch::Tensor weight;  // (M, H, d_k, d_k)
    torch::Tensor bias;    // (M, H, d_k)
  };

  Map queries_, keys_;
};

NAS_REGISTER_FEATURE(
    Hedgehog, .key = "hedgehog",
    .summary =
        "phi(u) = softmax([z, -z]), z = W_h u + b_h, learned maps of queries and of keys, f "
        "= 2 d_k (Zhang et al. 2024, arXiv:2402.04347)",
    .parameters =
        [](const AttentionShape& shape) { return 2 * shape.width * (shape.head_width() + 1); },
    .flops =
        [](const AttentionShape& shape) {
          return shape.at_each_token(shape.width * (4 * shape.head_width() + 18));
        },
    .features = [](const AttentionShape& shape) { return 2 * shape.head_width(); });

}  // namespace
}  // namespace nas::nn
