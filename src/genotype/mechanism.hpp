#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nas {

/// How the paper's labels are read: what the published code really computes, or the same with its
/// defects repaired. (docs: README, "Two semantics".)
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

/// One attention mechanism: component keys, not labels. What it is made of, and how each choice is
/// read and written, is listed in genotype/slots.hpp.
struct Mechanism {
  std::string similarity;
  std::string normalization;
  std::string gating;
  std::string temperature;
  bool bias = true;                ///< of the q, k and v projections
  double attention_dropout = 0.0;  ///< on the weights after normalization, in [0, 1)

  /// The component key of a slot that components fill. @throws std::logic_error for another one.
  [[nodiscard]] const std::string& component(std::string_view gene) const;
  std::string& component(std::string_view gene);

  friend bool operator==(const Mechanism&, const Mechanism&) = default;
};

/// The mechanism's name in component keys, e.g.
/// "dot|topk_quarter|output_gate|shifted_abs|bias|0.1"; dropout is the shortest decimal that reads
/// back equal. Nothing that distinguishes two mechanisms is left out, so it is their identity.
std::string to_string(const Mechanism& mechanism);
/// The same in the paper's labels, e.g. "dot|sparsemax|output_gate|learned|bias|0.1": for people.
std::string label(const Mechanism& mechanism, Semantics semantics);

/// Parses either form of name; fields may be surrounded by blanks.
/// @throws InputError naming the field, what was given and what is allowed (component registry).
Mechanism parse_mechanism(std::string_view text, Semantics semantics);

/// The canonical form (function identity): slots that a component voids get what the vanilla
/// transformer has, so that mechanisms that compute the same function are equal. Idempotent.
Mechanism canonical(Mechanism mechanism, Semantics semantics);

/// @return whether every component is causal (never so for sequence_mean with a normalization that
/// does not cancel it).
bool is_causal(const Mechanism& mechanism);

/// @return whether similarity and normalization have forms for the fused kernels of numerical modes
/// exact and fast.
bool has_fused_form(const Mechanism& mechanism);

/// The vanilla transformer: dot, softmax, none, fixed, bias, 0.1.
Mechanism vanilla_mechanism(Semantics semantics);

}  // namespace nas
