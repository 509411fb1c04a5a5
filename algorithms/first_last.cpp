#include "search/layer_selection.hpp"

namespace nas {
namespace {

void first_last(LayerPlacements& layers, std::mt19937& /*engine*/) {
  LayerPlacements::Order order;
  const auto n = layers.layers();
  for (std::size_t i = 0; i < n; ++i) order.push_back(i % 2 == 0 ? i / 2 : n - 1 - i / 2);
  layers.ask_nested(order);
}

NAS_REGISTER_SELECTOR("first_last",
                      "the first and the last k layers stay as they are, for each k: a control", {},
                      first_last);

}  // namespace
}  // namespace nas
