#include <cmath>
#include <vector>

#include "nn/attention.hpp"
#include "ops/device_copy.hpp"

namespace nas::nn {
namespace {

/// How often `factor` divides a positive number, which loses these factors.
std::int64_t take_factors(std::int64_t& number, std::int64_t factor) {
  std::int64_t count = 0;
  for (; number % factor == 0; number /= factor) ++count;
  return count;
}

/// Whether (a / c)^m = (b / c)^k, prime by prime.
bool are_equal_powers(std::int64_t a, std::int64_t m, std::int64_t b, std::int64_t k,
                      std::int64_t c) {
  for (std::int64_t prime = 2; a > 1 || c > 1; ++prime) {
    const auto of_a = take_factors(a, prime);
    const auto of_b = take_factors(b, prime);
    const auto of_c = take_factors(c, prime);
    if (m * (of_a - of_c) != k * (of_b - of_c)) return false;
  }
  return k == 0 || b == 1;
}

/// The bucket of a key `distance` tokens back: distances below half of the buckets have their own,
/// later ones share by their logarithm, and from `furthest` on all are in the last.
std::int64_t bucket(std::int64_t distance, std::int64_t buckets, std::int64_t furthest) {
  const auto exact = buckets / 2;
  if (distance < exact) return distance;
  if (distance >= furthest) return buckets - 1;
  const auto near = static_cast<double>(exact);
  const double share = std::log(static_cast<double>(distance) / near) /
                       std::log(static_cast<double>(furthest) / near);
  const double place = share * static_cast<double>(buckets - exact);
  // The first distance of a bucket may be whole, 20 of 10 buckets up to 160; its place is rounded.
  constexpr double kRounding = 1e-9;
  const auto edge = std::llround(place);
  const bool on_edge = std::abs(place - static_cast<double>(edge)) < kRounding &&
                       are_equal_powers(distance, buckets - exact, furthest, edge, exact);
  return exact + (on_edge ? edge : static_cast<std::int64_t>(place));
}

/// Learned biases by distance, b[bucket(i - j), h].
/// @see Raffel et al. (2020), arXiv:1910.10683, section 2.1; its scores are not divided by sqrt(d),
/// ours are.
class T5 final : public Position {
 public:
  T5(const LayerContext& context, const ParameterScope& scope)
      : buckets_(context.shape.sizes.integer("t5_buckets")),
        furthest_(context.shape.sizes.integer("t5_distance")),
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
    .parameters =
        [](const AttentionShape& shape) { return shape.sizes.integer("t5_buckets") * shape.heads; },
    .flops = [](const AttentionShape& shape) { return shape.scores(); }, .fused = true);

}  // namespace
}  // namespace nas::nn
