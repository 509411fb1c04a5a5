#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/visibility.hpp"
#include "genotype/component.hpp"
#include "genotype/mechanism.hpp"

namespace NAS_PUBLIC nas {

/// The most layers of a model, which its name may list one by one.
inline constexpr std::int64_t kMostLayers = 4096;

/// Everything that determines a language model's function and parameters, and its costs by formula.
/// Letters: L context tokens, D width, H heads, V vocabulary, r feed_forward, N layers.
struct Architecture {
  ModelGenes genes{};
  /// Layer i works as stack[i modulo the size of stack].
  std::vector<Mechanism> stack{Mechanism{}};
  Semantics semantics = Semantics::corrected;
  std::int64_t layers = 2;
  std::int64_t width = 128;         ///< D
  std::int64_t heads = 4;           ///< H, divides D
  std::int64_t context = 128;       ///< L, longest sequence
  std::int64_t vocabulary = 10000;  ///< V
  std::int64_t feed_forward = 4;    ///< hidden width of the feed-forward layer / D, unless a layer
                                    ///< has a ratio of its own
  std::int64_t hidden = 0;          ///< width F of all feed-forward layers; 0: by their ratios
  bool match_parameters = false;    ///< whether fitted() chooses `hidden`; ratios are void then
  double dropout =
      0.1;  ///< on the embedding sum, after GELU and after the second feed-forward layer

  /// The mechanism of layer i < layers.
  [[nodiscard]] const Mechanism& layer(std::int64_t i) const {
    return stack[static_cast<std::size_t>(i) % stack.size()];
  }
  /// Of a layer: its own heads, keys and sizes.
  [[nodiscard]] AttentionShape attention_shape(const Mechanism& mechanism) const;
  /// Of the first layer.
  [[nodiscard]] AttentionShape attention_shape() const { return attention_shape(layer(0)); }
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

/// @throws InputError naming the size unless all are >= 1 and heads divide width. Layers' own sizes
/// are checked by canonical (genotype/architecture_name.hpp).
void require_valid(const Architecture& architecture);

/// Number of parameters, without building the model.
std::int64_t num_parameters(const Architecture& architecture);
/// The same without the token embedding (V D), the output matrix where it is another one (V D), the
/// table of value embeddings (V D) and the positions (L D if learned; 1 if sinusoidal).
std::int64_t num_non_embedding_parameters(const Architecture& architecture);
/// Whether a layer has value embeddings, of which the model has one table.
bool embeds_values(const Architecture& architecture);

/// Hidden width F of a layer's feed-forward layer, 0 if it has none: architecture.hidden if that is set, else by the
/// layer's ratio r, r D, and 8 ceil(r D / 12) for swiglu, whose three matrices then have about as many parameters.
std::int64_t hidden_width(const Architecture& architecture, const Mechanism& mechanism);

/// The hidden width F that all feed-forward layers must have so that the model has as many parameters as the vanilla
/// model of the same layers, width and vocabulary: the multiple of 8 that comes nearest, of equals the smaller.
/// @throws InputError saying why, if F < D / 2, or if no layer has a feed-forward layer: nothing can
/// then make up for what the mixers have more or less.
std::int64_t matched_hidden(const Architecture& architecture);
/// The architecture with its matched_hidden() where match_parameters asks for it, else as it is.
/// @throws InputError as matched_hidden.
Architecture fitted(Architecture architecture);

/// Floating-point operations of one forward pass over one sequence of L tokens; a multiply-add
/// counts 2, an elementary function 1. Of a layer of attention, with G heads of keys and values and
/// P pairs of a query and a key that a head computes (L^2, less behind a window):
///
///   4 L D^2 + 4 L D G d + 2 P D + feed-forward + components,   feed-forward = 4 L D F
///
/// q, k, v and output projections; weights times values; scores, normalization, gate, temperature
/// and so on as their components state; and for the model 2 L D V, the output layer. Norms, GELU,
/// dropout and additions are left out: they are the same for every mechanism, and below 1 %.
/// @see Kaplan et al. (2020), arXiv:2001.08361, table 1, whose counts these are, per sequence and
/// with all pairs that are computed.
double forward_flops(const Architecture& architecture);
/// The mixers' part of it: all but feed-forward and output layers.
double attention_flops(const Architecture& architecture);

/// The least memory in bytes that training the model takes, whatever its scores: float32
/// parameters with their gradients and AdamW's two moments, and what each layer keeps of each token
/// for the backward pass, its q, k, v, output and hidden feed-forward values. Of the paper's models
///
///   16 (N (4 + 2 r) D^2 + (V + L) D) + 4 N B L D (4 + r)
///
/// Exact for any sizes, also such that no model can have. The true need is several times as much.
/// @param batch_size  B sequences per step.
double least_training_bytes(const Architecture& architecture, std::int64_t batch_size);

/// Bytes of inference state after so many tokens, of all layers in float32: keys and values, 8 G d
/// for each token that is still seen, and what the components add; of a recurrent layer its state.
std::int64_t state_bytes(const Architecture& architecture, std::int64_t tokens);

}  // namespace nas
