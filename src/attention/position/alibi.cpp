#include <vector>

#include "nn/attention.hpp"
#include "ops/device_copy.hpp"

namespace nas::nn {
namespace {

/// m_h of H heads: 2^(-8 (h + 1) / H) where H is a power of two; else those of the power below, then
/// every other one of twice that power.
std::vector<double> slopes(std::int64_t heads) {
  std::int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<double> slopes;
  for (std::int64_t h = 0; h < heads; ++h) {
    const auto eighths =
        h < power ? static_cast<double>(h + 1) / static_cast<double>(power)
                  : static_cast<double>(2 * (h - power) + 1) / static_cast<double>(2 * power);
    slopes.push_back(std::exp2(-8.0 * eighths));
  }
  return slopes;
}

/// Attention with linear biases: a key n tokens back has m_h n less.
/// @see Press et al. (2022), arXiv:2108.12409, section 3; slopes as in the authors' get_slopes.
class Alibi final : public Position {
 public:
  Alibi(const LayerContext& context, const ParameterScope& scope)
      : models_(std::ssize(scope.models())),
        slopes_(at::tensor(slopes(context.shape.heads), at::TensorOptions(at::kDouble))) {}

  bool biases_scores() const override { return true; }

  torch::Tensor distance_biases(std::int64_t tokens, const torch::Tensor& like) const override {
    if (!biases_.defined() || biases_.size(2) != tokens || biases_.device() != like.device() ||
        biases_.scalar_type() != like.scalar_type()) {
      const auto distances = at::arange(tokens, at::TensorOptions(at::kDouble));
      const auto biases = slopes_.neg().unsqueeze(1) * distances;
      biases_ = sent(biases.to(like.scalar_type()), like.device())
                    .expand({models_, biases.size(0), tokens});
    }
    return biases_;
  }

 private:
  std::int64_t models_;
  torch::Tensor slopes_;          // (H)
  mutable torch::Tensor biases_;  // (M, H, T), of the last (T, device, type)
};

NAS_REGISTER_POSITION(
    Alibi, .key = "alibi",
    .summary = "s_ij - m_h (i - j), m_h = 2^(-8(h+1)/H) (Press et al. 2022, arXiv:2108.12409)",
    .flops = [](const AttentionShape& shape) { return shape.scores(); }, .fused = true);

}  // namespace
}  // namespace nas::nn
