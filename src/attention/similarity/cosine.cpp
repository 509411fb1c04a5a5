#include <algorithm>
#include <cmath>

#include "nn/attention.hpp"
#include "nn/unit_vectors.hpp"

namespace nas::nn {
namespace {

class Cosine final : public Similarity {
 public:
  explicit Cosine(const LayerContext& context, const ParameterScope& /*scope*/)
      : width_(context.shape.head_width()) {}

  torch::Tensor scores(const torch::Tensor& q, const torch::Tensor& k) const override {
    return unit(q).matmul(unit(k).transpose(-2, -1));
  }
  std::optional<FusedSimilarity> fused() const override {
    return FusedSimilarity{kernels::Score::product,
                           [this](const torch::Tensor& q, const torch::Tensor& k) {
                             auto [units_q, units_k] = unit_vectors(q, k, width_);
                             return ScoreVectors{std::move(units_q), std::move(units_k)};
                           }};
  }
  // Cosines lie in [-1, 1], too narrow to choose among L keys: start with their gain.
  double start_temperature(const AttentionShape& shape) const override {
    const auto length = static_cast<double>(std::max<std::int64_t>(shape.context, 2));
    return 1.0 / std::log2(length * length - length);
  }

 private:
  std::int64_t width_;  ///< of a head
};

NAS_REGISTER_SIMILARITY(
    Cosine, .key = "cosine",
    .summary =
        "s = (q/|q|).(k/|k|); corrected T0 = 1/log2(L^2 - L) (Henry et al. 2020, arXiv:2010.04245)",
    .flops =
        [](const AttentionShape& shape) {
          return static_cast<double>(shape.context * shape.width) *
                 static_cast<double>(2 * shape.context + 6);
        },
    .placeless = true);

}  // namespace
}  // namespace nas::nn
