#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include "core/registry.hpp"
#include "genotype/component.hpp"
#include "genotype/mechanism.hpp"

namespace nas {

/// What a layer of attention of a trained model may become without training: other genes, and weights made of the
/// layer's own. Norms and feed-forward layer stay.
struct LayerBlock {
  std::string text{};  ///< "window{64,4}"
  /// The genes of the layer that takes the place of a layer of attention.
  std::function<Mechanism(Mechanism layer)> layer;
  /// A parameter of the block from the layer's of the same name, (out, in) or (out). @param name  "attention.k_proj.weight".
  /// @param shape  of the layer before.   @throws InputError where the layer has none of these.
  std::function<torch::Tensor(std::string_view name, torch::Tensor own,
                              const AttentionShape& shape)>
      weight = [](std::string_view, torch::Tensor own, const AttentionShape&) { return own; };
  bool keeps_nothing = false;  ///< whether its cache is empty whatever its genes say
};

/// Made from its sizes, which are integers, by their names.
using LayerBlockRegistry = Registry<LayerBlock(const Parameters&)>;
LayerBlockRegistry& layer_blocks();

/// A block as a configuration names it: its key, and its sizes in braces in their order where they are not the default;
/// `full` is the layer as it is. @throws InputError naming what is given and what is allowed.
LayerBlock parse_block(const std::string& text);

/// Registers a block from its own .cpp in src/convert/blocks/: `NAS_REGISTER_BLOCK(description, function);`
#define NAS_REGISTER_BLOCK(...) \
  [[maybe_unused]] static const bool nas_registered_block = ::nas::layer_blocks().add(__VA_ARGS__)

}  // namespace nas
