#pragma once

#include <cstdint>
#include <vector>

#include "core/visibility.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/semantics.hpp"

namespace NAS_PUBLIC nas {

/// The most layers of a model, which its name may list one by one.
inline constexpr std::int64_t kMostLayers = 4096;

/// Everything that determines a language model's function and parameters, and its costs by formula.
/// Letters: L context tokens, D width, H heads, V vocabulary, r feed_forward, N layers.
struct Architecture {
  ModelGenes genes{};
  /// Layer i works as stack[i modulo the size of stack].
  std::vector<Mechanism> stack{Mechanism{}};
  Semantics semantics = Semantics::corrected;
  std::int64_t layers = 2;
  std::int64_t width = 128;         ///< D
  std::int64_t heads = 4;           ///< H, divides D
  std::int64_t context = 128;       ///< L, longest sequence
  std::int64_t vocabulary = 10000;  ///< V
  std::int64_t feed_forward = 4;    ///< hidden width of the feed-forward layer / D, unless a layer
                                    ///< has a ratio of its own
  std::int64_t hidden = 0;          ///< width F of all feed-forward layers; 0: by their ratios
  bool match_parameters = false;    ///< whether fitted() chooses `hidden`; ratios are void then
  double dropout =
      0.1;  ///< on the embedding sum, after GELU and after the second feed-forward layer

  /// What a configuration says of the genes "training.X": one that says the same is left out.
  ModelGenes section{};

  /// The mechanism of layer i < layers.
  [[nodiscard]] const Mechanism& layer(std::int64_t i) const {
    return stack[static_cast<std::size_t>(i) % stack.size()];
  }
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

}  // namespace nas
