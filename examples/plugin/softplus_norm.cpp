#include <attnas/nn/attention.hpp>

namespace {

/// Positive weights without an exponential's contrast.
///
///   w_ij = log(1 + exp(s_ij)) / sum over visible j' of log(1 + exp(s_ij'))
class SoftplusNorm final : public nas::nn::Normalization {
 public:
  torch::Tensor weights(const torch::Tensor& scores, const torch::Tensor& visible) const override {
    const auto positive = at::softplus(scores).masked_fill(visible.logical_not(), 0.0);
    return positive / positive.sum(-1, /*keepdim=*/true).clamp_min(1e-30);
  }
};

NAS_REGISTER_NORMALIZATION(
    SoftplusNorm, .key = "softplus_norm", .summary = "log(1 + exp s) / sum of them",
    .flops = [](const nas::AttentionShape& shape) { return 5.0 * shape.scores(); });

}  // namespace
