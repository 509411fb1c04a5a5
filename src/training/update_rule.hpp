#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "core/optimizers.hpp"
#include "ops/parameter.hpp"

namespace nas {

/// A step of one model of an array.
struct ModelStep {
  std::int64_t step = 1;  ///< its number: 1, 2, ...; models may stand at different steps
  double learning_rate = 3e-4;
  double weight_decay = 0.01;  ///< of the parameters that decay
  double clip_norm = 1.0;      ///< largest total norm of the model's gradient
};

/// Whether a parameter is a matrix that maps one hidden vector to another: neither an embedding nor the output layer, a
/// table of positions nor the taps of a convolution.
bool maps_hidden_vectors(const nn::Parameter& parameter, bool decays);

/// How an optimiser changes parameters, some of them by a rule of its own, the others by AdamW.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// Whether a parameter is changed by it. @param decays  whether weight decay applies to it.
  [[nodiscard]] virtual bool takes(const nn::Parameter& parameter, bool decays) const {
    return maps_hidden_vectors(parameter, decays);
  }
  /// What is kept of a parameter from step to step, by name, in checkpoints too; begins with 0.
  /// @param parameter  (M, ...), of M models.   @return tensors of M models each.
  [[nodiscard]] virtual std::vector<std::pair<std::string, torch::Tensor>> states(
      const torch::Tensor& parameter) const {
    return {{"momentum", at::zeros_like(parameter)}};
  }
  /// Changes a parameter and its states. No model's numbers may depend on another's.
  ///
  /// @param gradient  of the parameter's sizes, clipped by the model's total norm.
  /// @param states    in their order.
  /// @param steps     of each of the M models; a weight decay of 0 where none applies.
  virtual void step(torch::Tensor parameter, const torch::Tensor& gradient,
                    std::span<torch::Tensor> states, std::span<const ModelStep> steps) const = 0;
};

/// A number of each model's step, as a factor for tensors like `like`, (M, 1, ..., 1).
template <class Number>
torch::Tensor factor_of(std::span<const ModelStep> steps, const torch::Tensor& like,
                        const Number& number) {
  std::vector<double> numbers;
  for (const auto& step : steps) numbers.push_back(number(step));
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(like.dim()), 1);
  sizes.front() = static_cast<std::int64_t>(steps.size());
  return at::tensor(numbers, at::TensorOptions(at::kDouble))
      .to(like.options().requires_grad(false))
      .view(sizes);
}

/// What decoupled weight decay leaves of each model's parameter.
inline torch::Tensor kept_of(std::span<const ModelStep> steps, const torch::Tensor& like) {
  return factor_of(steps, like, [](const ModelStep& step) {
    return 1.0 - step.learning_rate * step.weight_decay;
  });
}

}  // namespace nas
