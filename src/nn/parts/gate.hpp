#pragma once

#include <optional>

#include <torch/types.h>

#include "nn/parts/option.hpp"
#include "ops/gate.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// Gates what goes into a layer of heads, what heads put out and what comes out. Tensors as in
/// nn/attention.hpp.
class Gating {
 public:
  virtual ~Gating() = default;
  /// @param x  (M, B, T, D), LayerNorm of the residual stream.
  /// @return  what q, k and v are projected from, (M, B, T, D).
  [[nodiscard]] virtual torch::Tensor gated_input(const torch::Tensor& x) const { return x; }
  /// Whether gated_heads() changes anything.
  [[nodiscard]] virtual bool gates_heads() const { return false; }
  /// @param mixed  (M, B, T, D), the weighted values of all heads.
  /// @param x      (M, B, T, D), gated_input's result.
  /// @return  what the output projection reads, (M, B, T, D).
  [[nodiscard]] virtual torch::Tensor gated_heads(const torch::Tensor& mixed,
                                                  const torch::Tensor& /*x*/) const {
    return mixed;
  }
  /// @param attended  (M, B, T, D), attention after its output projection.
  /// @param x         (M, B, T, D), gated_input's result.
  /// @param residual  (M, B, T, D), h.
  /// @return  what is added to h, (B, T, D).
  [[nodiscard]] virtual torch::Tensor increment(const torch::Tensor& attended,
                                                const torch::Tensor& /*x*/,
                                                const torch::Tensor& /*residual*/) const {
    return attended;
  }
  /// The gate as sums of one form, for arrays of various ones, but for gated_heads(), which is called beside
  /// it; nothing: it is not of that form.
  [[nodiscard]] virtual std::optional<FusedGate> fused() const { return std::nullopt; }
};

OptionRegistry<Gating>& gatings();

// NAS_REGISTER_GATING(Class, .key = ...): as of NAS_REGISTER_OPTION.
#define NAS_REGISTER_GATING(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::gatings(), "gating", Class, __VA_ARGS__)

}  // namespace nn
}  // namespace nas
