#include "genotype/semantics.hpp"

#include <array>
#include <map>
#include <stdexcept>

#include "core/error.hpp"

namespace nas {

namespace {

/// One label of the paper and the component that computes it under either semantics.
struct Label {
  std::string_view gene, label, published, corrected;
};

// The one place that says which component a label stands for.
constexpr std::array<Label, 15> kLabels{{
    {"similarity", "dot", "dot", "dot"},
    {"similarity", "multiplicative", "silu_dot", "silu_dot"},
    {"similarity", "additive", "additive", "additive"},
    {"similarity", "cosine", "cosine", "cosine"},
    {"normalization", "softmax", "softmax", "softmax"},
    {"normalization", "sparsemax", "topk_quarter", "sparsemax"},
    {"normalization", "relu_norm", "relu_norm", "relu_norm"},
    {"normalization", "sigmoid", "sigmoid_norm", "sigmoid_norm"},
    {"gating", "none", "none", "none"},
    {"gating", "input_gate", "input_gate", "input_gate"},
    {"gating", "output_gate", "output_gate", "output_gate"},
    {"gating", "highway", "normed_highway", "highway"},
    {"temperature", "fixed", "sqrt_d", "fixed"},
    {"temperature", "learned", "shifted_abs", "learned"},
    {"temperature", "adaptive", "sequence_mean", "per_query"},
}};

std::string_view key_of(const Label& row, Semantics semantics) {
  return semantics == Semantics::published ? row.published : row.corrected;
}

}  // namespace

Semantics parse_semantics(std::string_view text) {
  if (text == "corrected") return Semantics::corrected;
  if (text == "published") return Semantics::published;
  throw InputError("semantics = " + std::string(text) + ", must be one of corrected, published");
}

std::string_view to_string(Semantics semantics) {
  return semantics == Semantics::published ? "published" : "corrected";
}

std::string component_key(Semantics semantics, std::string_view gene, std::string_view label) {
  for (const auto& row : kLabels) {
    if (row.gene == gene && row.label == label) return std::string(key_of(row, semantics));
  }
  return std::string(label);
}

std::string component_label(Semantics semantics, std::string_view gene, std::string_view key) {
  for (const auto& row : kLabels) {
    if (row.gene == gene && key_of(row, semantics) == key) return std::string(row.label);
  }
  return std::string(key);
}

const std::vector<std::string>& paper_labels(std::string_view gene) {
  static const auto kByGene = [] {
    std::map<std::string, std::vector<std::string>, std::less<>> by_gene;
    for (const auto& row : kLabels) by_gene[std::string(row.gene)].emplace_back(row.label);
    return by_gene;
  }();
  const auto found = kByGene.find(gene);
  if (found == kByGene.end())
    throw std::logic_error("no component gene is called " + std::string(gene));
  return found->second;
}

}  // namespace nas
