#pragma once

#include <cstdint>

#include <torch/types.h>

#include "genotype/architecture.hpp"
#include "nn/transformer.hpp"

namespace nas::nn {

/// @throws InputError naming an option of the model that does not let it go on one token at a time:
/// one that sees later tokens, or whose results for a prefix depend on the length of the sequence.
void require_decodable(const Architecture& architecture);

/// Runs a model one token at a time: the same logits as those of the whole sequence, from a state in
/// place of the earlier tokens. Without dropout and gradients; between queries, keys and values by
/// the operations of numerical mode `reference`, whatever the model's.
///
/// The time of a step is that of the layers of one token and of what the state holds.
class Decoder {
 public:
  /// @param model  stays the caller's, who may change its parameters before the first step or
  /// reset(); it must outlive the decoder.
  /// @param room   tokens for which memory is set apart at once; where more come, it grows.
  /// @throws InputError as require_decodable.
  explicit Decoder(Transformer& model, std::int64_t room = 1);

  /// @param tokens  (B) int64, of the same sequences in every step.
  /// @return the logits of what comes next, (B, V).
  /// @throws std::invalid_argument for tokens of other sizes, or more of them than the context of a
  /// model of learned positions.
  torch::Tensor step(const torch::Tensor& tokens);
  /// @return bytes that the state holds of each sequence, in float32: keys and values that are still
  /// seen, and what the options of layers add (nas::state_bytes by formula).
  [[nodiscard]] std::int64_t state_bytes() const;
  /// @return tokens of each sequence so far.
  [[nodiscard]] std::int64_t tokens() const { return state_.tokens; }
  /// Begins new sequences, of which there may be another number.
  void reset();
  /// @return a decoder of the same model that goes on apart from this one.
  [[nodiscard]] Decoder copy() const;

 private:
  Decoder(TransformerArray& model, std::int64_t room, std::int64_t batch, SequenceState state);

  TransformerArray* model_;
  std::int64_t room_;
  std::int64_t batch_ = 0;  ///< of the first step; 0: none yet
  SequenceState state_;
};

}  // namespace nas::nn
