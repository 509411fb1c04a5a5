#include "nn/parts/state_options.hpp"

#include <cmath>

#include "core/define_registry.hpp"
#include "ops/log_decay.hpp"
#include "ops/product.hpp"

namespace nas::nn {

NAS_DEFINE_REGISTRY(OptionRegistry<StateUpdate>, state_updates, "update")
NAS_DEFINE_REGISTRY(OptionRegistry<StateDecay>, state_decays, "decay")
NAS_DEFINE_REGISTRY(OptionRegistry<OutputGate>, output_gates, "gating")
NAS_DEFINE_REGISTRY(OptionRegistry<FeatureMap>, feature_maps, "feature map")

bool by_kernels(const torch::Tensor& x, NumericalMode mode) {
  return x.device().is_cpu() && mode != NumericalMode::reference;
}

torch::Tensor by_head(const torch::Tensor& x, std::int64_t heads) {
  return x.view({x.size(0), x.size(1), x.size(2), heads, -1}).transpose(2, 3);
}

torch::Tensor opened(const torch::Tensor& x, const torch::Tensor& logits, double factor,
                     NumericalMode mode) {
  if (by_kernels(x, mode)) {
    const auto of_tokens = x.transpose(2, 3);  // as they lie
    const auto of_heads = logits.view({x.size(0), x.size(1), x.size(3), x.size(2), -1});
    return gated_heads(of_tokens, of_heads, GateForm::sigmoid, factor).transpose(2, 3);
  }
  return model_by_model(
      [factor](const torch::Tensor& part, const torch::Tensor& of_part) {
        const auto gate = by_head(of_part, part.size(2)).sigmoid();
        return part * (factor == 1.0 ? gate : gate * factor);
      },
      x, logits);
}

SoftplusSteps::SoftplusSteps(const ParameterScope& scope, std::int64_t heads, std::int64_t logits)
    : log_rate_(scope.add("decay_log_rate", {heads}, Start::log_of_uniform(1.0, 16.0), Decay::no)),
      bias_(scope.add("decay_step_bias", {logits}, Start::softplus_of_log_uniform(0.001, 0.1),
                      Decay::no)) {}

torch::Tensor SoftplusSteps::logarithms(const torch::Tensor& logits, double least,
                                        NumericalMode mode) const {
  const auto heads = log_rate_.size(1);
  if (by_kernels(logits, mode)) {
    return by_head(softplus_decay(logits, bias_, log_rate_, least), heads);
  }
  return model_by_model(
      [&](const torch::Tensor& part, const torch::Tensor& rate, const torch::Tensor& bias) {
        constexpr double kLinearFrom = 40.0;
        const auto shifted = part + bias.unsqueeze(1).unsqueeze(1);
        const auto steps = by_head(at::softplus(shifted, 1.0, kLinearFrom), heads);
        const auto logarithms = -rate.exp().view({rate.size(0), 1, heads, 1, 1}) * steps;
        return std::isinf(least) ? logarithms : logarithms.clamp_min(least);
      },
      logits, log_rate_, bias_);
}

torch::Tensor SoftplusSteps::naive(const torch::Tensor& logits, std::int64_t head,
                                   double least) const {
  const auto steps = (logits + of_head(bias_, head, log_rate_.size(1))).exp().log1p();
  return (-log_rate_[0][head].exp() * steps).clamp_min(least);
}

torch::Tensor of_head(const torch::Tensor& parameter, std::int64_t head, std::int64_t heads) {
  const auto rows = parameter.size(1) / heads;
  return parameter[0].narrow(0, head * rows, rows);
}

}  // namespace nas::nn
