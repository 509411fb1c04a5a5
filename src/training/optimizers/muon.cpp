#include <algorithm>
#include <cmath>

#include "ops/product.hpp"
#include "training/update_rule.hpp"

namespace nas {
namespace {

constexpr double kMomentum = 0.95;
constexpr int kIterations = 5;
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr double kSmallestNorm = 1e-7;
/// The root mean square of an update of AdamW, so that one learning rate does for both.
constexpr double kRootMeanSquare = 0.2;

/// X (M, m, n) with singular values near 1, by Newton and Schulz's iteration X <- a X + (b A + c A^2) X, A = X X'.
torch::Tensor orthogonal(const torch::Tensor& given) {
  constexpr auto kExact = NumericalMode::exact;
  const bool tall = given.size(1) > given.size(2);
  auto x = (tall ? given.transpose(1, 2) : given).contiguous();
  x = x / x.square().sum({1, 2}, /*keepdim=*/true).sqrt().clamp_min(kSmallestNorm);
  for (int i = 0; i < kIterations; ++i) {
    const auto a = nn::linear(x, x, {}, kExact);
    const auto b = nn::linear(a, a, {}, kExact).mul_(kC).add_(a, kB);  // A is symmetric
    x = nn::linear(b, x.transpose(1, 2), {}, kExact).add_(x, kA);
  }
  return tall ? x.transpose(1, 2) : x;
}

/// Of a matrix W (m, n) that maps hidden vectors: m <- u m + (1 - u) G, and W <- (1 - r w) W - 0.2 sqrt(max(m, n)) r O, where O
/// is (1 - u) G + u m made orthogonal, u = 0.95; AdamW changes the others. W_q, W_k and W_v are a matrix each, of all heads.
class Muon final : public UpdateRule {
 public:
  void step(torch::Tensor parameter, const torch::Tensor& gradient, std::span<torch::Tensor> states,
            std::span<const ModelStep> steps) const override {
    auto& momentum = states.front();
    momentum.mul_(kMomentum).add_(gradient, 1.0 - kMomentum);
    const auto nesterov = momentum.mul(kMomentum).add_(gradient, 1.0 - kMomentum);
    const auto update = nn::model_by_model(orthogonal, nesterov);
    const auto size =
        std::sqrt(static_cast<double>(std::max(parameter.size(1), parameter.size(2))));
    const auto rate = factor_of(steps, parameter, [size](const ModelStep& step) {
      return step.learning_rate * kRootMeanSquare * size;
    });
    parameter.mul_(kept_of(steps, parameter)).sub_(update.mul(rate));
  }
};

NAS_REGISTER_OPTIMIZER(
    {.key = "muon",
     .summary = "averaged gradients of matrices made orthogonal, AdamW for the rest (Jordan et al. "
                "2024; scaled as Liu et al. 2025, arXiv:2502.16982)",
     .file = __FILE__},
    [] { return std::make_shared<const Muon>(); });

}  // namespace
}  // namespace nas
