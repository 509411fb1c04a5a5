#include "search/layer_selection.hpp"

namespace nas {
namespace {

void random_layers(LayerPlacements& layers, std::mt19937& engine) {
  for (unsigned i = 0; i < layers.options().width; ++i)
    layers.ask_nested(shuffled(layers.layers(), engine));
}

NAS_REGISTER_SELECTOR("random_layers",
                      "k random layers stay as they are, for each k, of `width` orders: a control",
                      {"width"}, random_layers);

}  // namespace
}  // namespace nas
