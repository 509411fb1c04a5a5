#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/visibility.hpp"
#include "genotype/sizes.hpp"

namespace NAS_PUBLIC nas {

/// How the paper's labels are read: what the published code really computes, or the same with its
/// defects repaired. (docs/explanation/semantics.md)
enum class Semantics { corrected, published };

/// @throws InputError unless "corrected" or "published".
Semantics parse_semantics(std::string_view text);
std::string_view to_string(Semantics semantics);

/// @return the component key that a label of the paper stands for ("sparsemax" is topk_quarter as
/// published); a text that
///         is no label of the gene is returned unchanged: it may be a component key already.
std::string component_key(Semantics semantics, std::string_view gene, std::string_view label);
/// @return the paper's label of a component key under these semantics, or the key itself where the
/// paper has none.
std::string component_label(Semantics semantics, std::string_view gene, std::string_view key);
/// @return the paper's labels of a gene, in the paper's order.
const std::vector<std::string>& paper_labels(std::string_view gene);

/// How one layer works: what mixes its positions, and the feed-forward layer behind that. Choices are
/// component keys, not labels, words or numbers; genotype/slots.hpp lists them: options, bounds,
/// conditions, and how each is read and written. What is initialised here is the paper's model.
struct Mechanism : Sizes {
  std::string similarity;
  std::string normalization;
  std::string gating;
  std::string temperature;
  std::string bias = "bias";  ///< bias: q, k, v and output projections have one; no_bias: only the
                              ///< output projection; none: none has
  double attention_dropout = 0.0;  ///< on the weights after normalization, in [0, 1)

  std::string mixer = "attn";      ///< key of its kind (genotype/mixer_kind.hpp)
  std::int64_t heads = 0;          ///< 0: the model's
  std::int64_t kv_heads = 0;       ///< heads of keys and values; 0: as many as heads
  std::int64_t kv_rank = 0;        ///< of a latent that keys and values come from; 0: there is none
  std::string qk_norm = "none";    ///< of queries and keys, before they are rotated
  std::string pattern = "full";    ///< which keys a query sees
  std::string position = "none";   ///< how scores know of distance
  std::string decay = "none";      ///< of what lies back
  std::string decay_form = "gla";  ///< how decay channel follows from logits
  std::string maps = "single";
  std::int64_t conv = 0;  ///< taps of a short convolution of q, k and v, or of mixer conv; 0: none
  std::string head_norm = "none";    ///< of each head's output
  std::int64_t value_exclusion = 0;  ///< 1: without its part along the query's own value
  std::int64_t soft_cap = 0;         ///< c of scores c tanh(s / c); 0: as they are
  std::int64_t smear = 0;            ///< 1: the mixer's input has a share of the token before
  std::int64_t value_embedding = 0;  ///< 1: values have a share of the token's row in a table
  std::string update = "add";
  std::string feature = "identity";
  std::int64_t key_width = 0;
  std::int64_t neg_eigen = 0;
  std::string ffn = "gelu";  ///< feed-forward layer

  /// The component key of a slot that components fill. @throws std::logic_error for another one.
  [[nodiscard]] const std::string& component(std::string_view gene) const;
  std::string& component(std::string_view gene);

  friend bool operator==(const Mechanism&, const Mechanism&) = default;
};

/// What is chosen for the whole model.
struct ModelGenes {
  std::string position_embedding = "learned";  ///< learned, sinusoidal, none
  std::string norm = "layer";                  ///< of the residual stream: layer, rms
  std::string norm_place = "pre";              ///< pre, post, sandwich
  std::string block = "sequential";            ///< sequential, parallel
  std::string tied = "1";     ///< 1: the output matrix is the embedding; 0: its own
  std::string bias = "bias";  ///< what layers have unless they say otherwise

  friend bool operator==(const ModelGenes&, const ModelGenes&) = default;
};

/// The paper's six choices in component keys, e.g. "dot|topk_quarter|output_gate|shifted_abs|bias|0.1"; dropout is the
/// shortest decimal that reads back equal. It is the identity of mechanisms that have the default of every other gene;
/// others are written by genotype/architecture_name.hpp.
std::string to_string(const Mechanism& mechanism);
/// The same in the paper's labels, e.g. "dot|sparsemax|output_gate|learned|bias|0.1": for input.
std::string label(const Mechanism& mechanism, Semantics semantics);

/// Parses either form of name; fields may be surrounded by blanks.
/// @throws InputError naming the field, what was given and what is allowed (component registry).
Mechanism parse_mechanism(std::string_view text, Semantics semantics);

/// The canonical form of the paper's six choices (function identity): slots that a component voids get what the vanilla
/// transformer has, so that mechanisms that compute the same function are equal. Idempotent.
Mechanism canonical(Mechanism mechanism, Semantics semantics);

/// @return whether every component is causal (never so for sequence_mean with a normalization that
/// does not cancel it).
bool is_causal(const Mechanism& mechanism);

/// Which parts of a layer of attention have forms for the kernels of numerical modes exact and fast.
struct FusedForms {
  bool attention = false;  ///< what is between q, k, v and the weighted values
  bool gating = false;
  bool temperature = false;  ///< which is so beside a fused attention only

  friend bool operator==(const FusedForms&, const FusedForms&) = default;
};
FusedForms fused_forms(const Mechanism& mechanism);

/// The vanilla transformer: dot, softmax, none, fixed, bias, 0.1; every other gene's default.
Mechanism vanilla_mechanism(Semantics semantics);

}  // namespace nas
