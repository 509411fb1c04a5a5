#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class Dot final : public Similarity {
 public:
  torch::Tensor scores(const torch::Tensor& q, const torch::Tensor& k) const override {
    return q.matmul(k.transpose(-2, -1));
  }
  torch::Tensor of_products(const torch::Tensor& products) const override { return products; }
  std::optional<FusedSimilarity> fused() const override {
    return FusedSimilarity{kernels::Score::product};
  }
};

NAS_REGISTER_SIMILARITY(
    Dot, .key = "dot", .summary = "s = q.k (Vaswani et al. 2017, arXiv:1706.03762)",
    .flops =
        [](const AttentionShape& shape) {
          return 2.0 * shape.pairs() * static_cast<double>(shape.inner());
        },
    .batch_invariant = true);

}  // namespace
}  // namespace nas::nn
