#pragma once

#include <array>
#include <utility>

#include "genotype/component.hpp"
#include "genotype/mechanism.hpp"

namespace nas::testing {

/// Registers Torch-free stand-ins for the paper's components (and entmax15), once: unit tests link
/// no Torch, where the real ones live.
inline void register_paper_components() {
  static const bool kDone = [] {
    using Pair = std::pair<const char*, const char*>;
    for (const auto& [gene, key] : std::array<Pair, 19>{{{"similarity", "dot"},
                                                         {"similarity", "silu_dot"},
                                                         {"similarity", "additive"},
                                                         {"similarity", "cosine"},
                                                         {"normalization", "softmax"},
                                                         {"normalization", "topk_quarter"},
                                                         {"normalization", "sparsemax"},
                                                         {"normalization", "sigmoid_norm"},
                                                         {"normalization", "entmax15"},
                                                         {"gating", "none"},
                                                         {"gating", "input_gate"},
                                                         {"gating", "output_gate"},
                                                         {"gating", "highway"},
                                                         {"gating", "normed_highway"},
                                                         {"temperature", "fixed"},
                                                         {"temperature", "sqrt_d"},
                                                         {"temperature", "learned"},
                                                         {"temperature", "shifted_abs"},
                                                         {"temperature", "per_query"}}}) {
      Component component;
      component.gene = gene;
      component.key = key;
      component.summary = "stand-in";
      components().add(component);
    }
    Component relu;
    relu.gene = "normalization";
    relu.key = "relu_norm";
    relu.voids = {"temperature"};
    components().add(relu);
    Component mean;
    mean.gene = "temperature";
    mean.key = "sequence_mean";
    mean.causal = false;
    components().add(mean);
    return true;
  }();
  (void)kDone;
}

}  // namespace nas::testing
