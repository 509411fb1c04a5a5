#include "genotype/mechanism.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>

#include "core/error.hpp"
#include "core/words.hpp"
#include "genotype/component.hpp"
#include "genotype/slots.hpp"

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

template <class TextOf>
std::string joined(TextOf text_of) {
  std::string name;
  for (const auto& slot : paper_slots()) name += (name.empty() ? "" : "|") + text_of(slot);
  return name;
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
  const auto& slot = nas::slot(gene);
  if (!slot.is_component() || slot.model) {
    throw std::logic_error("no component of a layer fills " + slot.name);
  }
  return this->*std::get<std::string Mechanism::*>(slot.member);
}

const std::string& Mechanism::component(std::string_view gene) const {
  return const_cast<Mechanism*>(this)->component(gene);  // NOLINT: nothing is changed
}

std::string to_string(const Mechanism& mechanism) {
  return joined([&](const Slot& slot) { return text(slot, mechanism); });
}

std::string label(const Mechanism& mechanism, Semantics semantics) {
  return joined([&](const Slot& slot) {
    const auto chosen = text(slot, mechanism);
    return slot.is_component() ? component_label(semantics, slot.name, chosen) : chosen;
  });
}

Mechanism parse_mechanism(std::string_view text, Semantics semantics) {
  const auto where = "mechanism '" + std::string(text) + "': ";
  const auto fields = split(text, '|');
  if (fields.size() != paper_slots().size()) {
    throw InputError(where + std::to_string(fields.size()) + " fields, must be " +
                     std::to_string(paper_slots().size()) + ": " +
                     joined([](const Slot& slot) { return slot.name; }));
  }
  auto mechanism = vanilla_mechanism(semantics);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto& slot = paper_slots()[i];
    try {
      // A name of six fields has no third word.
      if (slot.is_flag() && fields[i] != slot.words[0] && fields[i] != slot.words[1]) {
        throw InputError(slot.name + " = " + std::string(fields[i]) + ", must be one of " +
                         slot.words[0] + ", " + slot.words[1]);
      }
      choose(slot, fields[i], semantics, mechanism);
    } catch (const InputError& error) {
      throw InputError(where + error.what());
    }
  }
  return mechanism;
}

Mechanism canonical(Mechanism mechanism, Semantics semantics) {
  for (const auto& gene : component_genes()) {
    const auto& key = mechanism.component(gene);
    if (!components().contains(gene, key)) continue;  // known, but without a module
    for (const auto& voided : components().at(gene, key).voids) {
      assign(slot(voided), slot(voided).vanilla, semantics, mechanism);
    }
  }
  mechanism.attention_dropout += 0.0;  // -0.0, which reads "-0", becomes 0.0
  return mechanism;
}

bool is_causal(const Mechanism& mechanism) {
  return std::all_of(slots().begin(), slots().end(), [&](const Slot& slot) {
    if (!slot.is_component() || slot.model || !is_active(slot, mechanism)) return true;
    const auto& key = mechanism.component(slot.name);
    return !components().contains(slot.name, key) || components().at(slot.name, key).causal;
  });
}

FusedForms fused_forms(const Mechanism& mechanism) {
  const auto fused = [&](const char* gene, const std::string& key) {
    return components().at(gene, key).fused;
  };
  // Norms, convolutions and gates are around what the kernel of attention computes.
  const bool attention = fused("similarity", mechanism.similarity) &&
                         fused("normalization", mechanism.normalization) &&
                         fused("position", mechanism.position) &&
                         fused("pattern", mechanism.pattern) && fused("decay", mechanism.decay) &&
                         mechanism.soft_cap == 0;
  return {.attention = attention,
          .gating = fused("gating", mechanism.gating),
          .temperature = attention && fused("temperature", mechanism.temperature)};
}

Mechanism vanilla_mechanism(Semantics semantics) {
  Mechanism mechanism;  // other genes begin as their default
  for (const auto& slot : paper_slots()) assign(slot, slot.vanilla, semantics, mechanism);
  return mechanism;
}

}  // namespace nas
