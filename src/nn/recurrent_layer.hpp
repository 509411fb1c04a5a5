#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "nn/attention.hpp"
#include "nn/mixer.hpp"
#include "nn/mixers.hpp"
#include "nn/parts/convolution.hpp"
#include "nn/parts/feature_map.hpp"
#include "nn/recurrence.hpp"
#include "ops/parameter.hpp"

namespace nas::nn {

/// log alpha of decay fixed, alpha_h = 1 - 2^(-5-h): (1, 1, H, 1, 1), float64.
/// @see Sun et al. (2023), RetNet, arXiv:2307.08621, section 3.1.
torch::Tensor retention_logarithms(std::int64_t heads);

/// A recurrent layer of each model of an array, all of one mechanism: H heads, each with a state S (f,
/// d) that takes up keys and values, whatever the number of tokens (docs/space.md).
///
///   q, k, v = x W_q', x W_k', x W_v' (+ b), convolved; SiLU where there are convolutions or erasing;
///   of updates delta and delta2 q, k of unit length; q, k rotated; q, k <- phi(q), phi(k)
///   add     S_t = diag(alpha_t) S_{t-1} + k_t v_t'
///   delta   S_t = (I - beta_t k_t k_t') diag(alpha_t) S_{t-1} + beta_t k_t v_t',  beta = sigmoid(w_h.x)
///   delta2  S_t = (I - k_t (b_t . k_t)') diag(alpha_t) S_{t-1} + k_t (w_t . v_t)',  b, w = sigmoid(W x)
///   o_t = S_t' q_t / (z_t.q_t + epsilon), z the sum of keys, for positive phi and add; else
///   o_t = RMSNorm(S_t' q_t / sqrt(d_k)) g
///   increment (gate . o) W_o' + b_o
///
/// neg_eigen doubles beta, and b. Log decays of channels are at least -5.
class RecurrentLayer final : public Mixer {
 public:
  /// @throws InputError if a key of the mechanism is unknown.
  RecurrentLayer(const MixerContext& context, const ParameterScope& scope);

  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& residual, const Pass& pass,
                        std::uint64_t site) override;
  /// Keeps S, z where outputs are divided by it, and the last K - 1 inputs of the convolutions.
  [[nodiscard]] std::unique_ptr<State> start(std::int64_t room) const override;
  torch::Tensor step(const torch::Tensor& x, const torch::Tensor& residual, const Pass& pass,
                     State& state) override;

  /// S after a sequence, (R, B, H, f, d). @param x  (R, B, T, D).
  torch::Tensor state_after(const torch::Tensor& x);
  /// phi; nullptr: there is none.
  [[nodiscard]] const FeatureMap* feature_map() const { return feature_.get(); }
  /// Tokens of a chunk; 0: a size that suits.
  void set_chunk(std::int64_t tokens) { chunk_ = tokens; }

 private:
  struct Kept;
  /// Projections of tokens, (R, B, T, H d_k) and (R, B, T, D).
  struct Projected {
    torch::Tensor q, k, v;
  };

  void make_decay(const Mechanism& layer, const ParameterScope& scope);
  void make_gates(const Mechanism& layer, Semantics semantics, const ParameterScope& scope);
  [[nodiscard]] Projected projected(const torch::Tensor& x) const;
  /// Whether what follows projections is computed by kernels.
  [[nodiscard]] bool by_kernels(const torch::Tensor& x) const;
  /// What heads take up of a whole sequence.
  [[nodiscard]] Recurrence whole(const torch::Tensor& x) const;
  /// What heads take up of tokens. @param projected  activated.   @param first  the first's place.
  [[nodiscard]] Recurrence taken_up(const Projected& projected, const torch::Tensor& x,
                                    std::int64_t first) const;
  /// (R, B, T, H d_k) as (R, B, H, T, f).
  [[nodiscard]] torch::Tensor mapped(const torch::Tensor& vectors, bool keys,
                                     std::int64_t first) const;
  /// SiLU and unit length, where there are. @param of_keys  or queries.
  [[nodiscard]] torch::Tensor activated(const torch::Tensor& vectors, bool of_keys) const;
  /// (R, B, H, T, 1 or f), or undefined.
  [[nodiscard]] torch::Tensor log_decays(const torch::Tensor& x) const;
  /// x (R, B, H, T, n) times the sigmoid of logits (R, B, T, H or H n) and a factor.
  [[nodiscard]] torch::Tensor opened(const torch::Tensor& x, const torch::Tensor& logits,
                                     double factor) const;
  /// Puts the gates of updates delta and delta2 in.
  void gate_update(const torch::Tensor& x, Recurrence& tokens) const;
  /// The same for each model of the recurrence. @return (R, B, T, D), and states.
  [[nodiscard]] Recurred recurred(const Recurrence& tokens) const;
  /// What is added to the residual stream, from outputs (R, B, H, T, d [+ 1]) of heads.
  [[nodiscard]] torch::Tensor read_out(const torch::Tensor& outputs, const torch::Tensor& x) const;
  /// Outputs of heads divided by sums or normed, (R, B, T, D).
  [[nodiscard]] torch::Tensor normalised(const torch::Tensor& outputs) const;
  [[nodiscard]] torch::Tensor gated(const torch::Tensor& of_heads, const torch::Tensor& x) const;

  std::int64_t num_heads_, head_width_, key_width_;
  NumericalMode mode_;  ///< of what is small or sensitive
  bool erases_, channel_gates_, reflects_, sums_, activates_, by_channel_ = false;
  std::int64_t chunk_ = 0;
  Linear q_proj_, k_proj_, v_proj_, out_proj_;
  std::vector<ShortConvolution> convolutions_;  ///< of q, k and v; or none
  std::unique_ptr<Position> position_;          ///< or none
  std::unique_ptr<FeatureMap> feature_;         ///< or none
  std::unique_ptr<VectorNorm> head_norm_;       ///< or none
  std::optional<double> tau_;                   ///< of decays by log sigmoid
  torch::Tensor fixed_decays_;          ///< (1, 1, H, 1, 1) float64 on the CPU, or undefined
  mutable torch::Tensor decays_there_;  ///< the same where and as the latest input was
  torch::Tensor decay_, decay_up_;      ///< (R, H, D), or (R, rank, D) and (R, H f, rank)
  torch::Tensor decay_bias_, decay_step_bias_, decay_log_rate_;
  torch::Tensor erase_, write_;           ///< matrices of the update's gates
  std::optional<Linear> gate_, gate_up_;  ///< of heads' outputs
  bool gates_by_silu_ = false;
};

}  // namespace nas::nn
