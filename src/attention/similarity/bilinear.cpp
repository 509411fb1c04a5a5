#include <array>

#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class Bilinear final : public Similarity {
 public:
  Bilinear(const LayerContext& context, const ParameterScope& scope)
      : weight_(
            scope.add("bilinear.weight",
                      {context.shape.heads, context.shape.head_width(), context.shape.head_width()},
                      Start::xavier_uniform(), Decay::yes)) {}

  torch::Tensor scores(const torch::Tensor& q, const torch::Tensor& k) const override {
    return q.matmul(weight_.unsqueeze(1)).matmul(k.transpose(-2, -1));
  }
  std::optional<FusedSimilarity> fused() const override {
    const auto map = [this](const torch::Tensor& q, const torch::Tensor& k) {
      const auto heads = q.unflatten(3, {weight_.size(1), weight_.size(2)}).transpose(2, 3);
      const auto mapped = heads.matmul(weight_.unsqueeze(1));
      return std::array{mapped.transpose(2, 3).flatten(3), k};
    };
    return FusedSimilarity{.map = {.kind = VectorMap::Kind::own, .function = map}};
  }
  bool treats_heads_alike() const override { return false; }

 private:
  torch::Tensor weight_;  // (M, H, d, d)
};

NAS_REGISTER_SIMILARITY(
    Bilinear, .key = "bilinear",
    .summary = "s = q' W_h k, one matrix a head (Luong et al. 2015, arXiv:1508.04025, 'general')",
    .parameters = [](const AttentionShape& shape) { return shape.inner() * shape.head_width(); },
    .flops =
        [](const AttentionShape& shape) {
          return 2.0 * static_cast<double>(shape.inner()) *
                 (shape.at_each_token(shape.head_width()) + shape.pairs());
        },
    .batch_invariant = true);

}  // namespace
}  // namespace nas::nn
