#include <algorithm>
#include <cmath>

#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class Cosine final : public Similarity {
 public:
  torch::Tensor scores(const torch::Tensor& q, const torch::Tensor& k) const override {
    return unit(q).matmul(unit(k).transpose(-2, -1));
  }
  std::optional<FusedSimilarity> fused() const override {
    return FusedSimilarity{.map = {.kind = VectorMap::Kind::unit}};
  }
  // Cosines lie in [-1, 1], too narrow to choose among L keys: start with their gain.
  double start_temperature(const AttentionShape& shape) const override {
    const auto length = static_cast<double>(std::max<std::int64_t>(shape.context, 2));
    return 1.0 / std::log2(length * length - length);
  }
};

NAS_REGISTER_SIMILARITY(
    Cosine, .key = "cosine",
    .summary =
        "s = (q/|q|).(k/|k|); corrected T0 = 1/log2(L^2 - L) (Henry et al. 2020, arXiv:2010.04245)",
    .voids = {"qk_norm"},
    .flops =
        [](const AttentionShape& shape) {
          return 2.0 * shape.pairs() * static_cast<double>(shape.inner()) +
                 3.0 * shape.at_each_token(shape.inner() + shape.key_width());
        },
    .batch_invariant = true);

}  // namespace
}  // namespace nas::nn
