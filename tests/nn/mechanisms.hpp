#pragma once

#include <string>
#include <vector>

#include "genotype/component.hpp"
#include "genotype/mechanism.hpp"

namespace nas::test {

/// The paper's mechanisms in component keys, dropout 0: similarity x normalization x gating x
/// temperature, times bias if asked for (384 labels have bias on and off).
inline std::vector<Mechanism> paper_mechanisms(Semantics semantics, bool both_biases = false) {
  std::vector<Mechanism> mechanisms{Mechanism{}};
  for (const auto gene : kComponentGenes) {
    std::vector<Mechanism> extended;
    for (const auto& partial : mechanisms) {
      for (const auto& label : paper_labels(gene)) {
        extended.push_back(partial);
        extended.back().component(gene) = component_key(semantics, gene, label);
      }
    }
    mechanisms = extended;
  }
  if (both_biases) {
    const auto with_bias = mechanisms;
    for (auto mechanism : with_bias) {
      mechanism.bias = false;
      mechanisms.push_back(mechanism);
    }
  }
  return mechanisms;
}

/// Vanilla, with each option of each gene in its place, and vanilla dropout 0.
inline std::vector<Mechanism> single_options(Semantics semantics) {
  std::vector<Mechanism> mechanisms;
  for (const auto gene : kComponentGenes) {
    for (const auto& key : components().keys(gene)) {
      mechanisms.push_back(vanilla_mechanism(semantics));
      mechanisms.back().component(gene) = key;
      mechanisms.back().attention_dropout = 0.0;
    }
  }
  return mechanisms;
}

inline const std::vector<Semantics>& both_semantics() {
  static const std::vector<Semantics> both{Semantics::corrected, Semantics::published};
  return both;
}

}  // namespace nas::test
