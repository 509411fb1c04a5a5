#include "nn/attention.hpp"

#include <limits>
#include <tuple>

#include "core/define_registry.hpp"

namespace nas::nn {

NAS_DEFINE_REGISTRY(OptionRegistry<Similarity>, similarities, "similarity")
NAS_DEFINE_REGISTRY(OptionRegistry<Normalization>, normalizations, "normalization")
NAS_DEFINE_REGISTRY(OptionRegistry<Temperature>, temperatures, "temperature")
NAS_DEFINE_REGISTRY(OptionRegistry<Position>, positions, "position")
NAS_DEFINE_REGISTRY(OptionRegistry<Pattern>, patterns, "pattern")
NAS_DEFINE_REGISTRY(OptionRegistry<ScoreDecay>, decays, "decay")

torch::Tensor hide(const torch::Tensor& scores, const torch::Tensor& visible) {
  return scores.masked_fill(visible.logical_not(), -std::numeric_limits<double>::infinity());
}

torch::Tensor softmax_over(const torch::Tensor& scores, const torch::Tensor& kept) {
  return hide(scores, kept).softmax(-1);
}

torch::Tensor largest(const torch::Tensor& scores, const torch::Tensor& visible,
                      const torch::Tensor& counts, std::int64_t most) {
  const at::NoGradGuard no_grad;
  const auto indices = std::get<1>(hide(scores, visible).topk(most));
  const auto taken = at::arange(most, counts.options()).unsqueeze(0).lt(counts.unsqueeze(-1));
  return at::zeros_like(scores, scores.options().dtype(at::kBool))
      .scatter_(-1, indices, taken.expand(indices.sizes()))
      .logical_and_(visible);
}

}  // namespace nas::nn
