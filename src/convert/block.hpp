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

/// A parameter of a block, and what it may be made from.
struct BlockParameter {
  std::string name;                 ///< within the layer, "attention.k_proj.weight"
  std::vector<std::int64_t> sizes;  ///< (out, in), or (out), ...
  AttentionShape shape;             ///< of the layer before
  /// A parameter of the layer before by its name. @throws std::out_of_range where it has none.
  std::function<torch::Tensor(const std::string& name)> own;
};

/// What a layer of attention of a trained model may become: other genes, and weights made of the layer's own. Norms and
/// feed-forward layer stay.
struct LayerBlock {
  std::string text{};  ///< "window{64,4}"
  /// The genes of the layer that takes the place of a layer of attention. @throws InputError where there is none.
  std::function<Mechanism(Mechanism layer)> layer;
  /// What a parameter begins with. Undefined: what it is drawn from in a new model, by its name alone.
  /// @throws InputError where the layer has none of these.
  std::function<torch::Tensor(const BlockParameter&)> weight = [](const BlockParameter& of) {
    return of.own(of.name);
  };
  bool keeps_nothing = false;  ///< whether its cache is empty whatever its genes say
};

/// Made from its sizes, integers or words, by their names.
using LayerBlockRegistry = Registry<LayerBlock(const Parameters&)>;
LayerBlockRegistry& layer_blocks();

/// A block as a configuration names it: its key, and its sizes in braces in their order where they are not the default;
/// `full` is the layer as it is. @throws InputError naming what is given and what is allowed.
LayerBlock parse_block(const std::string& text);

/// Registers a block from its own .cpp in src/convert/blocks/: `NAS_REGISTER_BLOCK(description, function);`
#define NAS_REGISTER_BLOCK(...) \
  [[maybe_unused]] static const bool nas_registered_block = ::nas::layer_blocks().add(__VA_ARGS__)

}  // namespace nas
