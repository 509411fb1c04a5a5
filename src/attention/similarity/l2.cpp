#include "nn/attention.hpp"

namespace nas::nn {
namespace {

/// Computed as q.k - |q|^2/2 - |k|^2/2: differences of all pairs would take T^2 d numbers. Only rows
/// that are not normalised see |q|^2.
class L2 final : public Similarity {
 public:
  torch::Tensor scores(const torch::Tensor& q, const torch::Tensor& k) const override {
    const auto half_squares = [](const torch::Tensor& x) {
      return x.square().sum(-1, /*keepdim=*/true) / 2.0;
    };
    return q.matmul(k.transpose(-2, -1)) - half_squares(q) - half_squares(k).transpose(-2, -1);
  }
  std::optional<FusedSimilarity> fused() const override {
    return FusedSimilarity{kernels::Score::distance};
  }
};

NAS_REGISTER_SIMILARITY(
    L2, .key = "l2", .summary = "s = -|q - k|^2 / 2: the nearest key",
    .flops =
        [](const AttentionShape& shape) {
          return shape.pairs() * static_cast<double>(2 * shape.inner() + shape.heads) +
                 2.0 * shape.at_each_token(shape.key_width());
        },
    .batch_invariant = true);

}  // namespace
}  // namespace nas::nn
