#include "nn/attention.hpp"

namespace nas::nn {
namespace {

/// From the newest key backwards, each takes the share sigmoid(s) of what the newer ones have left.
///
/// By LibTorch's operations in every numerical mode, with memory for T x T numbers a head.
/// @see Tan et al. (2024), arXiv:2410.17980, section 3, with the query's own key, and without giving
/// what remains to anything.
class StickBreaking final : public Normalization {
 public:
  torch::Tensor weights(const torch::Tensor& scores, const torch::Tensor& visible) const override {
    const auto hidden = visible.logical_not();
    // log(1 - sigmoid(s)), and its sum over newer keys.
    const auto left = at::log_sigmoid(scores.neg()).masked_fill(hidden, 0.0);
    const auto of_newer = at::constant_pad_nd(left.narrow(-1, 1, left.size(-1) - 1), {0, 1});
    const auto before = of_newer.flip(-1).cumsum(-1).flip(-1);
    return (at::log_sigmoid(scores) + before).exp().masked_fill(hidden, 0.0);
  }
  [[nodiscard]] bool reads_order() const override { return true; }
};

NAS_REGISTER_NORMALIZATION(
    StickBreaking, .key = "stick_breaking",
    .summary =
        "w_j = sigmoid(s_j) prod (1 - sigmoid(s_t)) over visible t newer than j: no position is "
        "needed (Tan et al. 2024, arXiv:2410.17980)",
    .flops = [](const AttentionShape& shape) { return 6.0 * shape.scores(); });

}  // namespace
}  // namespace nas::nn
