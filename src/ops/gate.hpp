#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "core/numerical_mode.hpp"
#include "core/visibility.hpp"
#include "kernels/gate.hpp"
#include "ops/parameter.hpp"
#include "ops/partial_linear.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// What a gating computes, for gates that are computed for all models of an array together: a gate
/// s = sigmoid(x W' + b) of each of M models.
struct FusedGate {
  kernels::Gate gate{};
  torch::Tensor weight{};  ///< (M, D, D); undefined where the gate is none
  torch::Tensor bias{};    ///< (M, D); likewise
};

/// The gated sums of an array's models.
struct GatedSums {
  std::vector<kernels::GatedSum> of_models;
  torch::Tensor on_device{};  ///< the same in the memory of a device with kernels of its own

  /// Whether any model's sum has term t.
  [[nodiscard]] bool reads(std::size_t t) const;
  [[nodiscard]] bool is_gated() const;
  /// Whether every model's sum is its first term.
  [[nodiscard]] bool is_copy() const;
};

/// The terms of gated sums, each (R, ...) of one size; undefined: no model's sum has it.
using GatedTensors = std::array<torch::Tensor, kernels::kGatedTerms>;

/// Each model's sum (kernels/gate.hpp), in one operation; backward likewise. On the CPU, and on
/// devices with kernels of their own; no model's result depends on the others. Not for second
/// derivatives.
///
/// @param logits  (rows, ...), as the terms but for the first size; undefined: no sum is gated.
/// @return (R, ...); the first term itself where all sums are that.
torch::Tensor gated_sum(const GatedSums& sums, const GatedTensors& terms,
                        const torch::Tensor& logits);

/// The gates of an array of models, each of which has one in fused form.
class FusedGates {
 public:
  /// A gate and the models that have it.
  struct Group {
    Models models;
    FusedGate gate;
  };

  /// @param groups  of all R models.
  FusedGates(const std::vector<Group>& groups, std::int64_t models, NumericalMode mode);

  /// @param x  (R, B, T, D).
  /// @return logits of the gates, (models that have one, B, T, D); undefined: none has.
  [[nodiscard]] torch::Tensor logits(const torch::Tensor& x) const;
  /// @return what attention reads, (R, B, T, D).
  [[nodiscard]] torch::Tensor input(const torch::Tensor& x, const torch::Tensor& logits);
  /// @return what is added to the residual stream, (R, B, T, D). @param x  input()'s result.
  [[nodiscard]] torch::Tensor increment(const torch::Tensor& attended, const torch::Tensor& x,
                                        const torch::Tensor& residual, const torch::Tensor& logits);

 private:
  std::vector<PartialMap> maps_;
  NumericalMode mode_;
  GatedSums input_, increment_;
};

}  // namespace nn
}  // namespace nas
