#include "genotype/mechanism.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <stdexcept>

#include "core/error.hpp"
#include "core/format.hpp"
#include "genotype/component.hpp"

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

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> fields;
  while (true) {
    const auto end = text.find(separator);
    auto field = text.substr(0, end);
    while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
    while (!field.empty() && field.back() == ' ') field.remove_suffix(1);
    fields.emplace_back(field);
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

template <class NameOf>
std::string joined(const Mechanism& mechanism, NameOf name_of) {
  std::string text;
  for (const auto gene : kComponentGenes) text += name_of(gene, mechanism.component(gene)) + "|";
  return text + (mechanism.bias ? "bias" : "no_bias") + "|" + shortest(mechanism.attention_dropout);
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

std::string& Mechanism::component(std::string_view gene) {
  if (gene == "similarity") return similarity;
  if (gene == "normalization") return normalization;
  if (gene == "gating") return gating;
  if (gene == "temperature") return temperature;
  throw std::logic_error("no component gene is called " + std::string(gene));
}

const std::string& Mechanism::component(std::string_view gene) const {
  return const_cast<Mechanism*>(this)->component(gene);  // NOLINT: one list of genes instead of two
}

std::string to_string(const Mechanism& mechanism) {
  return joined(mechanism, [](std::string_view, const std::string& key) { return key; });
}

std::string label(const Mechanism& mechanism, Semantics semantics) {
  return joined(mechanism, [semantics](std::string_view gene, const std::string& key) {
    return component_label(semantics, gene, key);
  });
}

Mechanism parse_mechanism(std::string_view text, Semantics semantics) {
  const auto where = "mechanism '" + std::string(text) + "': ";
  const auto fields = split(text, '|');
  if (fields.size() != kComponentGenes.size() + 2) {
    throw InputError(
        where + std::to_string(fields.size()) +
        " fields, must be 6: similarity|normalization|gating|temperature|bias|dropout");
  }
  Mechanism mechanism;
  for (std::size_t i = 0; i < kComponentGenes.size(); ++i) {
    const auto gene = kComponentGenes.at(i);
    try {
      mechanism.component(gene) =
          components().at(gene, component_key(semantics, gene, fields[i])).key;
    } catch (const InputError& error) {
      throw InputError(where + error.what());
    }
  }
  const auto& bias = fields[4];
  if (bias != "bias" && bias != "no_bias") {
    throw InputError(where + "bias = " + bias + ", must be one of bias, no_bias");
  }
  mechanism.bias = bias == "bias";
  const auto& dropout = fields[5];
  const auto result =
      std::from_chars(dropout.data(), dropout.data() + dropout.size(), mechanism.attention_dropout);
  const double value = mechanism.attention_dropout;
  if (result.ec != std::errc() || result.ptr != dropout.data() + dropout.size() ||
      !(value >= 0.0 && value < 1.0)) {
    throw InputError(where + "dropout = " + dropout + ", must be a number in [0, 1)");
  }
  return mechanism;
}

Mechanism canonical(Mechanism mechanism, Semantics semantics) {
  for (const auto gene : kComponentGenes) {
    for (const auto& voided : components().at(gene, mechanism.component(gene)).voids) {
      mechanism.component(voided) = component_key(semantics, voided, paper_labels(voided).front());
    }
  }
  if (mechanism.attention_dropout == 0.0) mechanism.attention_dropout = 0.0;  // -0.0 reads "-0"
  return mechanism;
}

bool is_causal(const Mechanism& mechanism) {
  std::vector<std::string> voided;
  for (const auto gene : kComponentGenes) {
    const auto& names = components().at(gene, mechanism.component(gene)).voids;
    voided.insert(voided.end(), names.begin(), names.end());
  }
  return std::all_of(kComponentGenes.begin(), kComponentGenes.end(), [&](std::string_view gene) {
    return components().at(gene, mechanism.component(gene)).causal ||
           std::find(voided.begin(), voided.end(), gene) != voided.end();
  });
}

bool has_fused_form(const Mechanism& mechanism) {
  return components().at("similarity", mechanism.similarity).fused &&
         components().at("normalization", mechanism.normalization).fused;
}

Mechanism vanilla_mechanism(Semantics semantics) {
  Mechanism mechanism;
  for (const auto gene : kComponentGenes) {
    mechanism.component(gene) = component_key(semantics, gene, paper_labels(gene).front());
  }
  mechanism.bias = true;
  mechanism.attention_dropout = 0.1;
  return mechanism;
}

}  // namespace nas
