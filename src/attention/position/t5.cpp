#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/attention.hpp"
#include "ops/device_copy.hpp"

namespace nas::nn {
namespace {

/// The bucket of a key `distance` tokens back: distances below half of the buckets have their own,
/// later ones share by their logarithm, and from `furthest` on all are in the last.
std::int64_t bucket(std::int64_t distance, std::int64_t buckets, std::int64_t furthest) {
  const auto exact = buckets / 2;
  if (distance < exact) return distance;
  if (distance >= furthest) return buckets - 1;
  const auto near = static_cast<double>(exact);
  const double share = std::log(static_cast<double>(distance) / near) /
                       std::log(static_cast<double>(furthest) / near);
  const auto further = static_cast<std::int64_t>(share * static_cast<double>(buckets - exact));
  return std::min(buckets - 1, exact + further);
}

/// Learned biases by distance, b[bucket(i - j), h].
/// @see Raffel et al. (2020), arXiv:1910.10683, section 2.1; its scores are not divided by sqrt(d),
/// ours are.
class T5 final : public Position {
 public:
  T5(const LayerContext& context, const ParameterScope& scope)
      : buckets_(context.shape.sizes.t5_buckets),
        furthest_(context.shape.sizes.t5_distance),
        table_(scope.add("relative_bias.weight", {buckets_, context.shape.heads}, Start::normal(),
                         Decay::no)) {}

  bool biases_scores() const override { return true; }

  torch::Tensor distance_biases(std::int64_t tokens, const torch::Tensor& like) const override {
    if (!of_distances_.defined() || of_distances_.size(0) != tokens ||
        of_distances_.device() != like.device()) {
      std::vector<std::int64_t> of_distances;
      for (std::int64_t n = 0; n < tokens; ++n) {
        of_distances.push_back(bucket(n, buckets_, furthest_));
      }
      of_distances_ = sent(at::tensor(of_distances, at::TensorOptions(at::kLong)), like.device());
    }
    return model_by_model(
        [this](const torch::Tensor& table) {
          return table.index_select(1, of_distances_).transpose(1, 2);
        },
        table_);
  }

 private:
  std::int64_t buckets_, furthest_;
  torch::Tensor table_;                 // (M, buckets, H)
  mutable torch::Tensor of_distances_;  // (T) bucket of each distance, of the last (T, device)
};

NAS_REGISTER_POSITION(
    T5, .key = "t5",
    .summary =
        "s_ij + b[bucket(i - j), h]: learned, distances in t5_buckets buckets up to t5_distance, "
        "start N(0, 0.02) (Raffel et al. 2020, arXiv:1910.10683)",
    .parameters = [](const AttentionShape& shape) { return shape.sizes.t5_buckets * shape.heads; },
    .flops = [](const AttentionShape& shape) { return shape.scores(); }, .fused = true);

}  // namespace
}  // namespace nas::nn
