#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class SiluDot final : public Similarity {
 public:
  torch::Tensor scores(const torch::Tensor& q, const torch::Tensor& k) const override {
    return at::silu(q.matmul(k.transpose(-2, -1)));
  }
  torch::Tensor of_products(const torch::Tensor& products) const override {
    return at::silu(products);
  }
  std::optional<FusedSimilarity> fused() const override {
    return FusedSimilarity{kernels::Score::silu_product};
  }
};

NAS_REGISTER_SIMILARITY(
    SiluDot, .key = "silu_dot",
    .summary = "s = c sigmoid(c), c = q.k: the paper's 'multiplicative'; at least -0.28",
    .flops =
        [](const AttentionShape& shape) {
          return 2.0 * shape.pairs() * static_cast<double>(shape.inner() + shape.heads);
        },
    .batch_invariant = true);

}  // namespace
}  // namespace nas::nn
