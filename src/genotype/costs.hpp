#pragma once

#include <cstdint>

#include "core/visibility.hpp"
#include "genotype/architecture.hpp"
#include "genotype/component.hpp"
#include "genotype/mixer_kind.hpp"

namespace NAS_PUBLIC nas {

/// A layer's own heads, keys and sizes, after as many tokens as the context has.
AttentionShape attention_shape(const Architecture& architecture, const Mechanism& layer);
/// Of the first layer.
AttentionShape attention_shape(const Architecture& architecture);

/// @throws InputError naming the size unless all are >= 1 and heads divide width. Layers' own sizes
/// are checked by canonical (genotype/architecture_name.hpp).
void require_valid(const Architecture& architecture);

/// Number of parameters, without building the model.
std::int64_t num_parameters(const Architecture& architecture);
/// The same without the token embedding (V D), the output matrix where it is another one (V D), the
/// table of value embeddings (V D) and the positions (L D if learned; 1 if sinusoidal).
std::int64_t num_non_embedding_parameters(const Architecture& architecture);
/// Whether a norm follows the last layer: all but those of place post are before what they belong to. Parallel blocks,
/// on which norm_place has no effect, are as of place pre.
bool has_final_norm(const ModelGenes& genes);
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
///   4 L D H d + 4 L D G d + 2 P H d + feed-forward + components,   feed-forward = 4 L D F
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

// What the costs of several kinds of mixers are made of.

void add(const Component& component, const AttentionShape& shape, MixerCosts& costs);

/// What a layer's components add: all that its mixer has but the mixer itself.
void add_components(const Mechanism& layer, const AttentionShape& shape, MixerCosts& costs);

/// A convolution of so many taps over so many channels, each by itself.
void add_convolution(std::int64_t taps, std::int64_t channels, std::int64_t tokens,
                     MixerCosts& costs);

/// What a layer whose input has a share of the token before takes besides.
void add_smear(const AttentionShape& shape, MixerCosts& costs);

/// Biases of projections to q, k, v, of so many values in all, and back to D.
std::int64_t num_biases(const Mechanism& layer, std::int64_t inner, std::int64_t width);

}  // namespace nas
