#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/types.h>

#include "nn/attention.hpp"
#include "nn/mixer.hpp"
#include "nn/mixers.hpp"
#include "nn/near_keys.hpp"
#include "nn/parts/convolution.hpp"
#include "nn/parts/state_options.hpp"
#include "nn/recurrence.hpp"
#include "ops/parameter.hpp"

namespace nas::nn {

/// A recurrent layer of each model of an array, all of one mechanism: H heads, each with a state S (f,
/// d) that takes up keys and values, whatever the number of tokens (docs/space.md).
///
///   q, k, v = x W_q', x W_k', x W_v' (+ b), convolved; SiLU where there are convolutions or erasing;
///   of updates that erase q, k of unit length; q, k rotated; q, k <- phi(q), phi(k)
///   S_t, diag(alpha_t) S_{t-1} with k_t and v_t taken up (StateDecay, StateUpdate)
///   o_t = S_t' q_t / (z_t.q_t + epsilon), z the sum of keys, for positive phi without erasing; else
///   o_t = RMSNorm(S_t' q_t / sqrt(d_k)) g
///   with gene near, of positive phi: the last of these keys by softmax, the others by phi (nn/near_keys.hpp)
///   increment (gate . o) W_o' + b_o (OutputGate)
class RecurrentLayer final : public Mixer {
 public:
  /// @throws InputError if a key of the mechanism is unknown.
  RecurrentLayer(const MixerContext& context, const ParameterScope& scope);

  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& residual, const Pass& pass,
                        std::uint64_t site) override;
  /// Keeps S, z where outputs are divided by it, the last K - 1 inputs of the convolutions, and near keys and values.
  [[nodiscard]] std::unique_ptr<State> start(std::int64_t room) const override;
  torch::Tensor step(const torch::Tensor& x, const torch::Tensor& residual, const Pass& pass,
                     State& state) override;

  /// S after a sequence, near keys taken up too, (R, B, H, f, d). @param x  (R, B, T, D).
  torch::Tensor state_after(const torch::Tensor& x);
  /// forward() of a lone model by definition: a loop over tokens and heads, of the options' naive forms.
  torch::Tensor naive(const torch::Tensor& x) const;
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

  [[nodiscard]] Projected projected(const torch::Tensor& x) const;
  /// Projections of a whole sequence, activated.
  [[nodiscard]] Projected whole(const torch::Tensor& x) const;
  /// q, k and v of heads. @param projected  activated.   @param first  the first token's place.
  [[nodiscard]] Recurrence of_heads(const Projected& projected, std::int64_t first) const;
  /// The same with decays and the update's gates. @param x  of the tokens.
  [[nodiscard]] Recurrence taken_up(const Projected& projected, const torch::Tensor& x,
                                    std::int64_t first) const;
  /// (R, B, T, H d_k) as (R, B, T, H, d_k), rotated.
  [[nodiscard]] torch::Tensor heads(const torch::Tensor& vectors, std::int64_t first) const;
  /// phi of these, (R, B, H, T, f).
  [[nodiscard]] torch::Tensor mapped(const torch::Tensor& heads, bool keys) const;
  /// What near_and_far() reads.
  [[nodiscard]] NearAndFar near_and_far_of(const Projected& projected, std::int64_t first) const;
  /// Outputs of the last token. @param kept  takes it up.
  [[nodiscard]] torch::Tensor near_step(const Projected& of_token, Kept& kept) const;
  /// SiLU and unit length, where there are. @param of_keys  or queries.
  [[nodiscard]] torch::Tensor activated(const torch::Tensor& vectors, bool of_keys) const;
  /// The same for each model of the recurrence. @return (R, B, T, D), and states.
  [[nodiscard]] Recurred recurred(const Recurrence& tokens) const;
  /// @param outputs  normalised.
  [[nodiscard]] torch::Tensor gated(const torch::Tensor& outputs, const torch::Tensor& x) const;
  /// What is added to the residual stream, from outputs (R, B, H, T, d [+ 1]) of heads.
  [[nodiscard]] torch::Tensor read_out(const torch::Tensor& outputs, const torch::Tensor& x) const;
  /// Outputs of heads divided by sums or normed, (R, B, T, D).
  [[nodiscard]] torch::Tensor normalised(const torch::Tensor& outputs) const;

  std::int64_t num_heads_, head_width_, key_width_;
  NumericalMode mode_;  ///< of what is small or sensitive
  bool erases_, sums_, activates_, by_channel_ = false;
  std::int64_t chunk_ = 0, near_ = 0;
  torch::Tensor near_logit_;  ///< (R, H), of gamma; undefined: no keys are near
  Linear q_proj_, k_proj_, v_proj_, out_proj_;
  std::vector<ShortConvolution> convolutions_;  ///< of q, k and v; or none
  std::unique_ptr<Position> position_;          ///< or none
  std::unique_ptr<FeatureMap> feature_;         ///< or none
  std::unique_ptr<VectorNorm> head_norm_;       ///< or none
  std::unique_ptr<StateUpdate> update_;
  std::unique_ptr<StateDecay> decay_;  ///< or none
  std::unique_ptr<OutputGate> gate_;   ///< or none
};

}  // namespace nas::nn
