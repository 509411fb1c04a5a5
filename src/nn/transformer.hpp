#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "core/numerical_mode.hpp"
#include "core/visibility.hpp"
#include "genotype/architecture.hpp"
#include "nn/mixer.hpp"
#include "ops/dropout.hpp"
#include "ops/loss.hpp"
#include "ops/parameter.hpp"

namespace nas {

namespace NAS_PUBLIC nn {

/// What a model keeps of a sequence so far: the states of the mixers of its layers, of which some
/// have none.
struct SequenceState {
  std::int64_t tokens = 0;  ///< so far
  std::vector<std::unique_ptr<Mixer::State>> layers;
};

/// What a task is computed from: hidden states, and what makes logits of them.
struct Hidden {
  torch::Tensor features;                     ///< after the final norm, (R, B, T, D)
  torch::Tensor output;                       ///< matrix of the logits, (R, V, D)
  NumericalMode mode = NumericalMode::exact;  ///< of operations
};

/// An array of language models: layers of a mixer of positions and a feed-forward layer, with norms
/// where the model's genes place them. The paper's are pre-norm transformers:
///
///   h_0 = dropout(E[tokens] + P[0..T)),  h <- h + attention(LN(h)),  h <- h + FFN(LN(h)),  logits
///   = LN(h) E'
///
/// Tensors are (R, B, T, D), row-major: R models, B sequences, T tokens, with learned positions at
/// most the context. The models differ in the options of their layers alone; what is one operation
/// for one of them is one for all, so that an array costs few more operations than a model. On the
/// CPU, no result depends on the others.
class TransformerArray {
 public:
  /// Parameters are uninitialised until initialise(). Outside numerical mode `reference`, what has
  /// a fused form on the CPU is computed by it. @throws InputError as require_valid and
  /// require_built, std::invalid_argument unless architectures are alike (alike()).
  ///
  /// @param device  where the models are.
  TransformerArray(const std::vector<Architecture>& architectures, NumericalMode mode,
                   torch::Device device = torch::kCPU);
  ~TransformerArray();
  TransformerArray(TransformerArray&&) noexcept;
  TransformerArray& operator=(TransformerArray&&) noexcept;

  /// Draws initial values: each tensor of each model from its own generator, seeded by (run seed,
  /// replicate, "init", tensor name), on the CPU, so that tensors that two mechanisms share start
  /// alike on every device. @param seeds  one for each model.
  void initialise(const std::vector<StartSeed>& seeds);
  /// Moves parameters to a device and floating-point type. An array made for another device than
  /// the CPU may not be computed independently there.
  void to(torch::Device device, torch::ScalarType type = torch::kFloat32);
  /// Whether gradients keep of each layer only what it reads, and compute it again (ops/recomputed.hpp):
  /// the same bits in less memory. At first they do not. Pass::mixed then sees each layer once, too.
  void recompute_layers(bool again);
  [[nodiscard]] bool recomputes_layers() const;

  /// @param tokens  (R, B, T) int64.   @return last hidden states after the final LayerNorm, (R, B,
  /// T, D).
  torch::Tensor features(const torch::Tensor& tokens, const Pass& pass);
  /// The same, with what makes logits of them.
  Hidden hidden(const torch::Tensor& tokens, const Pass& pass);
  /// @return logits (R, B, T, V) = features E', or by the output matrix of an untied model.
  torch::Tensor logits(const torch::Tensor& tokens, const Pass& pass);
  /// @param targets  (R, B, T) int64; below 0 where nothing is asked.
  /// @return each model's mean nll over its targets, nats, (R) (ops/loss.hpp).
  torch::Tensor loss(const torch::Tensor& tokens, const torch::Tensor& targets, const Pass& pass);
  /// What each token's logits say about its target, without dropout and gradients; (R, B T).
  TokenScores scores(const torch::Tensor& tokens, const torch::Tensor& targets);

  /// @param room  tokens for which memory is set apart at once.   @return the state of an array of
  /// one model before the first token (nn/decoder.hpp checks whether there is a next one).
  [[nodiscard]] SequenceState start(std::int64_t room) const;
  /// The logits behind the next token, (1, B, V), without dropout and gradients.
  /// @param tokens  (1, B) int64.   @param state  made by start(); then also of these tokens.
  torch::Tensor step(const torch::Tensor& tokens, SequenceState& state);

  /// In a fixed order.
  [[nodiscard]] const std::vector<Parameter>& parameters() const;
  /// Whether weight decay applies to a parameter under these semantics: everything (published),
  /// matrices only (corrected).
  [[nodiscard]] bool decays(const Parameter& parameter) const;
  [[nodiscard]] std::int64_t num_models() const;
  [[nodiscard]] const std::vector<Architecture>& architectures() const;
  [[nodiscard]] NumericalMode numerical_mode() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Whether two models may be in one array: model genes and sizes are equal, and in each layer the
/// feed-forward layer and, where both have a mixer of one kind, its shape key (MixerKind).
bool alike(const Architecture& a, const Architecture& b);

/// One model: an array of one, without the leading dimension of the array.
class Transformer {
 public:
  explicit Transformer(const Architecture& architecture,
                       NumericalMode mode = NumericalMode::reference);

  void initialise(std::uint64_t run_seed, std::int64_t replicate);
  void to(torch::Device device, torch::ScalarType type = torch::kFloat32);

  /// @param tokens  (B, T) int64.   @return (B, T, D).
  torch::Tensor features(const torch::Tensor& tokens, const Pass& pass);
  /// @return (B, T, V).
  torch::Tensor logits(const torch::Tensor& tokens, const Pass& pass);
  /// @param targets  (B, T) int64.   @return a number.
  torch::Tensor loss(const torch::Tensor& tokens, const torch::Tensor& targets, const Pass& pass);
  /// (B T) rows.
  TokenScores scores(const torch::Tensor& tokens, const torch::Tensor& targets);

  /// Parameters by name, in a fixed order; their leading dimension is 1.
  [[nodiscard]] std::vector<std::pair<std::string, torch::Tensor>> parameters() const;
  [[nodiscard]] TransformerArray& array() { return array_; }
  [[nodiscard]] const TransformerArray& array() const { return array_; }

 private:
  TransformerArray array_;
};

/// Result of the causality gate.
struct CausalityReport {
  bool causal = true;
  double largest_change = 0.0;  ///< of an earlier logit when later tokens change, float64
};
/// Perturbs all later tokens at several positions of small float64 models, one for each distinct
/// layer, and compares earlier logits. Causal means equal to 1e-9. Cost: some milliseconds a layer.
///
/// The models are of the canonical form, which is what is trained: a temperature that relu_norm voids
/// does not cancel to the last digit, since its sum is raised by 1e-8, and sequence_mean would leak
/// through that.
CausalityReport check_causality(const Architecture& architecture, std::uint64_t seed = 1);

/// Result of the comparison of prefixes.
struct PrefixReport {
  bool consistent = true;
  double largest_change = 0.0;  ///< of a logit when tokens are appended, float64
};
/// Appends tokens to several prefixes in the same small models and compares the logits of the
/// prefix. Consistent means equal to 1e-9: what a model says of a text does not depend on how it is
/// cut, and it can be run one token after the other.
PrefixReport check_prefixes(const Architecture& architecture);

}  // namespace nn

}  // namespace nas
