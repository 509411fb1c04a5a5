#pragma once

#include <cstdint>

#include "genotype/component.hpp"
#include "genotype/mechanism.hpp"

namespace nas {

/// Everything that determines a language model's function and parameters, and its costs by formula.
/// Letters: L context tokens, D width, H heads, V vocabulary, r feed_forward, N layers.
struct Architecture {
  Mechanism mechanism;
  Semantics semantics = Semantics::corrected;
  std::int64_t layers = 2;
  std::int64_t width = 128;         ///< D
  std::int64_t heads = 4;           ///< H, divides D
  std::int64_t context = 128;       ///< L, longest sequence
  std::int64_t vocabulary = 10000;  ///< V
  std::int64_t feed_forward = 4;    ///< hidden width of the feed-forward layer / D
  double dropout =
      0.1;  ///< on the embedding sum, after GELU and after the second feed-forward layer

  [[nodiscard]] AttentionShape attention_shape() const { return {width, heads, context}; }
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

/// @throws InputError naming the size unless all are >= 1 and heads divide width.
void require_valid(const Architecture& architecture);

/// Number of parameters, without building the model.
std::int64_t num_parameters(const Architecture& architecture);
/// The same without the tied token embedding (V D) and the positions (L D).
std::int64_t num_non_embedding_parameters(const Architecture& architecture);

/// Floating-point operations of one forward pass over one sequence of L tokens; a multiply-add
/// counts 2, an elementary function 1.
///
///   N (8 L D^2 + 2 L^2 D + 4 r L D^2 + components) + 2 L D V
///
/// q, k, v and output projections; weights times values; feed-forward; scores, normalization, gate
/// and temperature as their components state; output layer. LayerNorm, GELU, dropout and additions
/// are left out: they are the same for every mechanism, and below 1 %.
/// @see Kaplan et al. (2020), arXiv:2001.08361, table 1, whose counts these are, per sequence and
/// with the full L x L attention that is computed.
double forward_flops(const Architecture& architecture);
/// The attention's part of it: N (8 L D^2 + 2 L^2 D + components).
double attention_flops(const Architecture& architecture);

/// The least memory in bytes that training the model takes, whatever its attention: float32
/// parameters with their gradients and AdamW's two moments, and what each layer keeps of each token
/// for the backward pass, its q, k, v, output and hidden feed-forward values.
///
///   16 (N (4 + 2 r) D^2 + (V + L) D) + 4 N B L D (4 + r)
///
/// Exact for any sizes, also such that no model can have. The true need is several times as much.
/// @param batch_size  B sequences per step.
double least_training_bytes(const Architecture& architecture, std::int64_t batch_size);

/// Bytes of inference state per token: keys and values of all layers in float32, 8 N D, and what
/// the components add.
std::int64_t state_bytes(const Architecture& architecture);

}  // namespace nas
