#pragma once

#include <cstdint>

#include <torch/types.h>

#include "nn/parts/option.hpp"
#include "ops/head_gate.hpp"
#include "ops/recurrence.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

// Options of recurrent layers (nn/recurrent_layer.hpp). M models, B batch, T tokens, D width, H heads, each with a state S
// (f, d); contexts' shapes say f and d_k (AttentionShape). naive() is an option's definition for one token of a lone
// model, which tests compare the layer with (RecurrentLayer::naive). Arrays: as in nn/attention.hpp.

/// A token as one head takes it up.
struct HeadToken {
  torch::Tensor x, key, value;  ///< (D), what the layer reads; k (f); v (d)
  std::int64_t head = 0;        ///< from 0
};

/// How a state takes up a key and its value: gene update. Component::erases says whether it erases.
class StateUpdate {
 public:
  virtual ~StateUpdate() = default;
  /// Puts in what x (M, B, T, D) says: e, and what is written in place of v (ops/recurrence.hpp).
  /// @param tokens  (M, B, H, T, n), with q, k and v.
  virtual void gate(const torch::Tensor& x, Recurrence& tokens) const = 0;
  /// @param decayed  diag(alpha_t) S_{t-1} (f, d).   @return S_t.
  [[nodiscard]] virtual torch::Tensor naive(const torch::Tensor& decayed,
                                            const HeadToken& token) const = 0;
};

/// phi of keys and queries, whose entries are not negative as sums of weights are to be: products
/// phi(q).phi(k) take the place of e^(q.k). Gene feature but for identity, which has no module; f is
/// Component::features, and the context's shape is H d_k wide.
class FeatureMap {
 public:
  virtual ~FeatureMap() = default;
  /// @param q  (M, B, T, H, d_k).   @return (M, B, T, H, f). A factor for each query cancels.
  [[nodiscard]] virtual torch::Tensor of_queries(const torch::Tensor& q) const = 0;
  /// The same of keys.
  [[nodiscard]] virtual torch::Tensor of_keys(const torch::Tensor& k) const {
    return of_queries(k);
  }
  /// What is added to the sum of a query's weights before it divides.
  [[nodiscard]] virtual double epsilon() const { return 1e-6; }
  /// Numbers that are drawn, but no parameters: not trained, and the same in all models; a handle.
  /// Undefined: there are none.
  [[nodiscard]] virtual torch::Tensor drawn() const { return {}; }
};

/// What a state forgets from token to token: gene decay but for none, which has no module.
class StateDecay {
 public:
  virtual ~StateDecay() = default;
  /// @return log alpha <= 0 of x (M, B, T, D), (M, B, H, T, 1); of Component::by_channel (M, B, H, T,
  /// f), at least kLeastLogDecay.
  [[nodiscard]] virtual torch::Tensor logarithms(const torch::Tensor& x) const = 0;
  /// @return alpha_t, (1) or (f).
  [[nodiscard]] virtual torch::Tensor naive(const HeadToken& token) const = 0;
};

/// What multiplies outputs of heads before the output projection: gene gating but for none.
class OutputGate {
 public:
  virtual ~OutputGate() = default;
  /// @return (M, B, T, D), as x.
  [[nodiscard]] virtual torch::Tensor logits(const torch::Tensor& x) const = 0;
  [[nodiscard]] virtual GateForm form() const { return GateForm::sigmoid; }
  /// @param output, x  (D), of a token.   @return the output, gated.
  [[nodiscard]] virtual torch::Tensor naive(const torch::Tensor& output,
                                            const torch::Tensor& x) const = 0;
};

OptionRegistry<StateUpdate>& state_updates();
OptionRegistry<StateDecay>& state_decays();
OptionRegistry<OutputGate>& output_gates();
OptionRegistry<FeatureMap>& feature_maps();

// NAS_REGISTER_STATE_UPDATE(Class, .key = "delta", ...): as of NAS_REGISTER_OPTION. Attention may have
// other decays and gatings of the same keys.
#define NAS_REGISTER_STATE_UPDATE(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::state_updates(), "update", Class, __VA_ARGS__)
#define NAS_REGISTER_FEATURE(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::feature_maps(), "feature", Class, __VA_ARGS__)
#define NAS_REGISTER_STATE_DECAY(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::state_decays(), "decay", Class, .mixer = "recurrent", __VA_ARGS__)
#define NAS_REGISTER_OUTPUT_GATE(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::output_gates(), "gating", Class, .mixer = "recurrent", __VA_ARGS__)

inline constexpr double kLeastLogDecay = -5.0;  ///< of channels: e^(5 * 16) is within float32

/// Whether what follows projections is computed by kernels. @param mode  of the layer's scope.
bool by_kernels(const torch::Tensor& x, NumericalMode mode);
/// (M, B, T, H n) as (M, B, H, T, n).
torch::Tensor by_head(const torch::Tensor& x, std::int64_t heads);
/// Rows of one head in a lone model's parameter (1, H n, ...).
torch::Tensor of_head(const torch::Tensor& parameter, std::int64_t head, std::int64_t heads);
/// x (M, B, H, T, n) times the sigmoid of logits (M, B, T, H or H n) and a factor.
torch::Tensor opened(const torch::Tensor& x, const torch::Tensor& logits, double factor,
                     NumericalMode mode);

/// max(-e^A_h softplus(z + b), least) of logits z of heads (M, B, T, H n). e^A begins in [1, 16].
/// @see Dao & Gu (2024), Mamba-2, arXiv:2405.21060.
class SoftplusSteps {
 public:
  /// @param logits  H n.
  SoftplusSteps(const ParameterScope& scope, std::int64_t heads, std::int64_t logits);
  [[nodiscard]] torch::Tensor logarithms(const torch::Tensor& logits, double least,
                                         NumericalMode mode) const;
  /// @param logits  (n), of one head.
  [[nodiscard]] torch::Tensor naive(const torch::Tensor& logits, std::int64_t head,
                                    double least) const;

 private:
  torch::Tensor log_rate_, bias_;  // A (M, H), b (M, H n)
};

}  // namespace nn
}  // namespace nas
