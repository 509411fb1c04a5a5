#include "training/update_rule.hpp"

namespace nas {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.99;

/// theta <- (1 - r w) theta - r sign(b1 m + (1 - b1) g),  m <- b2 m + (1 - b2) g: half of AdamW's memory. Its rate is 3 to
/// 10 times as small as AdamW's, its weight decay as many times as large.
class Lion final : public UpdateRule {
 public:
  [[nodiscard]] bool takes(const nn::Parameter& /*parameter*/, bool /*decays*/) const override {
    return true;
  }

  void step(torch::Tensor parameter, const torch::Tensor& gradient, std::span<torch::Tensor> states,
            std::span<const ModelStep> steps) const override {
    auto& momentum = states.front();
    const auto direction = momentum.mul(kBeta1).add_(gradient, 1.0 - kBeta1).sign_();
    const auto rate =
        factor_of(steps, parameter, [](const ModelStep& step) { return step.learning_rate; });
    parameter.mul_(kept_of(steps, parameter)).sub_(direction.mul_(rate));
    momentum.mul_(kBeta2).add_(gradient, 1.0 - kBeta2);
  }
};

NAS_REGISTER_OPTIMIZER(
    {.key = "lion",
     .summary = "the sign of averaged gradients (Chen et al. 2023, arXiv:2302.06675)",
     .file = __FILE__},
    [] { return std::make_shared<const Lion>(); });

}  // namespace
}  // namespace nas
