#pragma once

#include <cstdint>
#include <memory>

#include <torch/types.h>

#include "core/visibility.hpp"
#include "ops/dropout.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// What mixes positions in one block of each model of an array: the only part of a block through
/// which tokens see each other. Attention (nn/attention_layer.hpp) is one.
///
///   h <- h + mixer(LayerNorm(h), h)
///
/// What is added at a token depends on this and earlier tokens alone. A mixer takes its parameters
/// from a scope when it is made, for the R models of that scope.
class Mixer {
 public:
  /// What a mixer keeps of earlier tokens, so that it can go on one token at a time.
  class State {
   public:
    virtual ~State() = default;
    /// @return a state that changes apart from this one.
    [[nodiscard]] virtual std::unique_ptr<State> copy() const = 0;
    /// @return the numbers that it keeps of each sequence.
    [[nodiscard]] virtual std::int64_t numbers() const = 0;
  };

  virtual ~Mixer() = default;

  /// @param x         (R, B, T, D), LayerNorm of the residual stream.
  /// @param residual  (R, B, T, D), the residual stream h.
  /// @param site      the dropout site of the pass that is the mixer's.
  /// @return what is added to h, (R, B, T, D).
  virtual torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& residual,
                                const Pass& pass, std::uint64_t site) = 0;

  /// @param room  tokens for which memory is set apart at once; more may come.
  /// @return the state before the first token.
  [[nodiscard]] virtual std::unique_ptr<State> start(std::int64_t room) const = 0;
  /// What forward() adds at the next token, without dropout and gradients.
  ///
  /// @param x, residual  (1, B, 1, D), of that token and of one model.   @param pass  of it.
  /// @param state  of the tokens before, made by this mixer's start(); then also of this one.
  /// @return (1, B, 1, D).
  virtual torch::Tensor step(const torch::Tensor& x, const torch::Tensor& residual,
                             const Pass& pass, State& state) = 0;
};

}  // namespace nn
}  // namespace nas
