#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/visibility.hpp"

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

}  // namespace nas
