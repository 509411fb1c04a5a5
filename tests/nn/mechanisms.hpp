#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "genotype/component.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/slots.hpp"

namespace nas::test {

/// All combinations of the keys that `keys_of` gives for a gene; bias, dropout 0.
template <class KeysOf>
std::vector<Mechanism> combinations(KeysOf keys_of) {
  std::vector<Mechanism> mechanisms{Mechanism().set("attention_dropout", 0.0)};
  for (const auto& gene : component_genes()) {
    std::vector<Mechanism> extended;
    for (const auto& partial : mechanisms) {
      for (const auto& key : keys_of(gene)) {
        extended.push_back(partial);
        extended.back().set(gene, key);
      }
    }
    mechanisms = extended;
  }
  return mechanisms;
}

/// Every fifth combination of registered options: each pair of options is among them.
inline std::vector<Mechanism> fifth_of_mechanisms() {
  std::vector<Mechanism> some;
  const auto all = combinations([](std::string_view gene) { return components().keys(gene); });
  for (std::size_t i = 0; i < all.size(); i += 5) some.push_back(all[i]);
  return some;
}

/// The paper's 192 mechanisms in component keys, or its 384 labels with the bias on and off.
inline std::vector<Mechanism> paper_mechanisms(Semantics semantics, bool both_biases = false) {
  auto mechanisms = combinations([semantics](std::string_view gene) {
    std::vector<std::string> keys;
    for (const auto& label : paper_labels(gene)) {
      keys.push_back(component_key(semantics, gene, label));
    }
    return keys;
  });
  if (both_biases) {
    const auto with_bias = mechanisms;
    for (auto mechanism : with_bias) {
      mechanism.set("bias", "no_bias");
      mechanisms.push_back(mechanism);
    }
  }
  return mechanisms;
}

/// Vanilla with one gene set to each of its options in turn, dropout 0.
inline std::vector<Mechanism> single_options(Semantics semantics) {
  std::vector<Mechanism> mechanisms;
  for (const auto& gene : component_genes()) {
    for (const auto& key : components().keys(gene)) {
      mechanisms.push_back(vanilla_mechanism(semantics));
      mechanisms.back().set(gene, key);
      mechanisms.back().set("attention_dropout", 0.0);
    }
  }
  return mechanisms;
}

inline const std::vector<Semantics>& both_semantics() {
  static const std::vector<Semantics> both{Semantics::corrected, Semantics::published};
  return both;
}

}  // namespace nas::test
