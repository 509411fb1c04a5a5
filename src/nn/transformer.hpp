#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "core/numerical_mode.hpp"
#include "genotype/architecture.hpp"
#include "nn/dropout.hpp"
#include "nn/loss.hpp"

namespace nas::nn {

/// The paper's language model: pre-norm transformer, learned positions, tied embedding, GELU
/// feed-forward.
///
///   h_0 = dropout(E[tokens] + P[0..T)),  h <- h + attention(LN(h)),  h <- h + FFN(LN(h)),  logits
///   = LN(h) E'
///
/// Tensors are (B, T, D), row-major, B sequences, T <= context tokens.
class Transformer {
 public:
  /// Parameters are uninitialised until initialise(). Outside numerical mode `reference`, what has
  /// a fused form on the CPU is computed by it. @throws InputError as require_valid.
  explicit Transformer(const Architecture& architecture,
                       NumericalMode mode = NumericalMode::reference);
  ~Transformer();
  Transformer(Transformer&&) noexcept;
  Transformer& operator=(Transformer&&) noexcept;

  /// Draws initial values: each tensor from its own generator, seeded by (run seed, replicate,
  /// "init", tensor name), on the CPU, so that tensors that two mechanisms share start alike on
  /// every device.
  void initialise(std::uint64_t run_seed, std::int64_t replicate);
  /// Moves parameters to a device and floating-point type.
  void to(torch::Device device, torch::ScalarType type = torch::kFloat32);

  /// @param tokens  (B, T) int64.   @return last hidden states after the final LayerNorm, (B, T,
  /// D).
  torch::Tensor features(const torch::Tensor& tokens, const Pass& pass);
  /// @return logits (B, T, V) = features E'.
  torch::Tensor logits(const torch::Tensor& tokens, const Pass& pass);
  /// @param targets  (B, T) int64; below 0 where nothing is asked.
  /// @return mean nll over the targets, nats (nn/loss.hpp).
  torch::Tensor loss(const torch::Tensor& tokens, const torch::Tensor& targets, const Pass& pass);
  /// What each token's logits say about its target, without dropout and gradients; (B T) rows.
  TokenScores scores(const torch::Tensor& tokens, const torch::Tensor& targets);
  /// @return the tied embedding matrix E (V, D).
  torch::Tensor embedding();

  /// Parameters by name, in a fixed order.
  [[nodiscard]] std::vector<std::pair<std::string, torch::Tensor>> parameters() const;
  /// Whether weight decay applies to a parameter under these semantics: everything (published),
  /// matrices only (corrected).
  [[nodiscard]] bool decays(const std::string& parameter_name) const;
  [[nodiscard]] const Architecture& architecture() const;
  [[nodiscard]] NumericalMode numerical_mode() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Result of the causality gate.
struct CausalityReport {
  bool causal = true;
  double largest_change = 0.0;  ///< of an earlier logit when later tokens change, float64
};
/// Perturbs all later tokens at several positions of a small float64 model of this mechanism and
/// compares earlier logits. Causal means equal to 1e-9. Cost: some milliseconds.
///
/// The model is of the canonical form, which is what is trained: a temperature that relu_norm voids
/// does not cancel to the last digit, since its sum is raised by 1e-8, and sequence_mean would leak
/// through that.
CausalityReport check_causality(const Architecture& architecture, std::uint64_t seed = 1);

}  // namespace nas::nn
